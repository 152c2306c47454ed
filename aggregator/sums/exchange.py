"""One envelope out to each party, one back from each: the aggregator's only use of the network.

Refusals, silence and dead nodes are told apart here: a refusal is a party's decision and stops the run; silence is
reported as lost, and the secure sum decides whether the others may go on. Nothing is aggregated from fewer answers
than were asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from flwr.app import Message
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid

from synth.errors import MissingParties, ProtocolError, Refusal
from synth.messages import wire
from synth.messages.wire import Envelope

POLL_SECONDS = 0.05
MOST_REPEATS = 5  # of messages in one exchange that the SuperLink lost
REFUSED = 400  # what a party's guard sends; see fed_node/guard.py


@dataclass(frozen=True)
class Replies:
    """What came back, by party, and who did not answer in time."""

    received: dict[str, Envelope]
    lost: list[str] = field(default_factory=list)


class Exchange(Protocol):
    """How the rest of the aggregator sees the parties; tests put a function here."""

    def __call__(self, kind: str, envelopes: dict[str, Envelope]) -> Replies: ...


class GridExchange:
    """An `Exchange` over Flower's message API."""

    def __init__(self, grid: Grid, timeout_seconds: float, waiting: Callable[[int], None] = lambda _: None) -> None:
        self.grid = grid
        self.timeout_seconds = timeout_seconds  # for one answer, local training included
        self.waiting = waiting  # told how many nodes are connected, while too few are
        self.node_of: dict[str, int] = {}  # party name → Flower node id, learnt at hello

    def discover(self, content: Envelope, parties: list[str], minimum: int) -> dict[str, Envelope]:
        """Say hello to every connected node, after waiting for as many as there are parties; replies by party."""
        deadline = time.monotonic() + self.timeout_seconds
        while len(nodes := list(self.grid.get_node_ids())) < len(parties) and time.monotonic() < deadline:
            self.waiting(len(nodes))
            time.sleep(POLL_SECONDS)
        replies: dict[str, Envelope] = {}
        for node, message in self._round_trip("hello", dict.fromkeys(nodes, content)).items():
            if message.has_error() and message.error.code != REFUSED:
                continue  # a dead node; whether its party is missed shows below
            envelope = _content(f"node {node}", message)
            party = str(envelope.options.get("party"))
            if party in replies:
                raise ProtocolError(f"two nodes call themselves '{party}'; stop one of them")
            if party in parties:
                replies[party] = envelope
                self.node_of[party] = node
        missing = sorted(set(parties) - set(replies))
        if len(replies) < minimum:
            raise MissingParties(
                f"not connected: {', '.join(missing)}. Start their nodes (or take them out of the plan), then resume."
            )
        return replies

    def __call__(self, kind: str, envelopes: dict[str, Envelope]) -> Replies:
        party_of = {self.node_of[party]: party for party in envelopes if party in self.node_of}
        messages = self._round_trip(kind, {node: envelopes[party] for node, party in party_of.items()})
        received, lost = {}, [party for party in envelopes if self.node_of.get(party) not in messages]
        for node, message in messages.items():
            party = party_of[node]
            if message.has_error() and message.error.code != REFUSED:
                lost.append(party)
            else:
                received[party] = _content(party, message)
        return Replies(received, sorted(lost))

    def _round_trip(self, kind: str, envelopes: dict[int, Envelope]) -> dict[int, Message]:
        """Push all, poll until every reply is there or time is up; replies by node id.

        A SuperLink that restarts may lose a message and says so in its own name. It is pushed again, which is safe: a
        party answers the same ask from its store.
        """
        replies: dict[int, Message] = {}
        asked, repeats = self._push(kind, envelopes), MOST_REPEATS
        deadline = time.monotonic() + self.timeout_seconds
        while asked and time.monotonic() < deadline:
            for reply in self.grid.pull_messages(sorted(asked)):
                node = asked.pop(reply.metadata.reply_to_message_id)
                if repeats and reply.has_error() and reply.error.code == ErrorCode.MESSAGE_UNAVAILABLE:
                    repeats -= 1
                    asked |= self._push(kind, {node: envelopes[node]})
                else:
                    replies[node] = reply
            if asked:
                time.sleep(POLL_SECONDS)
        return replies

    def _push(self, kind: str, envelopes: dict[int, Envelope]) -> dict[str, int]:
        """Node ids by the ids of the messages that were sent to them."""
        messages = [
            Message(wire.to_records(envelope), dst_node_id=node, message_type=f"query.{kind}")
            for node, envelope in envelopes.items()
        ]
        pushed = zip(self.grid.push_messages(messages), envelopes, strict=True)
        return {identity: node for identity, node in pushed if identity}


def _content(sender: str, message: Message) -> Envelope:
    if message.has_error():
        party, _, code = (message.error.reason or "").partition("/")
        if message.error.code == REFUSED and code:
            raise Refusal(party, code)
        raise MissingParties(f"{sender} could not answer (Flower error {message.error.code}); see its log, then resume")
    return wire.from_records(message.content)
