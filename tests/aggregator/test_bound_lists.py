"""A sum whose list of parties was shown can be formed with that list only; a run that is taken up again does so.

Found on a cluster: ten parties of which eight suffice, two lost in round 2; the run could never go on
(`already-confirmed`), whoever was back.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from aggregator.publish import Release
from aggregator.run import Workspace, synthesize
from aggregator.sums.bound import BoundLists
from aggregator.sums.exchange import GridExchange, Replies
from aggregator.watch import Silent
from fed_node.party import Party
from synth.errors import FedsynthError, MissingParties, Refusal
from synth.messages.wire import Envelope
from tests.fed_node.two_parties import ROWS, make_homes
from tests.small import plan_of

PLAN = plan_of(
    {"name": "marginals", "iterations": 20, "rounds": 1},
    parties=4,
    rows=ROWS,
    secure_sum={"statistics": "masked", "updates": "masked", "minimum_parties": 2, "colluders": 1},
    output={"formats": ["csv"]},
)
Loses = Callable[[str, str, Envelope], bool]  # party, kind, message → whether its reply is lost


class Network:
    def __init__(self, parties: dict[str, Party], loses: Loses) -> None:
        self.parties, self.loses = parties, loses

    def __call__(self, kind: str, envelopes: dict[str, Envelope]) -> Replies:
        received, lost = {}, []
        for name, envelope in envelopes.items():
            try:
                reply = self.parties[name].handle(kind, envelope)
            except FedsynthError as error:
                raise Refusal(name, error.code) from error
            if self.loses(name, kind, envelope):
                lost.append(name)
            else:
                received[name] = reply
        return Replies(received, lost)

    def discover(self, content: Envelope, parties: list[str], minimum: int) -> dict[str, Envelope]:
        return self("hello", dict.fromkeys(parties, content)).received


def first_attempt(name: str, kind: str, envelope: Envelope) -> bool:
    """The fourth is lost at ask 1, and the third when it confirmed the list of the three that are left."""
    at = envelope.options.get("sequence") == 1
    return at and (name, kind) in (("party-4", "ask"), ("party-3", "confirm"))


def attempt(folder: Path, parties: dict[str, Party], loses: Loses) -> Release:
    workspace = Workspace(folder / "work", folder / "out", simulated=True, seed=3)
    return synthesize(PLAN, cast(GridExchange, Network(parties, loses)), workspace, Silent())


@pytest.fixture
def stuck(tmp_path: Path) -> dict[str, Party]:
    parties = {name: Party(home) for name, home in make_homes(tmp_path / "homes", PLAN).items()}
    with pytest.raises(MissingParties, match="party-3 answered and then went silent"):
        attempt(tmp_path, parties, first_attempt)
    return parties


def test_taken_up_again_it_is_formed_with_the_very_list(tmp_path: Path, stuck: dict[str, Party]) -> None:
    """Everybody is back, the fourth too; but the numbers are bound to the other three."""
    release = attempt(tmp_path, stuck, lambda *_: False)
    lists = [span.parties for span in release.certificate.participation for _ in range(span.first, span.last + 1)]
    assert lists[:2] == [["party-1", "party-2", "party-3", "party-4"], ["party-1", "party-2", "party-3"]]
    for party in stuck.values():
        party.ledger.close()


def test_without_somebody_of_the_list_it_says_what_is_left_to_do(tmp_path: Path, stuck: dict[str, Party]) -> None:
    with pytest.raises(MissingParties, match="give it another name"):
        attempt(tmp_path, stuck, lambda name, *_: name == "party-3")
    for party in stuck.values():
        party.ledger.close()


def test_a_list_is_on_the_disk_before_it_is_shown_and_belongs_to_one_ask(tmp_path: Path) -> None:
    BoundLists(tmp_path / "lists.json").bind(4, ["a", "b"])
    again = BoundLists(tmp_path / "lists.json")
    assert again.of(4) == ["a", "b"]
    assert again.needed == {"a", "b"}
    assert again.of(5) is None
    assert again.needed == set()
