"""How an answer leaves: plain, masked or encrypted, as the plan demands, and always signed.

The aggregator is believed in nothing: a sum opens if every party of the epoch vouched for its answer to the same ask.
One method a message: hello → keys → (ask → confirm → open) … → finish. `confirm` exists only where the plan tolerates
the loss of parties (crypto/confirming.py says why), `open` only under CKKS. Refusals of crypto/ become this party's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from crypto.confirming import consent_bytes, own_seed
from crypto.derive import digest
from crypto.framing import pack
from crypto.rounds import Round, require_epoch
from crypto.vouchers import Voucher, verify_vouchers
from fed_node import sealing
from fed_node.admission import Admission
from fed_node.answers import RUN_NAME
from fed_node.credentials import Credentials
from fed_node.errors import NotSealed, sum_refusals
from fed_node.journal import Journal, LastSealed
from fed_node.session import SessionStore
from synth import wire
from synth.errors import ProtocolError
from synth.fields import as_array, blob, blobs, number
from synth.interface import Answer, Ask
from synth.plan import Plan
from synth.programme import mode_of
from synth.sums import Layout, purpose_of, question_of, tolerates_loss
from synth.wire import Envelope


class Seal:
    """One party's part in the secure sums of one run."""

    def __init__(self, plan: Plan, party: str, run: str, home: Path, peers: Mapping[str, str]) -> None:
        if not RUN_NAME.fullmatch(run):
            raise ProtocolError("a run's name must be letters, digits, '.', '_' and '-', at most 128 of them")
        self.plan, self.run = plan, run
        self.sessions = SessionStore(home / "sessions" / run, run, party)
        self.journal = Journal(home / "sessions" / run / "journal.json")
        self.credentials = Credentials(plan, party, home, peers)
        self.admission = Admission(plan, run, self.credentials, self.sessions)

    @sum_refusals()
    def hello(self, envelope: Envelope) -> Envelope:
        return self.admission.hello(envelope)

    @sum_refusals()
    def keys(self, envelope: Envelope) -> Envelope:
        return self.admission.keys(envelope)

    @sum_refusals()
    def moment(self, envelope: Envelope) -> Round:
        """The round a message belongs to; refuses one of another epoch, before anything is computed for it."""
        epoch = number(envelope, "epoch")
        require_epoch(self.run, epoch, self.run, self.sessions.current.epoch)
        return Round(self.run, epoch, number(envelope, "sequence"))

    @sum_refusals()
    def seal(self, answer: Answer, ask: Ask, envelope: Envelope) -> Envelope:
        """The answer as it may leave."""
        moment, mode, layout = self.moment(envelope), mode_of(self.plan, ask), Layout.of(answer)
        question = question_of(ask)
        purpose = purpose_of(mode, question)
        if mode == "plain":
            plain = wire.pack_answer(answer)
            voucher = self.credentials.vouch(wire.digest(plain).encode(), moment, purpose)
            return Envelope({f"plain/{k}": v for k, v in plain.arrays.items()} | {"voucher": voucher}, plain.options)
        session = self.sessions.current
        self.journal.require_free(moment.number, session.parties)
        sealing.check_range(self.plan, layout, answer)
        text = layout.to_text()
        numbers = wire.digest(wire.pack_answer(answer))
        self.journal.seal(moment.epoch, moment.number, numbers, LastSealed(text, mode, question))
        way = sealing.masked if mode == "masked" else sealing.encrypted
        sealed = way(self.plan, session, moment, question, layout, answer)
        voucher = self.credentials.vouch(pack("sealed", text.encode(), sealed), moment, purpose)
        return Envelope({"sealed": as_array(sealed), "voucher": voucher}, {"layout": text})

    @sum_refusals()
    def confirm(self, envelope: Envelope) -> Envelope:
        """Stand by the list of parties in a sum, once and for good; for masked sums, take the own mask off."""
        moment, session = self.moment(envelope), self.sessions.current
        last = self.journal.sealed(moment.epoch, moment.number)
        self._vouched_by_all(envelope, "voucher", moment, purpose_of(last.mode, last.question))
        self.journal.confirm(moment.number, session.parties)
        seed = own_seed(session.key, moment=moment, parties=session.parties) if last.mode == "masked" else b""
        consent = self.credentials.vouch(consent_bytes(session.parties, seed), moment, "confirm")
        return Envelope({"consent": consent, "seed": as_array(seed)})

    @sum_refusals()
    def open(self, envelope: Envelope) -> Envelope:
        """The sum in the aggregator's ciphertext, if it is over exactly the parties of this epoch."""
        moment, parties = self.moment(envelope), self.sessions.current.parties
        last = self.journal.sealed(moment.epoch, moment.number)
        if last.mode != "ckks":
            raise NotSealed(f"ask {moment.number} was not encrypted; there is nothing to open")
        self._vouched_by_all(envelope, "voucher", moment, purpose_of(last.mode, last.question))
        if tolerates_loss(self.plan):  # everybody stands by this list: nobody will give these numbers to another
            for consent in self._vouched_by_all(envelope, "consent", moment, "confirm").values():
                consent.require(consent_bytes(parties))
            self.journal.confirm(moment.number, parties)
        total = blob(envelope, "total")
        self.journal.open(moment.epoch, moment.number, digest(total).hex())
        counts, reals = sealing.opened(self.plan, self.sessions, moment, Layout.from_text(last.layout), total)
        voucher = self.credentials.vouch(pack("opened", counts.tobytes(), reals.tobytes()), moment, "opened")
        return Envelope({"counts": np.asarray(counts), "reals": np.asarray(reals), "voucher": voucher})

    @sum_refusals()
    def signed(self, text: str) -> Envelope:
        """A statement of this party, signed. It is the run's last word: the keys are forgotten."""
        self.sessions.retire()
        identity = self.credentials.identity
        signature = identity.sign(text.encode()).hex()
        return Envelope({}, {"statement": text, "public_key": identity.identity.public.hex(), "signature": signature})

    def _vouched_by_all(self, envelope: Envelope, kind: str, moment: Round, purpose: str) -> dict[str, Voucher]:
        return verify_vouchers(
            blobs(envelope, kind).values(),
            self.credentials.roster,
            moment=moment,
            purpose=purpose,
            declared=self.sessions.current.parties,
            minimum=self.plan.minimum_parties,
        )
