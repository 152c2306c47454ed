"""What a plan costs is worked out at its approval, kept, and never believed against the ledger."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from unittest import mock

import pytest

from fed_node.consent.prices import Prices
from fed_node.errors import NotApproved
from fed_node.party import Party
from fed_node.process.worker import prepare
from synth.messages.wire import Envelope
from synth.plan import Plan
from tests.fed_node.two_parties import RUN, CheapTraining, make_homes, small_plan

WORKED_OUT = "fed_node.consent.prices.whole_cost"


@pytest.fixture
def plan() -> Plan:
    return small_plan()


@pytest.fixture
def home(tmp_path: Path, plan: Plan) -> Path:
    """Of a party that approved the plan."""
    with mock.patch("synth.programme.build", CheapTraining):
        return make_homes(tmp_path, plan)["party-1"]


def hello(home: Path, plan: Plan) -> None:
    with mock.patch("synth.programme.build", CheapTraining):
        party = Party(home)
        with closing(party.ledger):
            party.handle("hello", Envelope({}, {"run": RUN, "plan": plan.digest(), "epoch": 0}))


def test_a_run_begins_at_the_price_that_was_worked_out_at_the_approval(home: Path, plan: Plan) -> None:
    with mock.patch(WORKED_OUT, side_effect=AssertionError("worked out anew")):
        hello(home, plan)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"events": [{"kind": "none such"}]}'])
def test_a_price_that_cannot_be_read_is_worked_out_anew(home: Path, plan: Plan, content: bytes) -> None:
    (home / "prices" / f"{plan.digest()}.json").write_bytes(content)
    hello(home, plan)


@pytest.mark.parametrize("other", [{"version": "0.0.1"}, {"party": "party-2"}, {"plan": "0" * 64}])
def test_a_price_of_another_version_party_or_plan_does_not_count(home: Path, plan: Plan, other: dict[str, str]) -> None:
    path = home / "prices" / f"{plan.digest()}.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | other))
    assert Prices(home / "prices", "party-1").kept(plan) is None


def test_a_price_that_somebody_lowered_is_held_against_the_ledger(home: Path, plan: Plan) -> None:
    """The ledger set aside what the approval cost, and begins no run at another price."""
    path = home / "prices" / f"{plan.digest()}.json"
    kept = json.loads(path.read_bytes())
    path.write_text(json.dumps(kept | {"events": kept["events"][:-1]}))
    with pytest.raises(NotApproved, match="something else than when it was approved"):
        hello(home, plan)


def test_a_withdrawn_plan_has_no_price(home: Path, plan: Plan) -> None:
    party = Party(home)
    with closing(party.ledger):
        party.withdraw(plan.digest())
    assert not list((home / "prices").iterdir())


def test_a_worker_that_starts_prepares_for_what_is_approved(home: Path, plan: Plan) -> None:
    party = Party(home)
    with closing(party.ledger), mock.patch(WORKED_OUT) as worked_out:
        prepare(party)
        worked_out.assert_called_once_with(plan, "party-1")
        party.withdraw(plan.digest())
        prepare(party)
        worked_out.assert_called_once()
