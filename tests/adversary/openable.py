"""What a coalition can open: exact linear algebra over everything it was ever sent.

A sealed vector is an answer plus key streams. Whoever knows a stream can take it off; unknown streams must cancel. So
what can be opened is exactly the set of linear combinations of the sealed vectors in which every unknown stream has
coefficient 0. No guessing which subtraction an aggregator may think of: all of them are covered, over all rounds,
epochs, lists and plans at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

T = TypeVar("T")
Stream = bytes  # the key of a key stream
Combination = dict["Released", Fraction]


@dataclass(frozen=True)
class Released:
    """An answer with one draw of noise: another draw is another answer, and under another plan it is the same one."""

    party: str
    run: str
    sequence: int
    digest: str
    plan: str = field(compare=False)  # digest of the plan it was first sealed under


@dataclass(frozen=True)
class SealedVector:
    """answer + Σ coefficient × stream, as it left the party."""

    answer: Released
    streams: Mapping[Stream, int]


def opened(vectors: Iterable[SealedVector], known: set[Stream]) -> list[Combination]:
    """A basis of all combinations of answers that the coalition can compute."""
    found: list[Combination] = []
    pivots: dict[Stream, tuple[dict[Stream, Fraction], Combination]] = {}
    for vector in vectors:
        streams = {key: Fraction(sign) for key, sign in vector.streams.items() if key not in known and sign}
        answers: Combination = {vector.answer: Fraction(1)}
        while streams:
            pivot = min(streams)
            if pivot not in pivots:
                pivots[pivot] = (streams, answers)
                break
            other_streams, other_answers = pivots[pivot]
            factor = -streams[pivot] / other_streams[pivot]
            streams, answers = _add(streams, other_streams, factor), _add(answers, other_answers, factor)
        else:
            if answers:
                found.append(answers)
    return found


def reduced(combinations: Sequence[Combination], coalition: set[str]) -> list[Combination]:
    """The same space without what the coalition knows itself, in reduced echelon form: each answer leads one row."""
    rows: list[Combination] = []
    for combination in combinations:
        row = {answer: value for answer, value in combination.items() if answer.party not in coalition}
        for other in rows:
            row = _add(row, other, -row.get(_lead(other), Fraction(0)))
        if not row:
            continue
        row = {answer: value / row[_lead(row)] for answer, value in row.items()}
        rows = [_add(other, row, -other.get(_lead(row), Fraction(0))) for other in rows]
        rows.append(row)
    return rows


def _lead(row: Combination) -> Released:
    return min(row, key=lambda answer: (answer.run, answer.sequence, answer.party, answer.digest))


def _add(left: dict[T, Fraction], right: Mapping[T, Fraction], factor: Fraction) -> dict[T, Fraction]:
    total = dict(left)
    for key, value in right.items():
        total[key] = total.get(key, Fraction(0)) + factor * value
    return {key: value for key, value in total.items() if value}
