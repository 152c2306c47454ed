"""Sums of the parties' answers, formed without seeing a summand (plain mode excepted, and then the plan says so).

Losses are handled here and nowhere else. A party that does not answer ends the epoch: the others, if the plan says
they are enough, agree on new keys and send their stored answers again. Nothing is opened from fewer; the run can be
resumed when the missing are back. A party that lost its keys does not end its part: everybody agrees on new ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

from pydantic import ValidationError

from aggregator.errors import Disagreement, Lost, sum_refusals
from aggregator.sums.adding import (
    FEWEST_OPENERS,
    Confirmation,
    Sealed,
    confirmations,
    plain_answers,
    plain_total,
    sealed_round,
    weight_of,
)
from aggregator.sums.bound import BoundLists
from aggregator.sums.epochs import Epoch, KeyAgreement
from aggregator.sums.exchange import Exchange
from aggregator.sums.letters import Carrier
from crypto.keys import Identity
from crypto.rounds import Round
from synth.certificate.certificate import Signature, SignedStatement, Statement, events_of
from synth.errors import InputError, MissingParties, PrivacyError, ProtocolError, Refusal
from synth.interface import Answer, Ask, Scalar, Sum
from synth.linkage.pairs import SHARED_PHASES
from synth.messages import wire
from synth.messages.fields import as_arrays, text
from synth.messages.sums import purpose_of, question_of, tolerates_loss
from synth.messages.wire import Envelope
from synth.plan import Plan
from synth.privacy.workable import unworkable
from synth.programme import mode_of, programme, whole_cost

log = logging.getLogger("aggregator")
T = TypeVar("T")

CURED_BY_NEW_KEYS = {"no-session", "already-opened", "second-vector", "crypto.misplaced.wrong-epoch"}
MOST_TURNS = 5  # beside one for each party that may be lost


class SecureSum:
    """One ask out, one sum back."""

    def __init__(
        self,
        plan: Plan,
        run: str,
        exchange: Exchange,
        roster: Mapping[str, Identity] | None = None,
        lists: BoundLists | None = None,
    ) -> None:
        self.plan, self.run, self.lists = plan, run, lists or BoundLists()
        self.agreement = KeyAgreement(plan, run, exchange, roster)
        self.parties = [party.name for party in plan.parties]  # who still takes part
        self.epoch: Epoch | None = None

    def hello(self) -> Envelope:
        return self.agreement.hello()

    def agree_on_keys(self, greetings: Mapping[str, Envelope]) -> None:
        """Begin the first epoch of this admission with the parties that greeted."""
        self._go_on_without(set(self.parties) - set(greetings))
        first = [greetings]
        self._persist(lambda: self._current_epoch(first.pop() if first else None))

    def total(self, ask: Ask, sequence: int) -> Sum:
        return self._persist(lambda: self._round(ask, sequence))

    def finish(self) -> list[SignedStatement]:
        """Every party's own, signed account of the run; of a lost one if it can be reached by now."""
        envelope = Envelope({}, self.agreement.header)
        replies = self._persist(lambda: self.agreement.send("finish", dict.fromkeys(self.parties, envelope)))
        lost = [party.name for party in self.plan.parties if party.name not in self.parties]
        found = replies | {party: reply for party in lost if (reply := self._last_word(party, envelope))}
        return [self._statement(party, reply) for party, reply in sorted(found.items())]

    def _last_word(self, party: str, envelope: Envelope) -> Envelope | None:
        """What a lost party says after all; it may refuse, or be away still, and the run ends without it."""
        try:
            return self.agreement.exchange("finish", {party: envelope}).received.get(party)
        except (Refusal, MissingParties) as error:
            log.warning("lost party %s made no statement (%s)", party, error.code)
            return None

    def _persist(self, step: Callable[[], T]) -> T:
        """Try until it works, in a new epoch each time, while there are parties enough and new keys can help."""
        for _ in range(MOST_TURNS + len(self.plan.parties)):
            try:
                with sum_refusals():
                    return step()
            except Lost as lost:
                self._go_on_without(set(lost.parties))
            except Refusal as refusal:
                if refusal.code not in CURED_BY_NEW_KEYS:
                    raise
                log.warning("party %s needs new keys (%s); a new epoch begins", refusal.party, refusal.code)
            self.epoch = None
        raise ProtocolError("the parties lose their keys faster than they agree on new ones; see their logs")

    def _go_on_without(self, lost: set[str]) -> None:
        rest = [party for party in self.parties if party not in lost]
        if missed := sorted(lost & self.lists.needed):
            raise _needed(missed)
        if len(rest) < self.plan.minimum_parties:
            raise MissingParties(
                f"no answer from {', '.join(sorted(lost))}; the plan opens no sum of fewer than "
                f"{self.plan.minimum_parties} parties. Nothing is lost: resume when they are back."
            )
        if lost:
            log.warning("going on without %s: %d parties are left", ", ".join(sorted(lost)), len(rest))
        self.parties = rest

    def _current_epoch(self, greetings: Mapping[str, Envelope] | None = None) -> Epoch:
        if self.epoch is None:
            self.epoch = self.agreement.agree(greetings or self.agreement.greet(self.parties))
        return self.epoch

    def _recall(self, sequence: int) -> None:
        """A sum whose list was shown to the parties is formed with that list or never."""
        bound = self.lists.of(sequence)
        if bound is not None and bound != sorted(self.parties):
            log.warning("ask %d is bound to %s; they are asked again", sequence, ", ".join(bound))
            self.parties, self.epoch = bound, None

    def _round(self, ask: Ask, sequence: int) -> Sum:
        self._recall(sequence)
        epoch, mode = self._current_epoch(), mode_of(self.plan, ask)
        moment, packed, purpose = epoch.round(sequence, question_of(ask)), wire.pack_ask(ask), purpose_of(mode)
        header = self._header(moment)
        if self.plan.partition == "columns":
            self._carry_letters(ask, header, sequence)
        content = Envelope(packed.arrays, packed.options | header)
        replies = self.agreement.send("ask", dict.fromkeys(epoch.parties, content))
        if mode == "plain":
            answers = plain_answers(epoch, moment, purpose, replies)
            added = plain_total(answers) if ask.options.get("phase") != "alignment" else weight_of(answers)
            return Sum(added.arrays, added.weight, tuple(epoch.parties), answers if ask.combine == "gather" else {})
        sealed = sealed_round(self.plan, epoch, moment, purpose, replies)
        confirmed = self._confirmed(sealed) if tolerates_loss(self.plan) else None
        total = sealed.masked_total(confirmed) if mode == "masked" else self._opened(sealed, confirmed)
        return Sum(total.arrays, total.weight, tuple(epoch.parties))

    def _carry_letters(self, ask: Ask, header: dict[str, Scalar], sequence: int) -> None:
        """What parties must have told each other before they can answer: a key to align by, shares to count with."""
        carrier, stage = Carrier(self.plan, self.agreement, header), programme(self.plan).stage(ask.options["phase"])
        if stage.phase == "alignment":
            carrier.key()
        elif stage.phase == "training" and self.plan.family.published_by_columns:
            return  # a protocol without tables
        elif stage.phase in SHARED_PHASES and stage.first == sequence:
            carrier.shares(ask)

    def _confirmed(self, sealed: Sealed) -> dict[str, Confirmation]:
        """Let every party see who is in the sum. One that is lost now must come back: its sum may be known already."""
        content = Envelope(as_arrays("voucher", sealed.vouchers), self._header(sealed.moment))
        self.lists.bind(sealed.moment.number, sealed.epoch.parties)
        try:
            replies = self.agreement.send("confirm", dict.fromkeys(sealed.epoch.parties, content))
        except Lost as lost:
            self.epoch = None
            raise _needed(lost.parties) from lost
        return confirmations(sealed.epoch, sealed.moment, replies)

    def _opened(self, sealed: Sealed, confirmed: Mapping[str, Confirmation] | None) -> Answer:
        """Every opener receives all ciphertexts, so no more are asked than needed; another for each that is lost."""
        content = Envelope(sealed.to_open(confirmed), self._header(sealed.moment))
        opened: dict[str, Envelope] = {}
        lost: list[str] = []
        while (needed := FEWEST_OPENERS - len(opened)) > 0:
            if not (chosen := sealed.epoch.parties[len(opened) + len(lost) :][:needed]):
                raise Lost(lost)
            replies = self.agreement.exchange("open", dict.fromkeys(chosen, content))
            opened |= replies.received
            lost += replies.lost
        return sealed.agreed(opened)

    def _header(self, moment: Round) -> dict[str, Scalar]:
        return self.agreement.header | {"epoch": moment.period.epoch, "sequence": moment.number}

    def _statement(self, party: str, reply: Envelope) -> SignedStatement:
        """Refuse a statement that is not this party's own, of this run and plan."""
        public_key, signature = text(reply, "public_key"), text(reply, "signature")
        signed = SignedStatement(
            text=text(reply, "statement"), signature=Signature(public_key=public_key, signature=signature)
        )
        try:
            statement, raw = signed.statement, bytes.fromhex(signature)
        except (ValidationError, ValueError, InputError):
            raise ProtocolError(f"the statement of '{party}' cannot be read; it runs another version") from None
        identity = self.agreement.roster[party]
        with sum_refusals():
            identity.verify(raw, signed.text.encode())
        expected = (party, self.run, self.plan.digest(), identity.public.hex())
        if (statement.party, statement.run, statement.plan_digest, public_key) != expected:
            raise Disagreement(f"the statement of '{party}' is about another party, run or plan")
        self._require_workable(statement)
        return signed

    def _require_workable(self, statement: Statement) -> None:
        """Refuse events that would take hours to compose, and are none that the plan's asks cost."""
        try:
            planned = {event.units()[0] for event in whole_cost(self.plan, statement.party)}
            wrong = unworkable(events_of(statement), planned)
        except PrivacyError as error:
            wrong = str(error)
        if wrong:
            raise Disagreement(f"'{statement.party}' states to have spent what the plan does not cost: {wrong}")


def _needed(parties: list[str]) -> MissingParties:
    """There is no way around a party that others vouched to be in a sum, and this says so."""
    return MissingParties(
        f"{', '.join(parties)} answered and then went silent; the others stand by a sum with them in it, and it can be "
        "formed with nobody missing. Nothing is lost: resume when they are back. If they never are, this run is over: "
        "take them out of the plan, give it another name and have it approved."
    )
