"""Record-replay: one party answers the same asks on two neighbouring tables, and everything is compared.

With all luck frozen, stream by stream, and each release of the first run released by the second as well, nothing may
differ but the values under the noise, and those by no more than the event says. What is looked at, for every ask:

    control flow    the same draws, in the same order, of the same size and level, from the same streams
    answers         the same to the last bit: what differs left the party outside every noisy release
    releases        as many, of the kind, noise and sampling rate that `cost` charged
    sensitivity     cells changed (each by at most 1), L2 distance, clients who wish for something else: as charged

`unmoved` changes the noise alone, on one table: an array that stays the same left outside every noisy release.

It follows Re:cord-play ("Privacy in Theory, Bugs in Practice", PoPETs 2026). It sees what one pair of tables shows, so
it wants worst-case rows (`canaries`); and it believes the noise source, which the white-box audit does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from synth.audit.tape import Release, Tape, recorded
from synth.encoding.records import Records
from synth.interface import Answer, Arrays, Ask, Inquiry
from synth.privacy.events import CountNoise, Event, Gaussian, SampledGaussian, SharedGaussian, Votes

ROUNDING = 1e-3  # relative: more than the lattice and floating point do to a sum (dpsgd.lattice_sensitivity)


@dataclass(frozen=True)
class Neighbours:
    """A table, and rows that only the second table has. `joins`: whether sampling takes them."""

    rows: Records
    extra: Records
    joins: bool = True

    @property
    def larger(self) -> Records:
        return Records.concat([self.rows, self.extra])


@dataclass(frozen=True)
class Subject:
    """What is audited: a fresh inquiry for each run, the asks it is put, and the party that answers."""

    make: Callable[[], Inquiry]
    asks: Sequence[Ask]
    party: str
    noisy_parties: int = 1  # whose shares of count noise add up to what is charged (Plan.noisy_parties)


@dataclass(frozen=True)
class Measured:
    """What one release was found to do, beside what was charged."""

    event: Event
    sensitivity: float  # cells of counts, or L2 over the clip norm; charged are `queries`, or 1
    allowed: float


@dataclass(frozen=True)
class Pair:
    """One release as it was made on both tables."""

    before: Release
    after: Release
    joins: bool  # whether sampling took the extra row
    shares: int  # of count noise that add up to what is charged


@dataclass(frozen=True)
class Replay:
    violations: list[str]
    measured: list[Measured]
    tapes: tuple[Tape, Tape]

    @property
    def tightness(self) -> float:
        """The largest share of an allowed sensitivity that the extra row used: near 1, or the row was a weak test."""
        return max((each.sensitivity / each.allowed for each in self.measured), default=0.0)


def replay(subject: Subject, neighbours: Neighbours) -> Replay:
    """The smaller table first, then the larger one against its tape."""
    common = len(neighbours.rows)
    first = Tape(common, neighbours.joins)
    second = Tape(common, neighbours.joins, replays=first)
    answers = _answers(subject, neighbours.rows, first)
    others = _answers(subject, neighbours.larger, second)
    violations = [*_control_flow(first, second), *_differences(answers, others), *_loose_ends((first, second))]
    charged = [event for ask in subject.asks for event in subject.make().cost(ask, subject.party)]
    measured: list[Measured] = []
    expected = list(_one_by_one(charged))
    if [_made_as(event) for event in expected] != [each.kind for each in second.releases]:
        found = ", ".join(each.kind for each in second.releases) or "none"
        violations.append(f"charged were {len(expected)} releases ({_names(charged)}), made were: {found}")
    elif len(first.releases) == len(second.releases):
        for event, before, after in zip(expected, first.releases, second.releases, strict=True):
            found_here, measure = _release(event, Pair(before, after, neighbours.joins, subject.noisy_parties))
            violations += found_here
            measured += [measure] if measure else []
    return Replay(violations, measured, (first, second))


def unmoved(subject: Subject, rows: Records) -> list[str]:
    """Arrays that other noise changes in no answer. Wants asks in which noise reaches all of an answer, and at least
    two: Adam's first steps are as long whatever the gradient."""
    one, other = (_answers(subject, rows, Tape(len(rows), other_noise=flag)) for flag in (False, True))
    pairs = list(zip(one, other, strict=True))
    return [
        f"array '{name}' is the same under other noise"
        for name in sorted({name for answer in one for name in answer.arrays})
        if all(np.array_equal(here.arrays[name], there.arrays[name]) for here, there in pairs)
    ]


def uncharged(charged: Iterable[Event], releases: Iterable[Release], noisy_parties: int) -> list[str]:
    """Releases that no charge pays for and charges that paid for nothing: calls and noise levels against a ledger."""
    paid = Counter(_level(event) for event in _one_by_one(charged))
    made = Counter(_found_level(release, noisy_parties) for release in releases)
    return [
        *(f"released {times} times more than charged: {level}" for level, times in (made - paid).items()),
        *(f"charged {times} times more than released: {level}" for level, times in (paid - made).items()),
    ]


def _level(event: Event) -> str:
    """A mechanism in words; noise levels are decimals of four digits, so four digits tell them apart."""
    return event.units()[0].brief()


def _found_level(release: Release, noisy_parties: int) -> str:
    if release.event is not None:
        return _level(release.event)
    if release.kind == "skellam":
        return _level(CountNoise(1, release.variance * noisy_parties))
    noise = float(np.sqrt(release.variance * release.shares)) / release.clip_norm
    if release.shares > 1:
        return _level(SharedGaussian(release.sample_rate, noise, 1, release.shares))
    return _level(SampledGaussian(release.sample_rate, noise, 1))


def _answers(subject: Subject, rows: Records, tape: Tape) -> list[Answer]:
    inquiry, answers = subject.make(), []
    held: Arrays = {}
    with recorded(tape):
        for number, ask in enumerate(subject.asks):
            answer, held = inquiry.answer(ask, subject.party, rows, held, tape.source("ask", number))
            answers.append(answer)
    return answers


def _control_flow(first: Tape, second: Tape) -> Iterable[str]:
    for number, (here, there) in enumerate(zip(first.calls, second.calls, strict=False)):
        if here != there:
            yield f"control flow: draw {number} is {here} on one table and {there} on the other"
            return
    if len(first.calls) != len(second.calls):
        yield f"control flow: {len(first.calls)} draws on one table, {len(second.calls)} on the other"


def _differences(answers: list[Answer], others: list[Answer]) -> Iterable[str]:
    for number, (one, other) in enumerate(zip(answers, others, strict=True)):
        if one.weight != other.weight or set(one.arrays) != set(other.arrays):
            yield f"ask {number}: the answers' weights or names differ"
        for name in sorted(set(one.arrays) & set(other.arrays)):
            here, there = one.arrays[name], other.arrays[name]
            if here.shape != there.shape or here.dtype != there.dtype:
                yield f"ask {number}: array '{name}' has another shape or type on the other table"
            elif not np.array_equal(here, there, equal_nan=True):
                yield f"ask {number}: array '{name}' differs although every noisy release was the same"


def _loose_ends(tapes: Iterable[Tape]) -> Iterable[str]:
    for tape in tapes:
        for call in tape.unused:
            yield f"noise was drawn and added to nothing that could be seen: {call}"
        if tape.sampled:
            yield f"{len(tape.sampled)} samples of rows were drawn that no step used"


def _one_by_one(events: Iterable[Event]) -> Iterable[Event]:
    """Steps as single events."""
    for event in events:
        one, times = event.counted()
        yield from [one] * times


def _made_as(event: Event) -> str:
    return JUDGES[event.kind][0] if event.kind in JUDGES else "nothing known"


def _release(event: Event, pair: Pair) -> tuple[list[str], Measured | None]:
    before, after = pair.before.value, pair.after.value
    if before.shape != after.shape:
        return [f"{event.kind}: {before.size} values on one table, {after.size} on the other"], None
    return JUDGES[event.kind][1](event, pair)


def _counts(event: CountNoise, pair: Pair) -> tuple[list[str], Measured]:
    change = np.abs(pair.after.value - pair.before.value)
    wrong = [
        f"count_noise: variance {each.variance * pair.shares:g} was drawn, {event.variance:g} was charged"
        for each in (pair.before, pair.after)
        if not np.isclose(each.variance * pair.shares, event.variance, rtol=1e-9)
    ]
    # Σ|Δ|² ≤ q with every |Δ| ≤ 1 is what the event says, and all that its accountant uses.
    if change.max(initial=0) > 1 or (change**2).sum() > event.queries:
        wrong.append(
            f"count_noise: one row changed {int((change > 0).sum())} cells, by up to {change.max():g}; charged were "
            f"{event.queries} cells, each by 1"
        )
    return wrong, Measured(event, float((change**2).sum()), event.queries)


def _gaussian(event: Gaussian | SampledGaussian, pair: Pair) -> tuple[list[str], Measured]:
    before, after = pair.before, pair.after
    distance = float(np.linalg.norm(after.value - before.value))
    bound = after.clip_norm if np.isfinite(after.clip_norm) else distance
    wanted, wrong = event.noise_multiplier * bound, []
    rate = event.joining()
    if after.sample_rate != rate or before.sample_rate != rate:
        wrong.append(f"{event.kind}: rows joined with probability {after.sample_rate:g}, {rate:g} was charged")
    if distance > bound * (1 + ROUNDING):
        wrong.append(f"{event.kind}: one row moved the sum by {distance:g}; the clip norm is {bound:g}")
    shares = event.shared_by()  # that add up to what is charged
    for each in (before, after):
        if not np.sqrt(each.variance * shares) >= wanted * (1 - ROUNDING):
            made = np.sqrt(each.variance * shares)
            wrong.append(f"{event.kind}: noise of {made:g} was added, {wanted:g} was charged")
    if rate < 1 and not pair.joins and distance > 0:
        wrong.append(f"{event.kind}: a row that did not join moved the sum by {distance:g}")
    return wrong, Measured(event, distance / bound if bound else 0.0, 1.0)


def _votes(event: Votes, pair: Pair) -> tuple[list[str], Measured]:
    wrong = [
        f"votes: cast were {each.event.brief() if each.event else 'none'}, charged were {event.brief()}"
        for each in (pair.before, pair.after)
        if not isinstance(each.event, Votes) or replace(each.event, steps=event.steps, about=event.about) != event
    ]
    moved = int((pair.before.value != pair.after.value).any(axis=1).sum())
    if moved > 1:
        wrong.append(f"votes: one row changed what {moved} clients wish for; it should be with one of them")
    return wrong, Measured(event, float(moved), 1.0)


def _names(events: Iterable[Event]) -> str:
    return ", ".join(event.kind for event in events) or "nothing"


# How a release of each kind of event is drawn, and what holds it against the event.
JUDGES: dict[str, tuple[str, Callable[..., tuple[list[str], Measured]]]] = {
    CountNoise.kind: ("skellam", _counts),
    Gaussian.kind: ("gaussian", _gaussian),
    SampledGaussian.kind: ("step", _gaussian),
    SharedGaussian.kind: ("step", _gaussian),
    Votes.kind: ("votes", _votes),
}
