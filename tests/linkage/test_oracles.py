"""What an aggregator can make parties say, on a table and on its neighbour: the same, but for noise that is charged.

The neighbour lacks one person, at one party or at all; or has a cell that fits no schema, or a person twice. The
aggregator takes in whom it likes, asks in any order, repeats, and reads codes, kinds and sizes of everything.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from aggregator.federate import federate
from aggregator.sums import adding
from fed_node.linkage.rows import LinkedTable
from synth.errors import Refusal
from synth.interface import Ask
from synth.linkage.inquiry import AlignmentInquiry
from synth.messages.wire import Envelope
from tests.linkage.consortium import Consortium, admitted, prepared
from tests.vertical import COLUMNS, TWO, plan_by_columns, tables_by_columns, whole_table

ROWS = 40
WHOLE = whole_table(ROWS)
NOTARY = TWO | {"notary": []}
Tables = dict[str, pd.DataFrame]


@pytest.fixture(autouse=True)
def careless(monkeypatch: pytest.MonkeyPatch) -> None:
    """An adversary does not check its own messages."""
    monkeypatch.setattr(adding, "require_voucher", lambda *_: None)


def lists_seen(consortium: Consortium) -> dict[str, np.ndarray]:
    return {name: reply.arrays["plain/tokens"] for _, name, reply in consortium.seen if "plain/tokens" in reply.arrays}


def taking_in(
    consortium: Consortium, chosen: Callable[[dict[str, np.ndarray]], np.ndarray]
) -> Callable[[str, str, Envelope], Envelope]:
    """The aggregator lets those take part whom it chose from the parties' lists."""

    def bent(kind: str, party: str, envelope: Envelope) -> Envelope:
        if "ask/people" not in envelope.arrays:
            return envelope
        return Envelope({"ask/people": np.unique(chosen(lists_seen(consortium)))}, envelope.options)

    return bent


def outcome_of(consortium: Consortium) -> str:
    """How the alignment ends."""
    try:
        for _ in federate(AlignmentInquiry(consortium.plan), admitted(consortium), 0, 0):
            pass
    except Refusal as refusal:
        return refusal.code
    finally:
        consortium.close()
    return "aligned"


def alone_at_hospital(lists: dict[str, np.ndarray]) -> np.ndarray:
    """All pseudonyms that only the hospital has: strangers, and whoever is there alone."""
    return np.setdiff1d(lists["hospital"], lists["insurer"])


def with_somebody_alone() -> Tables:
    tables = tables_by_columns(WHOLE, NOTARY)
    more = tables["hospital"].iloc[:1].assign(patient="alone")
    return tables | {"hospital": pd.concat([tables["hospital"], more])}


def presence_oracle(folder: Path) -> set[str]:
    """Outcomes where everybody in the list is a stranger, and where one of them is a person."""
    found = set()
    for number, tables in enumerate((tables_by_columns(WHOLE, NOTARY), with_somebody_alone())):
        consortium = Consortium(plan_by_columns(NOTARY, ROWS), tables, folder / str(number))
        consortium.outgoing = taking_in(consortium, alone_at_hospital)
        found.add(outcome_of(consortium))
    return found


def test_strangers_cannot_be_told_from_people_by_taking_them_in(tmp_path: Path) -> None:
    assert presence_oracle(tmp_path) == {"aligned"}


def test_a_seal_over_who_is_there_would_tell(tmp_path: Path) -> None:
    """The hole as it was: seals said which places hold somebody, so a person at one party alone ended the run."""
    sound = LinkedTable._standing

    def told(self: LinkedTable, kept: Any) -> bytes:
        return bytes(a ^ b for a, b in zip(sound(self, kept), self._whose_there(kept), strict=True))

    with patch.object(LinkedTable, "_standing", told), patch.object(LinkedTable, "_whose_there", there, create=True):
        assert presence_oracle(tmp_path) == {"aligned", "rows-misaligned"}


def there(self: LinkedTable, kept: Any) -> bytes:
    return np.packbits(np.resize(self._order_of(kept) >= 0, 256)).tobytes()


NEIGHBOURS: dict[str, Callable[[Tables], Tables]] = {
    "a person less": lambda tables: {name: table[table["patient"] != "p7"] for name, table in tables.items()},
    "a person less at one party": lambda tables: (
        tables | {"insurer": tables["insurer"][tables["insurer"]["patient"] != "p7"]}
    ),
    "a person twice": lambda tables: (
        tables | {"insurer": pd.concat([tables["insurer"], tables["insurer"].head(1).assign(sex="m")])}
    ),
    "a cell that fits no schema": lambda tables: (
        tables | {"insurer": tables["insurer"].assign(sex=["?", *tables["insurer"]["sex"].iloc[1:]])}
    ),
}


def transcript(consortium: Consortium, ask: Ask | None) -> tuple[list[Any], Ask]:
    """Every reply to the first question for tables and to all before it, by kind, party and sizes. The question itself
    is the aggregator's to choose."""
    sums, own, sequence = prepared(consortium)
    sums.total(ask or own, sequence)
    consortium.close()
    counts_of_people = {"plain/tokens", "plain/people"}
    return [
        (kind, party, sorted((name, array.nbytes) for name, array in reply.arrays.items()))
        for kind, party, reply in consortium.seen
        if kind in ("letters", "ask") and not counts_of_people & set(reply.arrays)
    ], ask or own


@pytest.mark.parametrize("case", NEIGHBOURS)
def test_letters_and_answers_have_the_same_sizes_on_a_neighbour(case: str, tmp_path: Path) -> None:
    """What is different, the number of pseudonyms, is noisy and charged; after it everything has the same form, letters
    and their number included, whomever the aggregator takes in: here thirty of the hospital's list."""
    tables, ask, seen = tables_by_columns(WHOLE, COLUMNS), None, []
    for name, rows in (("a", tables), ("b", NEIGHBOURS[case](tables))):
        consortium = Consortium(plan_by_columns(COLUMNS, ROWS), rows, tmp_path / name)
        consortium.outgoing = taking_in(consortium, lambda lists: lists["hospital"][:30])
        replies, ask = transcript(consortium, ask)
        seen.append(replies)
    assert sum(kind == "letters" and bool(sizes) for kind, _, sizes in seen[0]) > 6
    assert seen[0] == seen[1]


def test_presorted_letters_do_not_tell_how_many_people_there_are(tmp_path: Path) -> None:
    """The number of places is the aggregator's to choose; beyond the people, places hold nobody."""
    seen, ask = [], None
    for name, people in (("a", ROWS), ("b", ROWS - 1)):
        plan = plan_by_columns(COLUMNS, ROWS, linkage={"alignment": "presorted"})
        consortium = Consortium(plan, tables_by_columns(WHOLE.head(people), COLUMNS), tmp_path / name)
        consortium.outgoing = fifty_places
        replies, ask = transcript(consortium, ask)
        seen.append(replies)
    assert seen[0] == seen[1]


def fifty_places(kind: str, party: str, envelope: Envelope) -> Envelope:
    chosen = {"ask/people": np.array([50])} if "ask/people" in envelope.arrays else envelope.arrays
    return Envelope(chosen, envelope.options)


def test_presorted_parties_with_other_people_are_told_so_and_nothing_else(tmp_path: Path) -> None:
    """Stated in the threat model: who says `presorted` lets everybody know whether it is true."""
    plan = plan_by_columns(NOTARY, ROWS, linkage={"alignment": "presorted"})
    assert outcome_of(Consortium(plan, with_somebody_alone(), tmp_path)) == "rows-misaligned"


def test_an_answer_that_is_to_be_summed_is_never_shown_alone(tmp_path: Path) -> None:
    """A share that is gathered would be opened alone."""
    consortium = Consortium(plan_by_columns(COLUMNS, ROWS, privacy="none"), tables_by_columns(WHOLE, COLUMNS), tmp_path)

    def gathered(kind: str, party: str, envelope: Envelope) -> Envelope:
        alone = kind == "ask" and envelope.options["option/phase"] == "training"
        return Envelope(envelope.arrays, envelope.options | ({"combine": "gather"} if alone else {}))

    consortium.outgoing = gathered
    sums, ask, sequence = prepared(consortium)
    with pytest.raises(Refusal) as refused:
        sums.total(ask, sequence)
    assert refused.value.code == "ask-outside-plan"
