"""One envelope to each of some parties, until each has answered or patience with it is over.

Waiting is no failure. A node that was killed, cut off or upgraded comes back; meanwhile the SuperLink answers in its
place that it is away, and may lose messages when it restarts itself. So whoever is away is waited for, by name, and
asked again once it is connected. A message that its node took and lost (it was cut off in that moment, and back before
anybody noticed) is silence; so after a while whoever owes an answer is asked once more beside what it may be computing.
Asking twice is safe: a party answers the same ask from its store, charged once, and the first reply counts. (Not so a
greeting: with the second one a party forgets the key that it announced in the first.) A refusal is a party's decision
and is final, but for those of a machine: a full volume, a worker that restarts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from flwr.app import Message
from flwr.common.constant import ErrorCode

from aggregator.remedies import AWAY, AWAY_WORDS
from synth.messages import wire
from synth.messages.wire import Envelope

POLL_SECONDS = 0.02
LOOK_SECONDS = 1.0  # at the register, while somebody is away
AGAIN_SECONDS = (1.0, 2.0, 5.0, 10.0)  # between attempts at one party
SILENT_SECONDS = 90.0  # until a party that says nothing is asked beside; then twice as long, and so on
BESIDE = "ask"  # the kind that may be asked twice while the first may still be answered
SLOW_SECONDS = 5.0  # after so long without an answer, who has not answered is said
REFUSED = 400  # what a party's guard sends; see fed_node/guard.py
PASSING = {  # what Flower says in the place of a node
    ErrorCode.NODE_UNAVAILABLE: "not connected",
    ErrorCode.MESSAGE_UNAVAILABLE: "the message was lost on the way",
    ErrorCode.REPLY_MESSAGE_UNAVAILABLE: "its answer was lost on the way",
    ErrorCode.CLIENT_APP_CRASHED: "its node was interrupted",
    ErrorCode.UNKNOWN: "its node was interrupted",
}


class Carrier(Protocol):
    """The part of Flower's `Grid` that carries messages."""

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]: ...

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]: ...


class Waiting(Protocol):
    """Told who is waited for and why, and who merely takes long; nobody when all is well again."""

    def waiting(self, parties: list[str], why: str) -> None: ...

    def unanswered(self, parties: list[str]) -> None: ...


class Nobody:
    """Nobody is told."""

    def waiting(self, parties: list[str], why: str) -> None:
        pass

    def unanswered(self, parties: list[str]) -> None:
        pass


@dataclass
class _Away:
    why: str
    since: float  # when it was first missed in this exchange
    attempts: int = 0
    again: float = 0.0  # not before


@dataclass
class RoundTrip:
    """One exchange; `carry` runs it to its end."""

    grid: Carrier
    members: Callable[[], dict[str, int]]  # connected parties and their nodes
    kind: str
    envelopes: dict[str, Envelope]
    answer_seconds: float  # for an answer of a party that is there
    away_seconds: Mapping[str, float]  # for one that is not, by party
    told: Waiting = field(default_factory=Nobody)
    silent_seconds: float = SILENT_SECONDS

    def carry(self, nodes: dict[str, int]) -> dict[str, Message]:
        """Replies by party; whoever is missing did not answer in time."""
        self.replies: dict[str, Message] = {}
        self.asked: dict[str, str] = {}  # message → party
        self.due: dict[str, float] = {}  # party → when patience with its answer ends
        self.beside: dict[str, tuple[float, float]] = {}  # party → when it is asked beside, and the pause after that
        self.away: dict[str, _Away] = {}
        self.missed: dict[str, _Away] = {}  # whoever was ever away: patience is counted from the first time
        began = looked = time.monotonic()
        for party in self.envelopes:
            if party not in nodes:
                self._miss(party, "not connected")
        self._push({party: nodes[party] for party in self.envelopes if party in nodes})
        slow: list[str] = []
        while self.asked or self.away:
            self._collect()
            now = time.monotonic()
            if self.away and now - looked >= LOOK_SECONDS:
                looked = now
                self._ask_again(now)
            self._give_up(now)
            self._ask_beside(now)
            self.told.waiting(sorted(self.away), self._why())
            if now - began > SLOW_SECONDS and (silent := sorted(set(self.asked.values()))) != slow:
                slow = silent
                self.told.unanswered(slow)
            if self.asked or self.away:
                time.sleep(POLL_SECONDS)
        self.told.waiting([], "")
        if slow:
            self.told.unanswered([])
        return self.replies

    def _collect(self) -> None:
        if not self.asked:
            return
        for reply in self.grid.pull_messages(sorted(self.asked)):
            party = self.asked.pop(reply.metadata.reply_to_message_id, None)
            if party is None:  # of one that was asked beside, and answered both
                continue
            self.asked = {message: other for message, other in self.asked.items() if other != party}
            if why := away_because(reply):
                self._miss(party, why)
            else:
                self.replies[party] = reply

    def _miss(self, party: str, why: str) -> None:
        now = time.monotonic()
        known = self.missed.setdefault(party, _Away(why, now))
        pause = AGAIN_SECONDS[min(known.attempts, len(AGAIN_SECONDS) - 1)]
        known.why, known.again, known.attempts = why, now + pause, known.attempts + 1
        self.away[party] = known

    def _ask_again(self, now: float) -> None:
        ready = [party for party, each in self.away.items() if each.again <= now]
        connected = self.members() if ready else {}
        back = {party: connected[party] for party in ready if party in connected}
        for party in back:
            del self.away[party]
        self._push(back)

    def _ask_beside(self, now: float) -> None:
        """Whoever is silent for long, if it is connected: its message may be lost."""
        silent = [party for party in set(self.asked.values()) if self.beside[party][0] <= now]
        if not silent or self.kind != BESIDE:
            return
        connected, due = self.members(), dict(self.due)
        self._push({party: connected[party] for party in silent if party in connected})
        self.due |= due  # patience goes on where it was
        for party in silent:
            pause = 2 * self.beside[party][1]
            self.beside[party] = (now + pause, pause)

    def _give_up(self, now: float) -> None:
        for party in [party for party, each in self.away.items() if now > each.since + self.away_seconds[party]]:
            del self.away[party]
        for message in [message for message, party in self.asked.items() if now > self.due[party]]:
            del self.asked[message]

    def _push(self, nodes: dict[str, int]) -> None:
        envelopes = {id(envelope): envelope for envelope in map(self.envelopes.__getitem__, nodes)}
        records = {each: wire.to_records(envelope) for each, envelope in envelopes.items()}  # most ask all the same
        messages = [
            Message(records[id(self.envelopes[party])], dst_node_id=node, message_type=f"query.{self.kind}")
            for party, node in nodes.items()
        ]
        if not messages:
            return
        for identity, party in zip(self.grid.push_messages(messages), nodes, strict=True):
            if identity:
                self.asked[identity] = party
                self.due[party] = time.monotonic() + self.answer_seconds
                self.beside[party] = (time.monotonic() + self.silent_seconds, self.silent_seconds)
            else:  # the SuperLink knows no such node any more
                self._miss(party, "not connected")

    def _why(self) -> str:
        return "; ".join(sorted({each.why for each in self.away.values()}))


def away_because(reply: Message) -> str | None:
    """Why a reply is none: its sender is away, and asked again may answer. None for an answer or a decision."""
    if not reply.has_error():
        return None
    if reply.error.code == REFUSED:
        code = (reply.error.reason or "").rpartition("/")[2]
        return AWAY_WORDS[code] if code in AWAY else None
    return PASSING.get(reply.error.code)
