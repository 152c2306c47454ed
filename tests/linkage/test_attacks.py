"""The aggregator of a plan by columns as the adversary: letters swapped, repeated, forged; rows misaligned.

Where an attack does nothing, the opened tables are exact all the same; else the party that is attacked refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from aggregator.federate import federate
from aggregator.sums import adding
from aggregator.sums.letters import Carrier
from aggregator.sums.secure_sum import SecureSum
from crypto import cross_tables
from crypto.dealing import seeds_letter
from fed_node.errors import AskOutsidePlan
from fed_node.linkage.opening import post_of
from fed_node.seal.seal import Seal
from synth.encoding.records import Records
from synth.errors import FedsynthError, MissingParties, Refusal
from synth.interface import Ask
from synth.linkage.inquiry import AlignmentInquiry
from synth.messages import wire
from synth.messages.wire import Envelope
from synth.programme import inquiries
from tests.aggregator.sealed_parties import Remembered
from tests.linkage.consortium import RUN, Consortium, admitted, carried_out, header, prepared
from tests.linkage.test_runs import expected_counts
from tests.small import plan_of
from tests.vertical import COLUMNS, plan_by_columns, tables_by_columns, whole_table

ROWS = 40
WHOLE = whole_table(ROWS)


def consortium(folder: Path, tables: dict[str, pd.DataFrame] | None = None, **changes: Any) -> Consortium:
    plan = plan_by_columns(COLUMNS, ROWS, privacy="none", **changes)
    return Consortium(plan, tables or tables_by_columns(WHOLE, COLUMNS), folder)


@pytest.fixture
def careless(monkeypatch: pytest.MonkeyPatch) -> None:
    """An adversary does not check its own messages: what is found out is found out by the parties."""
    monkeypatch.setattr(adding, "require_voucher", lambda *_: None)


@pytest.fixture
def small_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several chunks of a few rows."""
    monkeypatch.setattr(cross_tables, "LETTER_BYTES", 1500)


def refusal_of(attacked: Consortium) -> tuple[str, str]:
    with pytest.raises(Refusal) as refused:
        carried_out(attacked)
    return refused.value.party, refused.value.code


def letters_only(bend: Callable[[str, str, Envelope], Envelope]) -> Callable[[str, str, Envelope], Envelope]:
    """Bends messages that carry letters, by step."""

    def bent(kind: str, party: str, envelope: Envelope) -> Envelope:
        carries = kind == "letters" and any(name.startswith("letter/") for name in envelope.arrays)
        return bend(str(envelope.options["step"]), party, envelope) if carries else envelope

    return bent


def test_letters_of_two_senders_swapped_do_not_open(tmp_path: Path, small_letters: None) -> None:
    def swapped(step: str, party: str, envelope: Envelope) -> Envelope:
        names = sorted(name for name in envelope.arrays if name.startswith("letter/"))
        if step != "rows" or party != "hospital" or len(names) < 2:
            return envelope
        first, second = names
        arrays = envelope.arrays | {first: envelope.arrays[second], second: envelope.arrays[first]}
        return Envelope(arrays, envelope.options)

    attacked = consortium(tmp_path)
    attacked.outgoing = letters_only(swapped)
    assert refusal_of(attacked) == ("hospital", "crypto.forged")


def test_a_letter_for_somebody_else_does_not_open(tmp_path: Path) -> None:
    """Both are of the same sender and step; only the recipient differs."""
    kept: dict[str, Any] = {}

    def misdelivered(step: str, party: str, envelope: Envelope) -> Envelope:
        if step != "rows" or envelope.options["chunk"] != 1 or party == "registry":
            return envelope
        if party == "hospital":
            kept["box"] = envelope.arrays["letter/registry"]
            return envelope
        return Envelope(envelope.arrays | {"letter/registry": kept["box"]}, envelope.options)

    attacked = consortium(tmp_path)
    attacked.outgoing = letters_only(misdelivered)
    assert refusal_of(attacked) == ("insurer", "crypto.forged")


def test_a_chunk_in_the_place_of_the_next_does_not_open(tmp_path: Path, small_letters: None) -> None:
    kept: dict[str, Envelope] = {}

    def repeated(step: str, party: str, envelope: Envelope) -> Envelope:
        if step != "rows" or party != "insurer":
            return envelope
        if envelope.options["chunk"] == 1:
            kept["first"] = envelope
        if envelope.options["chunk"] == 2:
            return Envelope(kept["first"].arrays, envelope.options)
        return envelope

    attacked = consortium(tmp_path)
    attacked.outgoing = letters_only(repeated)
    assert refusal_of(attacked) == ("insurer", "crypto.forged")


def test_a_message_repeated_as_it_is_adds_nothing_twice(tmp_path: Path, small_letters: None) -> None:
    """So does a restart between chunks: what was added is on the volume."""
    attacked = consortium(tmp_path)

    def again(kind: str, party: str, envelope: Envelope) -> Envelope:
        if kind == "letters" and party == "insurer" and envelope.options["step"] == "rows":
            attacked.parties[party].handle(kind, envelope)
            if envelope.options["chunk"] == 2:
                attacked.restart(party)
        return envelope

    attacked.outgoing = again
    outcome = carried_out(attacked)
    model: Any = outcome.model
    chunks = [sent.options["chunk"] for kind, _, sent in attacked.sent if sent.options.get("step") == "rows"]
    assert max(map(int, chunks)) > 3
    np.testing.assert_array_equal(model.measured[0][1], expected_counts(outcome, WHOLE, 0))


def test_nobody_deals_in_a_dealers_name(tmp_path: Path) -> None:
    """Seeds of the aggregator's own making, unsealed, as if it were the dealer of the plan."""

    def forged(step: str, party: str, envelope: Envelope) -> Envelope:
        if step != "deal":
            return envelope
        false = np.frombuffer(seeds_letter([("insurer", bytes(32))]), np.uint8)
        return Envelope(envelope.arrays | {"letter/aggregator": false}, envelope.options)

    attacked = consortium(tmp_path)
    attacked.outgoing = letters_only(forged)
    assert refusal_of(attacked)[1] == "crypto.participation.unknown-identity"


def test_one_mask_never_covers_two_sets_of_bins(tmp_path: Path) -> None:
    attacked = consortium(tmp_path)
    sums, ask, sequence = prepared(attacked)
    Carrier(attacked.plan, sums.agreement, header(attacked, sequence)).shares(ask)
    merged = replace(ask, arrays=ask.arrays | {"bins": np.zeros_like(ask.arrays["bins"])})
    with pytest.raises(Refusal) as refused:
        Carrier(attacked.plan, sums.agreement, header(attacked, sequence)).shares(merged)
    assert refused.value.code == "second-vector"


def test_one_mask_never_covers_other_rows(tmp_path: Path) -> None:
    """A file that changes during a run, with the party's process."""
    attacked = consortium(tmp_path)
    sums, ask, sequence = prepared(attacked)
    Carrier(attacked.plan, sums.agreement, header(attacked, sequence)).shares(ask)
    rows = tmp_path / "insurer" / "rows.csv"
    rows.write_text(rows.read_text().replace(",f,", ",x,").replace(",m,", ",f,").replace(",x,", ",m,"))
    attacked.restart("insurer")
    with pytest.raises(Refusal) as refused:
        Carrier(attacked.plan, sums.agreement, header(attacked, sequence)).shares(ask)
    assert (refused.value.party, refused.value.code) == ("insurer", "second-vector")


def test_no_table_leaves_before_its_shares_are_complete(tmp_path: Path) -> None:
    """A share without its offset or with chunks missing would be the other party's letter, or part of it."""
    attacked = consortium(tmp_path)
    _, ask, sequence = prepared(attacked)
    packed = wire.pack_ask(ask)
    envelope = Envelope(packed.arrays, packed.options | header(attacked, sequence))
    with pytest.raises(FedsynthError) as refused:
        attacked.parties["hospital"].handle("ask", envelope)
    assert refused.value.code == "shares-missing"


def test_nothing_is_counted_before_all_agree_on_whose_row_is_whose(tmp_path: Path) -> None:
    attacked = consortium(tmp_path)
    sums, alignment = admitted(attacked), AlignmentInquiry(attacked.plan)
    asked = federate(alignment, sums, 0, 0)
    next(asked), next(asked)
    for kind, ask, sequence in (
        ("ask", Ask(options={"phase": "statistics"}), 3),
        ("letters", Ask(options={"phase": "training"}), 4),
    ):
        packed = wire.pack_ask(ask)
        options = packed.options | header(attacked, sequence) | {"step": "seeds", "chunk": 0}
        with pytest.raises(FedsynthError) as refused:
            attacked.parties["hospital"].handle(kind, Envelope(packed.arrays, options))
        assert refused.value.code == "rows-misaligned"


def bent_alignment(number: int, bend: Callable[[Envelope], Envelope]) -> Callable[[str, str, Envelope], Envelope]:
    def bent(kind: str, party: str, envelope: Envelope) -> Envelope:
        aligns = kind == "ask" and envelope.options["option/phase"] == "alignment"
        return bend(envelope) if aligns and envelope.options["option/round"] == number else envelope

    return bent


def test_different_people_to_different_parties_are_found_out(tmp_path: Path, careless: None) -> None:
    attacked = consortium(tmp_path)

    def fewer(kind: str, party: str, envelope: Envelope) -> Envelope:
        if party != "insurer" or kind != "ask" or envelope.options.get("option/round") != 1:
            return envelope
        return Envelope({"ask/people": envelope.arrays["ask/people"][1:]}, envelope.options)

    attacked.outgoing = fewer
    assert refusal_of(attacked)[1] == "rows-misaligned"


def test_a_party_is_not_told_its_own_seal_in_anothers_name(tmp_path: Path) -> None:
    attacked = consortium(tmp_path)

    def echoed(envelope: Envelope) -> Envelope:
        seals = envelope.arrays["ask/seals"]
        return Envelope({"ask/seals": np.stack([seals[0]] * len(seals))}, envelope.options)

    attacked.outgoing = bent_alignment(2, echoed)
    assert refusal_of(attacked)[1] == "rows-misaligned"


def test_presorted_tables_of_other_people_are_found_out(tmp_path: Path) -> None:
    tables = tables_by_columns(WHOLE, COLUMNS)
    tables["registry"] = tables["registry"].assign(patient=["other", *tables["registry"]["patient"].iloc[1:]])
    attacked = consortium(tmp_path, tables, linkage={"alignment": "presorted"})
    assert refusal_of(attacked)[1] == "rows-misaligned"


def test_a_lost_party_stops_the_run(tmp_path: Path) -> None:
    attacked = consortium(tmp_path)
    sums = SecureSum(attacked.plan, RUN, attacked)
    greetings = attacked("hello", dict.fromkeys(sums.parties, sums.hello())).received
    with pytest.raises(MissingParties):
        sums.agree_on_keys({name: reply for name, reply in greetings.items() if name != "registry"})


def test_keys_of_fewer_parties_are_refused_by_the_parties(tmp_path: Path) -> None:
    def without(kind: str, party: str, envelope: Envelope) -> Envelope:
        if kind != "keys":
            return envelope
        arrays = {name: array for name, array in envelope.arrays.items() if name != "announcement/registry"}
        return Envelope(arrays, envelope.options)

    attacked = consortium(tmp_path)
    attacked.outgoing = without
    assert refusal_of(attacked)[1] == "crypto.participation.too-few-parties"


@pytest.mark.parametrize("dealer", [None, "none"])
def test_an_aggregator_that_was_killed_takes_the_run_up_again(
    dealer: str | None, tmp_path: Path, small_letters: None
) -> None:
    """New keys, the same question: all letters go out again, nothing is added twice, the stored answer is sent."""
    killed = consortium(tmp_path, linkage={"dealer": dealer})
    sums, ask, sequence = prepared(killed)
    before = sums.total(ask, sequence).arrays["counts"]
    again = admitted(killed)
    assert again.epoch is not None
    assert again.epoch.number == 1
    np.testing.assert_array_equal(again.total(ask, sequence).arrays["counts"], before)


def test_letters_are_written_under_plans_by_columns_only(tmp_path: Path) -> None:
    plan, rows = plan_of({"name": "marginals"}, privacy="none"), Records({"age": np.zeros(3)})
    seal = Seal(plan, "party-1", RUN, tmp_path, {}, Remembered())
    with pytest.raises(AskOutsidePlan):
        post_of(plan, rows, inquiries(plan), seal)
