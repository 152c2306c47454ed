"""Letters and asks again: from another run, after a kill, from a dealer that changed its mind, in any order."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from aggregator.sums import adding
from aggregator.sums.letters import Carrier
from crypto import cross_tables
from crypto.framing import pack
from fed_node.linkage import dealt
from fed_node.linkage.dealt import DealtExchange
from fed_node.linkage.exchange import Exchange
from synth.encoding import contingency
from synth.encoding.records import Codec
from synth.errors import FedsynthError, ProtocolError, Refusal
from synth.interface import Ask
from synth.messages.wire import Envelope
from synth.programme import costs
from synth.synthesizers.registry import build
from tests.linkage.consortium import RUN, Consortium, admitted, header, prepared
from tests.vertical import COLUMNS, plan_by_columns, tables_by_columns, whole_table

ROWS, SEED = 40, 1
WHOLE = whole_table(ROWS)


def consortium(folder: Path, tables: dict[str, pd.DataFrame] | None = None, **changes: Any) -> Consortium:
    return Consortium(plan_by_columns(COLUMNS, ROWS, **changes), tables or tables_by_columns(WHOLE, COLUMNS), folder)


def counted(found: Consortium, ask: Ask) -> np.ndarray:
    """The tables of an ask over all columns in one place."""
    model: Any = build(found.plan)
    bins, records = model.counted_bins(ask), Codec(found.plan.table).fit(WHOLE)[0]
    cliques = contingency.unpack_cliques(ask.arrays["cliques"])
    return contingency.count(bins.index(records, model.names), [bins.size(name) for name in model.names], cliques)


def test_letters_of_another_run_do_not_open(tmp_path: Path) -> None:
    """The same plan, parties, rows and bins; another run."""
    attacked = consortium(tmp_path, privacy="none")
    sums, ask, sequence = prepared(attacked)
    sums.total(ask, sequence)
    of_first = {
        (party, sent.options["step"], sent.options["chunk"]): sent.arrays
        for kind, party, sent in attacked.sent
        if kind == "letters"
    }
    for party in attacked.parties.values():
        party.approve(attacked.plan, "a person")

    def replayed(kind: str, party: str, envelope: Envelope) -> Envelope:
        if kind != "letters" or envelope.options["step"] != "rows" or envelope.options["chunk"] != 1:
            return envelope
        return Envelope(of_first[party, "rows", 1], envelope.options)

    attacked.outgoing = replayed
    sums, ask, sequence = prepared(attacked, "run-2")
    with pytest.raises(Refusal) as refused:
        sums.total(ask, sequence)
    assert refused.value.code == "crypto.forged"


def deals_twice(folder: Path) -> bool:
    """Whether a dealer that deals again, and otherwise, changes the tables."""
    attacked = consortium(folder, privacy="none")
    sums, ask, sequence = prepared(attacked)
    Carrier(attacked.plan, sums.agreement, header(attacked, sequence)).shares(ask)
    honest = dealt.deals

    def otherwise(pairs: Any, chunks: Any, letters: Any) -> dict[str, bytes]:
        found = list(pairs)
        wrong = {second: (first, np.full(widths, 5, np.uint32).tobytes()) for first, second, widths in found}
        honest(found, chunks, letters)
        return {second: pack("deals", first.encode(), content) for second, (first, content) in wrong.items()}

    with patch.object(dealt, "deals", otherwise):
        found = sums.total(ask, sequence).arrays["counts"]  # which carries all letters again
    attacked.close()
    return not np.array_equal(found, counted(attacked, ask))


def test_only_the_first_deal_counts(tmp_path: Path) -> None:
    assert not deals_twice(tmp_path / "sound")
    take = DealtExchange.take_deals

    def any_deal(self: DealtExchange, geometry: Any, letters: Any) -> None:
        self.page.arrays = {name: array for name, array in self.page.arrays.items() if not name.startswith("dealt/")}
        take(self, geometry, letters)

    with patch.object(DealtExchange, "take_deals", any_deal):
        assert deals_twice(tmp_path / "mutated")


def test_a_second_round_opens_the_same_shares_under_fresh_noise(tmp_path: Path) -> None:
    found = consortium(tmp_path)
    sums, ask, sequence = prepared(found)
    again: int = build(found.plan).again  # type: ignore[attr-defined]
    first = replace(ask, arrays=ask.arrays | {"cliques": ask.arrays["cliques"]})
    later = replace(
        ask, arrays=ask.arrays | {"cliques": ask.arrays["cliques"][:again]}, options=ask.options | {"round": 1}
    )
    letters = sum(kind == "letters" for kind, _, _ in found.sent)
    one = sums.total(first, sequence).arrays["counts"] - counted(found, first)
    carried = sum(kind == "letters" for kind, _, _ in found.sent)
    two = sums.total(later, sequence + 1).arrays["counts"] - counted(found, later)
    assert carried > letters
    assert sum(kind == "letters" for kind, _, _ in found.sent) == carried  # no row is sent twice
    alike = one[: len(two)] == two
    assert np.abs(two).max() > 3
    assert alike.mean() < 0.3
    assert abs(np.corrcoef(one[: len(two)], two)[0, 1]) < 5 / np.sqrt(len(two))


def test_kills_and_new_keys_charge_nothing_twice(tmp_path: Path) -> None:
    """Every party restarted before each of its messages, a new epoch, everything asked again."""
    found = consortium(tmp_path)

    def killed(kind: str, party: str, envelope: Envelope) -> Envelope:
        if kind in ("letters", "ask"):
            found.restart(party)
        return envelope

    found.outgoing = killed
    sums, ask, sequence = prepared(found)
    before = sums.total(ask, sequence).arrays["counts"]
    again = admitted(found)
    np.testing.assert_array_equal(again.total(ask, sequence).arrays["counts"], before)
    for name, party in found.parties.items():
        planned = [event for events in costs(found.plan, name)[: sequence + 1] for event in events]
        assert party.ledger.events(RUN) == planned


class Game:
    """An honest aggregator whose messages are mixed with others: replays, to anybody, bent, between restarts."""

    def __init__(self, found: Consortium, seed: int) -> None:
        self.found, self.luck, self.seen = found, random.Random(seed), list[Any]()
        found.outgoing = self.between

    def play(self, ask: Ask | None) -> Ask | None:
        """All messages up to the first tables, as far as they come; the question is the aggregator's to choose."""
        own = None
        try:
            sums, own, sequence = prepared(self.found)
            sums.total(ask or own, sequence)
        except (Refusal, ProtocolError) as error:
            self.seen.append(error.code)
        self.found.close()
        return ask or own

    def between(self, kind: str, party: str, envelope: Envelope) -> Envelope:
        for _ in range(self.luck.choice((0, 0, 1, 2))):
            self._deviate()
        if "ask/people" in envelope.arrays:  # thirty of the hospital's list, persons and strangers
            lists = [reply.arrays["plain/tokens"] for _, _, reply in self.found.seen if "plain/tokens" in reply.arrays]
            return Envelope({"ask/people": np.unique(lists[0])[:30]}, envelope.options)
        return envelope

    def _deviate(self) -> None:
        if not self.found.sent:
            return
        place, party = self.luck.randrange(len(self.found.sent)), self.luck.choice(sorted(self.found.parties))
        kind, to, envelope = self.found.sent[-1 - place % 8]
        match self.luck.randrange(5):
            case 0:
                self.found.restart(party)
                return
            case 1:
                to = party
            case 2:
                options = {"chunk": self.luck.randrange(3), "step": self.luck.choice(("seeds", "deal", "rows"))}
                envelope = Envelope(envelope.arrays, envelope.options | options)
            case 3:  # other bins under the masks of these
                asks = [sent for _, _, sent in self.found.sent if "step" in sent.options and "ask/bins" in sent.arrays]
                if not asks:
                    return
                arrays = {name: array for name, array in asks[-1].arrays.items() if not name.startswith("letter/")}
                coarse = {"ask/bins": np.zeros_like(arrays["ask/bins"])}
                kind, envelope = "letters", Envelope(arrays | coarse, asks[-1].options | {"step": "rows", "chunk": 0})
        if kind in ("letters", "ask"):
            self.seen.append((kind, to, self._outcome(kind, to, envelope)))

    def _outcome(self, kind: str, to: str, envelope: Envelope) -> Any:
        try:
            reply = self.found.parties[to].handle(kind, envelope)
        except FedsynthError as error:
            return error.code
        sizes = sorted((name, array.nbytes) for name, array in reply.arrays.items())
        return [name if "tokens" in name else (name, size) for name, size in sizes]


def games(folder: Path, seed: int) -> tuple[list[Any], list[Any], set[str]]:
    """The same game on a table and on one without a person; and masks that covered two matrices."""
    masked: dict[tuple[bytes, int], bytes] = {}
    twice: set[str] = set()
    sound = cross_tables.masked_rows

    def noted(places: Any, width: int, mask: bytes, chunk: int) -> Any:
        content = places.tobytes() + bytes([width % 256])
        if masked.setdefault((mask, chunk), content) != content:
            twice.add(f"chunk {chunk}")
        return sound(places, width, mask, chunk)

    seen, ask = [], None
    without = {name: rows[rows["patient"] != "p7"] for name, rows in tables_by_columns(WHOLE, COLUMNS).items()}
    with patch.object(dealt, "masked_rows", noted):
        for number, tables in enumerate((None, without)):
            game = Game(consortium(folder / str(number), tables), seed)
            ask = game.play(ask)
            seen.append(game.seen)
    return seen[0], seen[1], twice


@pytest.fixture
def adversarial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of a few rows, and an aggregator that does not check its own messages."""
    monkeypatch.setattr(cross_tables, "LETTER_BYTES", 1500)
    monkeypatch.setattr(adding, "require_voucher", lambda *_: None)


def test_messages_in_any_order_say_the_same_on_a_neighbour_and_no_mask_is_used_twice(
    tmp_path: Path, adversarial: None
) -> None:
    here, there, twice = games(tmp_path, SEED)
    assert len(here) > 12
    assert here == there
    assert not twice


def test_the_game_notices_a_mask_that_is_used_twice(tmp_path: Path, adversarial: None) -> None:
    begin = Exchange._begin

    def anew(self: Exchange, geometry: Any, ones: Any) -> None:
        if "seeds" not in self.page.values:
            begin(self, geometry, ones)

    with patch.object(Exchange, "_begin", anew):
        assert games(tmp_path, SEED)[2]
