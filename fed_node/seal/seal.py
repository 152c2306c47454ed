"""How an answer leaves: plain, masked or encrypted, as the plan demands, and always signed.

The aggregator is believed in nothing: a sum opens if every party of the epoch vouched for its answer to the same ask.
One method a message: hello → keys → (ask → confirm → open) … → finish. `confirm` exists only where the plan tolerates
the loss of parties (crypto/confirming.py says why), `open` only under CKKS: it carries every party's ciphertext and
voucher, and the opener adds up what was vouched for. Refusals of crypto/ become this party's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from crypto.confirming import consent_bytes, own_seed
from crypto.framing import pack
from crypto.rounds import Round
from crypto.vouchers import Voucher, sealed_bytes, verify_vouchers
from fed_node.answers import RUN_NAME
from fed_node.errors import NotSealed, sum_refusals
from fed_node.seal import numbers
from fed_node.seal.admission import Admission
from fed_node.seal.credentials import Credentials
from fed_node.seal.journal import Journal, LastSealed, Lists
from fed_node.seal.run_folder import RunFolder
from fed_node.seal.session import SessionStore
from fed_node.witnesses import Witnesses
from synth.errors import ProtocolError
from synth.interface import Answer, Ask
from synth.messages import wire
from synth.messages.fields import as_array, blobs, number
from synth.messages.sums import CONFIRM, OPENED, Layout, purpose_of, question_of, tolerates_loss
from synth.messages.wire import Envelope
from synth.plan import Plan
from synth.programme import mode_of


class Seal:
    """One party's part in the secure sums of one run, under the one plan that the run belongs to."""

    def __init__(
        self,
        plan: Plan,
        party: str,
        run: str,
        home: Path,
        peers: Mapping[str, str],
        lists: Lists,
        witnesses: Witnesses | None = None,
    ) -> None:
        if not RUN_NAME.fullmatch(run):
            raise ProtocolError("a run's name must be letters, digits, '.', '_' and '-', at most 128 of them")
        self.plan = plan
        folder = RunFolder(home / "sessions" / run, plan.digest())
        self.sessions, self.journal = SessionStore(folder, run, party), Journal(folder, lists)
        self.credentials = Credentials(plan, party, home, peers)
        self.admission = Admission(plan, self.credentials, self.sessions, witnesses)

    @sum_refusals()
    def check_hello(self, envelope: Envelope) -> None:
        """Refuse a hello that could not be answered, before anything is written for it."""
        self.admission.check_hello(envelope)

    @sum_refusals()
    def hello(self, envelope: Envelope) -> Envelope:
        return self.admission.hello(envelope)

    @sum_refusals()
    def keys(self, envelope: Envelope) -> Envelope:
        return self.admission.keys(envelope)

    @sum_refusals()
    def sequence(self, envelope: Envelope) -> int:
        """The number of the ask that a message is about; refuses another epoch, before anything is computed for it."""
        self.sessions.period(number(envelope, "epoch")).require(self.sessions.current.period)
        return number(envelope, "sequence")

    @sum_refusals()
    def seal(self, answer: Answer, ask: Ask, envelope: Envelope) -> Envelope:
        """The answer as it may leave."""
        session, mode, layout = self.sessions.current, mode_of(self.plan, ask), Layout.of(answer)
        moment = session.round(self.sequence(envelope), question_of(ask))
        if mode == "plain":
            plain = wire.pack_answer(answer)
            voucher = self.credentials.vouch(wire.digest(plain).encode(), moment, purpose_of(mode))
            return Envelope({f"plain/{k}": v for k, v in plain.arrays.items()} | {"voucher": voucher}, plain.options)
        answer, text = numbers.within_range(self.plan, layout, answer), layout.to_text()
        content = wire.digest(wire.pack_answer(answer)).encode()
        what = LastSealed(text, mode, moment.question)
        self.journal.seal(moment, content, what, under_own_mask=tolerates_loss(self.plan))
        way = numbers.masked if mode == "masked" else numbers.encrypted
        sealed = way(self.plan, session, moment, layout, answer)
        voucher = self.credentials.vouch(sealed_bytes(text, sealed), moment, purpose_of(mode))
        return Envelope({"sealed": as_array(sealed), "voucher": voucher}, {"layout": text})

    @sum_refusals()
    def confirm(self, envelope: Envelope) -> Envelope:
        """Stand by the list of parties in a sum, once and for good, and take the own mask off."""
        moment, last = self._last_sealed(envelope)
        if not tolerates_loss(self.plan):
            raise NotSealed(f"ask {moment.number} has no mask of this party's own; there is nothing to confirm")
        self._vouched_by_all(envelope, "voucher", moment, purpose_of(last.mode))
        self.journal.confirm(moment)
        seed = own_seed(self.sessions.current.key, moment)
        consent = self.credentials.vouch(consent_bytes(seed), moment, CONFIRM)
        return Envelope({"consent": consent, "seed": as_array(seed)})

    @sum_refusals()
    def open(self, envelope: Envelope) -> Envelope:
        """The sum of the ciphertexts that the parties of this epoch vouched for, added up here."""
        moment, last = self._last_sealed(envelope)
        if last.mode != "ckks":
            raise NotSealed(f"ask {moment.number} was not encrypted; there is nothing to open")
        ciphertexts = blobs(envelope, "sealed")
        vouched = self._vouched_by_all(envelope, "voucher", moment, purpose_of("ckks"))
        for party, voucher in vouched.items():
            voucher.require(sealed_bytes(last.layout, ciphertexts.get(party, b"")))
        seeds = self._consented(envelope, moment) if tolerates_loss(self.plan) else None
        self.journal.open(moment, pack("vouched", *(vouched[party].payload_digest for party in moment.parties)))
        layout = Layout.from_text(last.layout)
        counts, reals = numbers.opened(self.plan, self.sessions, moment, layout, ciphertexts, seeds)
        self.journal.release(moment, counts.tobytes())
        signed = self.credentials.vouch(pack("opened", counts.tobytes(), reals.tobytes()), moment, OPENED)
        return Envelope({"counts": np.asarray(counts), "reals": np.asarray(reals), "voucher": signed})

    @sum_refusals()
    def signed(self, text: str) -> Envelope:
        """A statement of this party, signed. It is the run's last word: the keys are forgotten."""
        self.sessions.retire()
        identity = self.credentials.identity
        signature = identity.sign(text.encode()).hex()
        return Envelope({}, {"statement": text, "public_key": identity.identity.public.hex(), "signature": signature})

    def _last_sealed(self, envelope: Envelope) -> tuple[Round, LastSealed]:
        """What this party sealed last, if the message is about it."""
        sequence, session = self.sequence(envelope), self.sessions.current
        last = self.journal.sealed(session.epoch, sequence)
        return session.round(sequence, last.question), last

    def _consented(self, envelope: Envelope, moment: Round) -> dict[str, bytes]:
        """The seed of everybody's own mask, signed: nobody will give these numbers to another list of parties."""
        seeds = blobs(envelope, "seed")
        for party, consent in self._vouched_by_all(envelope, "consent", moment, CONFIRM).items():
            consent.require(consent_bytes(seeds.get(party, b"")))
        self.journal.confirm(moment)
        return seeds

    def _vouched_by_all(self, envelope: Envelope, kind: str, moment: Round, purpose: str) -> dict[str, Voucher]:
        return verify_vouchers(
            blobs(envelope, kind).values(),
            self.credentials.roster,
            moment=moment,
            purpose=purpose,
            minimum=self.plan.minimum_parties,
        )
