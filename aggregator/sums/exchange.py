"""One envelope out to each party, one back from each: the aggregator's only use of the network.

Refusals, silence and dead nodes are told apart here: a refusal is a party's decision and stops the run; silence is
reported as lost, and the secure sum decides whether the others may go on. Nothing is aggregated from fewer answers
than were asked for.

Who a node is, the SuperLink's register says, by the key that the node connected with. A name inside a message or a
refusal is only a claim: a registered party that is none of the plan's could otherwise refuse in another one's name, or
take its place. Such nodes are not even greeted.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from flwr.app import Message
from flwr.common.constant import ErrorCode

from synth.errors import MissingParties, ProtocolError, Refusal
from synth.messages import wire
from synth.messages.wire import Envelope

POLL_SECONDS = 0.05
MOST_REPEATS = 5  # of messages in one exchange that the SuperLink lost
REFUSED = 400  # what a party's guard sends; see fed_node/guard.py
CODE = re.compile(r"[a-z][a-z.-]{0,60}")  # of a refusal; see docs/refusals.md


class Node(Protocol):
    """What the SuperLink's register knows of a connected node."""

    @property
    def node_id(self) -> int: ...

    @property
    def name(self) -> str: ...


class NamedGrid(Protocol):
    """The part of Flower's `Grid` that is used here."""

    def get_nodes(self) -> Iterable[Node]: ...

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]: ...

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]: ...


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

    def __init__(
        self, grid: NamedGrid, timeout_seconds: float, waiting: Callable[[int], None] = lambda _: None
    ) -> None:
        self.grid = grid
        self.timeout_seconds = timeout_seconds  # for one answer, local training included
        self.waiting = waiting  # told how many nodes are connected, while too few are
        self.node_of: dict[str, int] = {}  # party name → Flower node id, by the register

    def discover(self, content: Envelope, parties: list[str], minimum: int) -> dict[str, Envelope]:
        """Say hello to the nodes of these parties, after waiting for all of them; replies by party."""
        deadline = time.monotonic() + self.timeout_seconds
        while len(nodes := self._members(parties)) < len(parties) and time.monotonic() < deadline:
            self.waiting(len(nodes))
            time.sleep(POLL_SECONDS)
        self.node_of = nodes
        replies = {
            party: envelope
            for party, envelope in self("hello", dict.fromkeys(parties, content)).received.items()
            if _is_own(party, envelope)
        }
        missing = sorted(set(parties) - set(replies))
        if len(replies) < minimum:
            raise MissingParties(
                f"not connected: {', '.join(missing)}. Start their nodes (or take them out of the plan), then resume."
            )
        return replies

    def _members(self, parties: list[str]) -> dict[str, int]:
        """The connected nodes of these parties; whoever else is registered has no part in the run."""
        found: dict[str, int] = {}
        for node in self.grid.get_nodes():
            if node.name in found:
                raise ProtocolError(f"two nodes are registered as '{node.name}'; take one out of the register")
            if node.name in parties:
                found[node.name] = node.node_id
        return found

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


def _is_own(party: str, envelope: Envelope) -> bool:
    if envelope.options.get("party") == party:
        return True
    raise ProtocolError(
        f"the node that is registered as '{party}' answers in another name; its 'party' and the register must agree"
    )


def _content(party: str, message: Message) -> Envelope:
    """What a party's node sent; its refusals and faults are its own, whatever name they carry."""
    if message.has_error():
        code = (message.error.reason or "").rpartition("/")[2]
        raise Refusal(party, code if CODE.fullmatch(code) else "unknown")
    try:
        return wire.from_records(message.content)
    except ProtocolError as error:
        raise ProtocolError(f"party '{party}' sent what cannot be read: {error}. Nothing was added up.") from error
