"""Folders of a party's volume that are lost, one at a time: what is left must not answer twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from fed_node.errors import StoreDamaged
from fed_node.party import Party
from tests.adversary.consortium import NAMES, plans
from tests.adversary.game import Violations, game
from tests.adversary.moves import Confirm, Hello, Keys, Lose, Move, Open, Question, Where

RUN = "run-2-0"
SHORTER = ("east", "north", "west")  # the difference to all four is one honest party


@pytest.mark.parametrize("name", ["lossy-masked", "lossy-ckks"])
@pytest.mark.parametrize("folder", ["sessions", "begun", "approved"])
def test_an_answer_stays_with_its_list_when_a_folder_is_lost(name: str, folder: str, tmp_path: Path) -> None:
    """The journal went with the keys, the answers stayed: a second sum over fewer parties left one party's counts with
    its own share of the noise."""
    plan = [each.name for each in plans()].index(name)
    with game(tmp_path / "game") as board:
        for move in _round(plan, NAMES):
            board.play(move)
        for world in board.worlds:
            world.heard.clear()  # it does not bring up what the one that is left out sent before
        for party in SHORTER:
            board.play(Lose(party, folder))
        for move in _round(plan, SHORTER):
            board.play(move)
        assert board.found == Violations()


def test_a_ledger_that_is_lost_with_its_lock_is_not_begun_anew_beside_the_traces_of_runs(tmp_path: Path) -> None:
    """The lock remembers that there was a ledger; without either, the whole budget was there again."""
    with game(tmp_path / "game") as board:
        board.play(Hello(Where("east", RUN, 2), 0))
        home = board.worlds[0].homes["east"]
        home.party.ledger.close()
        for file in home.path.glob("ledger.sqlite*"):
            file.unlink()
        with pytest.raises(StoreDamaged, match="sessions"):
            Party(home.path)


def _round(plan: int, parties: tuple[str, ...]) -> list[Move]:
    to = [Where(party, RUN, plan) for party in parties]
    return [
        *(Hello(each, 3) for each in to),
        *(Keys(each, parties) for each in to),
        *(Question(each, 0) for each in to),
        *(Confirm(each, 0) for each in to),
        *(Open(each, 0) for each in to),
    ]
