"""One envelope out to each party, one back from each: the aggregator's only use of the network.

Refusals, silence and dead nodes are told apart here: a refusal is a party's decision and stops the run; who is away is
waited for (round_trip.py), and reported as lost when patience is over: the secure sum decides whether the others may go
on. Nothing is aggregated from fewer answers than were asked for.

Who a node is, the SuperLink's register says, by the key that the node connected with. A name inside a message or a
refusal is only a claim: a registered party that is none of the plan's could otherwise refuse in another one's name, or
take its place. Such nodes are not even greeted.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from flwr.app import Message

from aggregator.sums.round_trip import LOOK_SECONDS, REFUSED, SILENT_SECONDS, Nobody, RoundTrip, Waiting
from synth.errors import MissingParties, ProtocolError, Refusal
from synth.messages import wire
from synth.messages.wire import Envelope

FIRST_LOOK_SECONDS = 0.1
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
        self,
        grid: NamedGrid,
        timeout_seconds: float,
        told: Waiting | None = None,
        loss_seconds: float | None = None,
        needed: Collection[str] = (),
        silent_seconds: float = SILENT_SECONDS,
    ) -> None:
        self.grid = grid
        self.timeout_seconds = timeout_seconds  # for one answer, local training included
        self.loss_seconds = timeout_seconds if loss_seconds is None else loss_seconds  # for a party that may be lost
        self.needed = needed  # whom no sum can do without at this moment; changes
        self.silent_seconds = silent_seconds  # until whoever says nothing is asked beside
        self.told = told or Nobody()
        self.node_of: dict[str, int] = {}  # party name → Flower node id, by the register

    def discover(self, content: Envelope, parties: list[str], minimum: int) -> dict[str, Envelope]:
        """Say hello to the nodes of these parties, after waiting for all of them; replies by party."""
        self.await_members(parties, minimum)
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

    def await_members(self, parties: list[str], minimum: int) -> None:
        """Wait for all of these parties, by name; for those that may be missing not as long as for the others."""
        began = time.monotonic()
        while missing := sorted(set(parties) - set(self._look_for(parties))):
            enough = len(parties) - len(missing) >= minimum and not set(missing) & set(self.needed)
            if time.monotonic() - began > (self.loss_seconds if enough else self.timeout_seconds):
                break
            self.told.waiting(missing, "not connected")
            time.sleep(FIRST_LOOK_SECONDS if time.monotonic() - began < LOOK_SECONDS else LOOK_SECONDS)
        self.told.waiting([], "")

    def _look_for(self, parties: list[str]) -> dict[str, int]:
        found = self._members(parties)
        self.node_of |= found
        return found

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
        trip = RoundTrip(
            self.grid,
            lambda: self._look_for(list(envelopes)),
            kind,
            envelopes,
            self.timeout_seconds,
            {party: self.timeout_seconds if party in self.needed else self.loss_seconds for party in envelopes},
            self.told,
            self.silent_seconds,
        )
        messages = trip.carry({party: self.node_of[party] for party in envelopes if party in self.node_of})
        received, lost = {}, [party for party in envelopes if party not in messages]
        for party, message in messages.items():
            if message.has_error() and message.error.code != REFUSED:
                lost.append(party)
            else:
                received[party] = _content(party, message)
        return Replies(received, sorted(lost))


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
