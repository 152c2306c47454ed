"""An epoch: one list of parties with one set of keys. The aggregator carries the keys and can use none of them.

The parties check each other against identities that they pinned themselves; what the aggregator believes about
identities protects only itself. Without a roster from its settings it trusts the identity a party shows first.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from aggregator.errors import Disagreement, Lost
from aggregator.sums.exchange import Exchange
from crypto.announcement import verify_announcement
from crypto.ckks import PublicContext
from crypto.keys import Identity
from crypto.rounds import KeyPeriod, Round
from synth.errors import ProtocolError
from synth.interface import Scalar
from synth.messages.fields import as_array, as_arrays, blob, blobs, number, text
from synth.messages.wire import Envelope
from synth.plan import Plan
from synth.programme import only_plain, programme

log = logging.getLogger("aggregator")


@dataclass(frozen=True)
class Epoch:
    """What was agreed on."""

    period: KeyPeriod
    parties: list[str]  # by name
    listed: tuple[str, ...]  # as the parties sign them; nobody where all is plain, for then no party checks the others
    roster: Mapping[str, Identity]
    public: PublicContext | None  # for CKKS; opens nothing

    @property
    def number(self) -> int:
        return self.period.epoch

    def round(self, sequence: int, question: str) -> Round:
        return Round(self.period, self.listed, sequence, question)


class KeyAgreement:
    """Makes the epochs of one run, each later than the last."""

    def __init__(self, plan: Plan, run: str, exchange: Exchange, roster: Mapping[str, Identity] | None = None) -> None:
        self.plan, self.run, self.exchange = plan, run, exchange
        self.roster = dict(roster or {})
        self.last_epoch = -1

    @property
    def header(self) -> dict[str, Scalar]:
        return {"run": self.run, "plan": self.plan.digest()}

    def hello(self) -> Envelope:
        """The plan goes with it, for parties whose policy may approve it without a person."""
        plan_text = self.plan.model_dump_json(by_alias=True)
        return Envelope({}, self.header | {"epoch": self.last_epoch + 1, "plan_text": plan_text})

    def greet(self, parties: list[str]) -> dict[str, Envelope]:
        """Say hello; every party announces a new session key."""
        return self.send("hello", dict.fromkeys(parties, self.hello()))

    def agree(self, greetings: Mapping[str, Envelope]) -> Epoch:
        """From greetings to an epoch. Parties that remember a later epoch than the others set the number for all."""
        parties = sorted(greetings)
        epoch = max(number(greeting, "epoch") for greeting in greetings.values())
        if any(number(greeting, "epoch") != epoch for greeting in greetings.values()):
            self.last_epoch = epoch - 1
            greetings = self.greet(parties)
        self.last_epoch = epoch
        period = KeyPeriod(self.run, self.plan.digest(), epoch)
        announcements = {party: self._announcement(party, greetings[party], period) for party in parties}
        content = Envelope(as_arrays("announcement", announcements), self.header | {"epoch": epoch})
        public = None
        if "ckks" in programme(self.plan).modes:
            public = self._carry_ckks_key(parties, content)
        else:
            self.send("keys", dict.fromkeys(parties, content))
        listed = () if only_plain(self.plan) else tuple(parties)
        return Epoch(period, parties, listed, {party: self.roster[party] for party in parties}, public)

    def send(self, kind: str, envelopes: dict[str, Envelope]) -> dict[str, Envelope]:
        """Everybody's reply, or `Lost`."""
        replies = self.exchange(kind, envelopes)
        if replies.lost:
            raise Lost(replies.lost)
        if set(replies.received) != set(envelopes):
            raise ProtocolError("replies came from other parties than were asked; nothing was opened")
        return replies.received

    def _announcement(self, party: str, greeting: Envelope, period: KeyPeriod) -> bytes:
        message, identity = blob(greeting, "announcement"), Identity.from_text(text(greeting, "identity"))
        if self.roster.get(party, identity) != identity:
            raise ProtocolError(f"party '{party}' shows another identity than before; compare fingerprints with it")
        verify_announcement(message, {party: identity}, period=period)
        if party not in self.roster:
            log.warning("party %s is trusted on first use, fingerprint %s", party, identity.fingerprint())
        self.roster[party] = identity
        return message

    def _carry_ckks_key(self, parties: list[str], content: Envelope) -> PublicContext:
        """The first party by name makes the key; its letters to the others pass through here, sealed."""
        leader, *others = parties
        made = self.send("keys", {leader: content})[leader]
        letters = blobs(made, "key")
        if set(letters) != {"public", *(f"for/{name}" for name in others)}:
            raise ProtocolError(f"party '{leader}' did not send the key to everybody; it runs another version")
        public = PublicContext(letters["public"])
        envelopes = {
            name: Envelope(content.arrays | {"box": as_array(letters[f"for/{name}"])}, content.options)
            for name in others
        }
        for name, reply in self.send("keys", envelopes).items():
            if text(reply, "context") != public.digest.hex():
                raise Disagreement(f"parties '{leader}' and '{name}' hold different CKKS keys; one of them is at fault")
        return public
