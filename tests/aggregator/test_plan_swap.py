"""A run begun under one plan and greeted again under another, of fewer parties: nothing opens twice.

The attack: a sum over A, B and C is opened under plan 1. A and B are then asked the same under plan 2, of A and B only,
with the same run id. Were they to send their stored numbers again, the difference of the two sums would be C's counts
with one share of the noise.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from aggregator.sums.secure_sum import SecureSum
from fed_node.errors import RunOfAnotherPlan, SumRefused
from fed_node.seal.seal import Seal
from synth.errors import FedsynthError, Refusal
from synth.messages.fields import as_arrays, blob
from synth.messages.wire import Envelope
from synth.plan import Plan
from tests.aggregator.sealed_parties import RUN, TRAINING, SealedParties, admitted, answer_of, assert_is_sum, plan_for

MODES = ["masked", "ckks"]
REMAINING = ["party-1", "party-2"]


class Swapped(SealedParties):
    """The same homes, keys and run, under another plan."""

    def __init__(self, before: SealedParties, plan: Plan) -> None:
        self.plan, self.folder, self.answers, self.pins = plan, before.folder, answer_of, before.pins
        self.lost, self.record = set(), []
        self.outgoing = self.incoming = lambda kind, party, envelope: envelope
        self.seals = {}


def seal_under(plan: Plan, world: SealedParties, party: str) -> Seal:
    peers = {name: pin for name, pin in world.pins.items() if name != party}
    return Seal(plan, party, RUN, world.home(party), peers, world.ledgers[party])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tolerant", [False, True])
def test_a_restarted_party_refuses_the_run_under_another_plan(mode: str, tolerant: bool, tmp_path: Path) -> None:
    world = SealedParties(plan_for(mode, secure_sum={"minimum_parties": 2 if tolerant else None}), tmp_path)
    assert_is_sum(admitted(world).total(TRAINING, 0), [*REMAINING, "party-3"], 0)
    for party in REMAINING:
        with pytest.raises(RunOfAnotherPlan) as refused:
            seal_under(plan_for(mode, parties=2), world, party)
        assert refused.value.code == "run-of-another-plan"
    assert_is_sum(admitted(world).total(TRAINING, 1), [*REMAINING, "party-3"], 1)  # and plan 1 goes on


@pytest.mark.parametrize("mode", MODES)
def test_a_party_that_held_both_plans_in_memory_goes_on_with_the_first_it_wrote_down(mode: str, tmp_path: Path) -> None:
    """Both were taken up before either had left a trace on the volume."""
    world = SealedParties(plan_for(mode), tmp_path)
    swapped = Swapped(world, plan_for(mode, parties=2))
    swapped.seals = {party: seal_under(swapped.plan, world, party) for party in REMAINING}
    assert_is_sum(admitted(world).total(TRAINING, 0), [*REMAINING, "party-3"], 0)
    with pytest.raises(Refusal) as refused:
        admitted(swapped)
    assert refused.value.code == "run-of-another-plan"
    assert not [kind for kind, _, _ in swapped.record if kind.startswith("from")]  # nothing left at all


@pytest.mark.parametrize("mode", MODES)
def test_a_party_that_only_greeted_under_a_plan_belongs_to_it(mode: str, tmp_path: Path) -> None:
    world = SealedParties(plan_for(mode), tmp_path)
    sums = SecureSum(world.plan, RUN, world)
    world("hello", dict.fromkeys(sums.parties, sums.hello()))
    with pytest.raises(RunOfAnotherPlan):
        seal_under(plan_for(mode, parties=2), world, "party-1")


@pytest.mark.parametrize("mode", MODES)
def test_what_was_signed_under_one_plan_counts_for_nothing_under_another(mode: str, tmp_path: Path) -> None:
    """Even at a party whose folder is gone: announcements and vouchers of plan 1 do not pass for those of plan 2."""
    world = SealedParties(plan_for(mode), tmp_path)
    admitted(world).total(TRAINING, 0)
    said = {(kind, party): envelope for kind, party, envelope in world.record}
    swapped = Swapped(world, plan_for(mode, parties=2))
    for party in REMAINING:
        shutil.rmtree(world.home(party) / "sessions" / RUN)
        swapped.seals[party] = seal_under(swapped.plan, world, party)
    fresh = {p: blob(seal.hello(Envelope({}, {"epoch": 0})), "announcement") for p, seal in swapped.seals.items()}
    mixed = fresh | {"party-2": blob(said["from hello", "party-2"], "announcement")}
    with pytest.raises(SumRefused) as refused:
        swapped.seals["party-1"].keys(Envelope(as_arrays("announcement", mixed), {"epoch": 0}))
    assert refused.value.code == "crypto.misplaced.wrong-plan"
    sums = admitted(swapped)
    swapped.incoming = lambda kind, party, reply: said["from ask", party] if kind == "ask" else reply
    with pytest.raises(FedsynthError) as mistaken:
        sums.total(TRAINING, 0)
    assert mistaken.value.code == "crypto.misplaced.wrong-plan"


def test_a_party_killed_while_it_wrote_the_plan_down_begins_again(tmp_path: Path) -> None:
    world = SealedParties(plan_for("masked"), tmp_path)
    folder = world.home("party-1") / "sessions" / RUN
    folder.mkdir(parents=True)
    (folder / ".plan.x7d2").write_bytes(b"half")
    world.restart("party-1")
    assert_is_sum(admitted(world).total(TRAINING, 0), [*REMAINING, "party-3"], 0)


@pytest.mark.parametrize("left", ["session", "offer", "journal.json"])
def test_a_folder_that_names_no_plan_is_refused(left: str, tmp_path: Path) -> None:
    """One of the version before, or one from which the name was deleted: nobody knows what its run promised."""
    world = SealedParties(plan_for("masked"), tmp_path)
    admitted(world).total(TRAINING, 0)
    folder = world.home("party-1") / "sessions" / RUN
    kept = (folder / "session").read_bytes() if left == "offer" else (folder / left).read_bytes()
    for path in folder.iterdir():
        path.unlink()
    (folder / left).write_bytes(kept)
    with pytest.raises(RunOfAnotherPlan):
        world.restart("party-1")
