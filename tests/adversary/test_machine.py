"""The same game with hypothesis choosing: what breaks a promise is shrunk to the shortest series of moves."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.adversary.consortium import NAMES, plans
from tests.adversary.game import SEQUENCES, Game, Player
from tests.adversary.moves import (
    FOLDERS,
    RUNS,
    Approve,
    Confirm,
    Finish,
    Hello,
    Junk,
    Keys,
    Lose,
    Open,
    Question,
    Replay,
    Restart,
    Where,
    Withdraw,
)

PARTIES, SEQUENCE, PLACE = st.sampled_from(NAMES), st.integers(0, SEQUENCES - 1), st.integers(0, len(plans()) - 1)
TO = st.builds(Where, PARTIES, st.sampled_from(RUNS), PLACE)
KINDS = st.sampled_from(["hello", "keys", "ask", "confirm", "open", "finish", "nonsense"])


class Adversary(RuleBasedStateMachine):
    """Any message in any order, under any plan, to any subset; restarts, losses and decisions between them."""

    @initialize(case=st.integers(0, 14))
    def begin(self, case: int) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.game = Game(self.folder, case)

    def teardown(self) -> None:
        if hasattr(self, "game"):
            self.game.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    @rule(seed=st.integers(0, 10_000))
    def play_a_round(self, seed: int) -> None:
        for move in Player(seed).round():
            self.game.play(move)

    @rule(
        move=st.one_of(
            st.builds(Hello, TO, st.integers(0, 3)),
            st.builds(Keys, TO, st.lists(PARTIES, unique=True, min_size=1).map(tuple), st.booleans()),
            st.builds(Question, TO, SEQUENCE, st.integers(0, 2), st.integers(0, 1)),
            st.builds(Confirm, TO, SEQUENCE),
            st.builds(Open, TO, SEQUENCE, st.sampled_from(["", *NAMES])),
            st.builds(Finish, TO),
            st.builds(Junk, TO, KINDS),
            st.builds(Replay, st.integers(0, 39), PARTIES),
            st.builds(Restart, PARTIES),
            st.builds(Lose, PARTIES, st.sampled_from(FOLDERS)),
            st.builds(Approve, PARTIES, PLACE),
            st.builds(Withdraw, PARTIES, PLACE),
        )
    )
    def move(self, move: object) -> None:
        self.game.play(move)  # type: ignore[arg-type]

    @invariant()
    def every_promise_holds(self) -> None:
        if hasattr(self, "game"):
            assert not self.game.found, self.game.found


TestAdversary = Adversary.TestCase
TestAdversary.settings = settings(
    max_examples=12, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
