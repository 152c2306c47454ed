"""One envelope out, one back, over a grid that forgets messages as a restarting SuperLink does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np
from flwr.app import Error, Message
from flwr.common.constant import SUPERLINK_NODE_ID, ErrorCode
from flwr.supercore.task_identity import TaskIdentity

from aggregator.sums.exchange import MOST_REPEATS, GridExchange, NamedGrid
from synth.messages import wire
from synth.messages.wire import Envelope

NORTH, SOUTH = 11, 12


class ForgetfulGrid:
    """Loses the first messages to one node, and says so in the SuperLink's own name."""

    def __init__(self, loses: int) -> None:
        self.loses = loses
        self.messages: dict[str, Message] = {}

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
            error = Message(Error(ErrorCode.MESSAGE_UNAVAILABLE, "gone"), reply_to=message)
            error.metadata.__dict__["_src_node_id"] = SUPERLINK_NODE_ID
            return error
        return Message(message.content, reply_to=message)


def _asked(loses: int) -> tuple[set[str], list[str]]:
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 0, 0
    exchange = GridExchange(cast(NamedGrid, ForgetfulGrid(loses)), timeout_seconds=5)
    exchange.node_of = {"north": NORTH, "south": SOUTH}
    content = Envelope({"x": np.ones(2)}, {"run": "r"})
    replies = exchange("ask", {"north": content, "south": content})
    for envelope in replies.received.values():
        assert wire.to_records(envelope) == wire.to_records(content)
    return set(replies.received), replies.lost


def test_a_message_that_the_superlink_lost_is_sent_again() -> None:
    assert _asked(loses=2) == ({"north", "south"}, [])


def test_a_superlink_that_keeps_losing_makes_a_lost_party() -> None:
    assert _asked(loses=MOST_REPEATS + 1) == ({"north"}, ["south"])
