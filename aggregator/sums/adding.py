"""From sealed answers to their sum: the arithmetic of each mode, and what is checked before it.

A contribution counts if its sender signed it for this very round. Under masks the sum opens by itself once it is
complete (and confirmed, where losses are tolerated). Under CKKS only the parties open it, and they add it up themselves
from everybody's ciphertexts: a sum that the aggregator added could be anything. Two of them must agree, so that no
single party decides what the sum was.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from aggregator.errors import Disagreement
from aggregator.sums.epochs import Epoch
from crypto.confirming import consent_bytes, uncover
from crypto.framing import pack
from crypto.masking import masked_sum
from crypto.rounds import Round
from crypto.vectors import EncryptedVectors, MaskedVectors, Shape
from crypto.vouchers import sealed_bytes, verify_voucher
from synth.errors import ProtocolError
from synth.interface import Answer, Arrays
from synth.messages import wire
from synth.messages.fields import as_arrays, blob, text
from synth.messages.sums import CONFIRM, OPENED, REAL_CLIP, Layout, count_limit
from synth.messages.wire import Envelope
from synth.plan import Plan

FEWEST_OPENERS = 2


@dataclass(frozen=True)
class Contribution:
    """A party's sealed answer, its signature verified."""

    layout: Layout
    sealed: bytes
    voucher: bytes


@dataclass(frozen=True)
class Confirmation:
    """A party stands by the list of parties in a sum and reveals the seed of its own mask there."""

    consent: bytes
    seed: bytes


@dataclass(frozen=True)
class Sealed:
    """One round's contributions, complete and alike."""

    plan: Plan
    epoch: Epoch
    moment: Round
    layout: Layout
    contributions: dict[str, Contribution]

    @property
    def vouchers(self) -> dict[str, bytes]:
        return {party: each.voucher for party, each in self.contributions.items()}

    @property
    def shape(self) -> Shape:
        return Shape(self.layout.counts, self.layout.reals, count_limit(self.plan), REAL_CLIP, len(self.epoch.parties))

    def masked_total(self, confirmed: Mapping[str, Confirmation] | None) -> Answer:
        """The sum of masked vectors; `confirmed` where losses are tolerated, and own masks must come off."""
        vectors = MaskedVectors(self.shape)
        for party, each in self.contributions.items():
            if len(each.sealed) != 8 * vectors.size:
                raise ProtocolError(f"the masked answer of '{party}' does not have the length it claims")
        received = [(party, np.frombuffer(each.sealed, dtype="<u8")) for party, each in self.contributions.items()]
        parties, minimum = self.epoch.parties, self.plan.minimum_parties
        total = masked_sum(received, parties=parties, minimum=minimum)
        if confirmed is not None:
            seeds = {party: confirmation.seed for party, confirmation in confirmed.items()}
            total = uncover(total, seeds, parties=parties, minimum=minimum)
        return self.layout.restore(*vectors.decode(total))

    def to_open(self, confirmed: Mapping[str, Confirmation] | None) -> Arrays:
        """All that a party needs to add up and open the ciphertexts, once each of them is what it should be."""
        if self.epoch.public is None:
            raise ProtocolError("an encrypted answer came in an epoch without a CKKS key")
        for each in self.contributions.values():
            self.epoch.public.checked(each.sealed, EncryptedVectors(self.shape).size)
        sealed = {party: each.sealed for party, each in self.contributions.items()}
        consents = {party: each.consent for party, each in (confirmed or {}).items()}
        seeds = {party: each.seed for party, each in (confirmed or {}).items()}
        vouched = as_arrays("sealed", sealed) | as_arrays("voucher", self.vouchers)
        return vouched | as_arrays("consent", consents) | as_arrays("seed", seeds)

    def agreed(self, opened: Mapping[str, Envelope]) -> Answer:
        """The one sum that the openers report; reals may differ by a step of rounding."""
        step = EncryptedVectors(self.shape).step
        answers = {party: self._opened_by(party, reply) for party, reply in opened.items()}
        (first, one), *others = answers.items()
        for party, other in others:
            close = abs(one.weight - other.weight) <= step and all(
                np.all(np.abs(one.arrays[entry.name] - other.arrays[entry.name]) <= (entry.way == "real") * step)
                for entry in self.layout.entries
            )
            if not close:
                raise Disagreement(f"parties '{first}' and '{party}' opened different sums; one of them is at fault")
        return one

    def _opened_by(self, party: str, reply: Envelope) -> Answer:
        counts, reals = reply.arrays.get("counts"), reply.arrays.get("reals")
        if counts is None or reals is None or counts.dtype != np.int64 or reals.dtype != np.float64:
            raise ProtocolError(f"party '{party}' opened a sum in an unknown form; it runs another version")
        if not np.isfinite(reals).all():
            raise ProtocolError(f"party '{party}' opened a sum that is not finite; it is refused")
        payload = pack("opened", counts.tobytes(), reals.tobytes())
        with blamed(party):
            require_voucher(blob(reply, "voucher"), payload, self.epoch, party, self.moment, OPENED)
            return self.layout.restore(counts, reals)


def sealed_round(plan: Plan, epoch: Epoch, moment: Round, purpose: str, replies: Mapping[str, Envelope]) -> Sealed:
    """Verify every contribution; all must have the same layout."""
    contributions = {}
    for party, reply in sorted(replies.items()):
        with blamed(party):
            layout, sealed, voucher = text(reply, "layout"), blob(reply, "sealed"), blob(reply, "voucher")
            require_voucher(voucher, sealed_bytes(layout, sealed), epoch, party, moment, purpose)
            contributions[party] = Contribution(Layout.from_text(layout), sealed, voucher)
    layout_of_all = _one_layout({party: each.layout for party, each in contributions.items()})
    return Sealed(plan, epoch, moment, layout_of_all, contributions)


def plain_answers(epoch: Epoch, moment: Round, purpose: str, replies: Mapping[str, Envelope]) -> dict[str, Answer]:
    answers = {}
    for party, reply in sorted(replies.items()):
        arrays = {k.removeprefix("plain/"): v for k, v in reply.arrays.items() if k.startswith("plain/")}
        plain = Envelope(arrays, {"weight": reply.options.get("weight", "missing")})
        with blamed(party):
            answers[party] = wire.unpack_answer(plain)
            require_voucher(blob(reply, "voucher"), wire.digest(plain).encode(), epoch, party, moment, purpose)
            Layout.of(answers[party])  # integers and reals only
        if not math.isfinite(answers[party].weight) or not all(np.isfinite(array).all() for array in arrays.values()):
            raise ProtocolError(f"the answer of '{party}' is not finite; nothing was added")
    return answers


def plain_total(answers: Mapping[str, Answer]) -> Answer:
    """The sum of plain answers."""
    layout = _one_layout({party: Layout.of(answer) for party, answer in answers.items()})
    vectors = [layout.flatten(answer) for answer in answers.values()]
    counts, reals = (np.sum(parts, axis=0) for parts in zip(*vectors, strict=True))
    return layout.restore(counts, reals)


def weight_of(answers: Mapping[str, Answer]) -> Answer:
    """What is added up of answers that are only looked at, one by one, and need not be alike."""
    return Answer({}, sum(answer.weight for answer in answers.values()))


def confirmations(epoch: Epoch, moment: Round, replies: Mapping[str, Envelope]) -> dict[str, Confirmation]:
    """Everybody's signature under the list of parties, verified."""
    found = {}
    for party, reply in replies.items():
        with blamed(party):
            consent, seed = blob(reply, "consent"), blob(reply, "seed")
            require_voucher(consent, consent_bytes(seed), epoch, party, moment, CONFIRM)
        found[party] = Confirmation(consent, seed)
    return found


@contextmanager
def blamed(party: str) -> Iterator[None]:
    """Whose message it was that could not be used: the others need not look for the fault."""
    try:
        yield
    except ProtocolError as error:
        if f"'{party}'" in str(error):
            raise
        raise ProtocolError(f"the answer of '{party}' cannot be used: {error}") from error


def _one_layout(layouts: Mapping[str, Layout]) -> Layout:
    """The layout of all answers; whoever has another than most is named."""
    usual, often = Counter(layouts.values()).most_common(1)[0]
    if often == len(layouts):
        return usual
    others = sorted(party for party, layout in layouts.items() if layout != usual)
    raise Disagreement(
        "the parties' answers have different arrays; they run different versions "
        + (f"(unlike most: {', '.join(others)})" if often > 1 else "")
    )


def require_voucher(voucher: bytes, payload: bytes, epoch: Epoch, party: str, moment: Round, purpose: str) -> None:
    found = verify_voucher(voucher, epoch.roster, moment=moment, purpose=purpose)
    if found.party != party:
        raise Disagreement(f"party '{party}' sent what another party signed")
    found.require(payload)
