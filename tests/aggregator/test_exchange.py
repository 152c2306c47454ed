"""One envelope out, one back, over a grid that forgets messages as a restarting SuperLink does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from flwr.app import Error, Message
from flwr.common.constant import SUPERLINK_NODE_ID, ErrorCode
from flwr.supercore.task_identity import TaskIdentity

from aggregator.sums import round_trip
from aggregator.sums.exchange import GridExchange, NamedGrid
from aggregator.sums.round_trip import REFUSED
from synth.errors import Refusal
from synth.messages import wire
from synth.messages.wire import Envelope

NORTH, SOUTH = 11, 12


class ForgetfulGrid:
    """Loses the first messages to one node, and says so in the SuperLink's own name."""

    def __init__(self, loses: int, code: int = ErrorCode.MESSAGE_UNAVAILABLE, reason: str = "gone") -> None:
        self.loses, self.code, self.reason = loses, code, reason
        self.messages: dict[str, Message] = {}

    def get_nodes(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(node_id=NORTH, name="north"), SimpleNamespace(node_id=SOUTH, name="south")]

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        names = []
        for message in messages:
            names.append(f"message-{len(self.messages)}")
            message.metadata.__dict__["_message_id"] = names[-1]
            self.messages[names[-1]] = message
        return names

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        return [self._reply(self.messages[name]) for name in message_ids]

    def _reply(self, message: Message) -> Message:
        if message.metadata.dst_node_id == SOUTH and self.loses:
            self.loses -= 1
            error = Message(Error(self.code, self.reason), reply_to=message)
            error.metadata.__dict__["_src_node_id"] = SUPERLINK_NODE_ID
            return error
        return Message(message.content, reply_to=message)


@dataclass
class Told:
    """Who was waited for, in order of change."""

    waits: list[tuple[list[str], str]] = field(default_factory=list)

    def waiting(self, parties: list[str], why: str) -> None:
        if not self.waits or self.waits[-1] != (parties, why):
            self.waits.append((parties, why))

    def unanswered(self, parties: list[str]) -> None:
        pass


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_trip, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(round_trip, "AGAIN_SECONDS", (0.01,))


def _asked(grid: ForgetfulGrid, seconds: float = 5, silent_seconds: float = 90) -> tuple[set[str], list[str], Told]:
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 0, 0
    told = Told()
    exchange = GridExchange(cast(NamedGrid, grid), seconds, told, silent_seconds=silent_seconds)
    exchange.node_of = {"north": NORTH, "south": SOUTH}
    content = Envelope({"x": np.ones(2)}, {"run": "r"})
    replies = exchange("ask", {"north": content, "south": content})
    for envelope in replies.received.values():
        assert wire.to_records(envelope) == wire.to_records(content)
    return set(replies.received), replies.lost, told


def test_a_message_that_the_superlink_lost_is_sent_again() -> None:
    received, lost, _ = _asked(ForgetfulGrid(loses=12))
    assert (received, lost) == ({"north", "south"}, [])


def test_a_party_that_is_away_is_waited_for_by_name() -> None:
    """It was a failed run after 54 seconds, whatever the patience."""
    received, lost, told = _asked(ForgetfulGrid(loses=3, code=ErrorCode.NODE_UNAVAILABLE))
    assert (received, lost) == ({"north", "south"}, [])
    assert (["south"], "not connected") in told.waits
    assert told.waits[-1] == ([], "")


def test_a_full_volume_at_a_party_is_waited_for() -> None:
    grid = ForgetfulGrid(loses=2, code=REFUSED, reason="south/store-unwritable")
    received, lost, told = _asked(grid)
    assert (received, lost) == ({"north", "south"}, [])
    assert told.waits[-2][0] == ["south"]
    assert "volume" in told.waits[-2][1]


def test_a_decision_is_not_asked_again() -> None:
    with pytest.raises(Refusal, match="plan-not-approved"):
        _asked(ForgetfulGrid(loses=1, code=REFUSED, reason="south/plan-not-approved"))


def test_patience_ends() -> None:
    received, lost, _ = _asked(ForgetfulGrid(loses=10_000), seconds=0.3)
    assert (received, lost) == ({"north"}, ["south"])


class SilentGrid(ForgetfulGrid):
    """Hands the first message to a node that loses it, and nobody notices."""

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        lost = next(name for name, message in self.messages.items() if message.metadata.dst_node_id == SOUTH)
        return super().pull_messages(name for name in message_ids if name != lost)


def test_an_ask_that_its_node_lost_in_silence_is_asked_beside() -> None:
    grid = SilentGrid(loses=0)
    received, lost, _ = _asked(grid, silent_seconds=0.05)
    assert (received, lost) == ({"north", "south"}, [])
    assert len(grid.messages) == 3


def test_whoever_answers_twice_counts_once() -> None:
    class SlowGrid(ForgetfulGrid):
        looks = 0

        def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
            self.looks += 1
            return super().pull_messages(message_ids) if self.looks > 2 else []

    received, lost, _ = _asked(SlowGrid(loses=0), silent_seconds=0.0)
    assert (received, lost) == ({"north", "south"}, [])
