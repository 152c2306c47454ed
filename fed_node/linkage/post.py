"""Letters between parties, carried by an aggregator that can neither read, change, swap nor repeat them to effect.

A letter is sealed to one recipient of this epoch and signed by its sender. Its purpose names phase, step and chunk and
what the masks are for, so that a letter of another step, chunk, sender or set of bins does not open in its place. What
the aggregator deals itself (only where the plan says so) needs no seal: it is not more than a party would be told.

    key    ─► keyed                       the key of the pseudonyms, from the first holder to the others
    seeds  ─► deal ─► rows 0 ─► rows 1 …  seeds to the dealers, corrections from them, masked rows to each other
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crypto import sealed
from fed_node.errors import NoSession, sum_refusals
from fed_node.linkage.exchange import Exchange, Letters
from fed_node.linkage.rows import LinkedTable
from fed_node.seal.seal import Seal
from synth.encoding.contingency import Ints
from synth.errors import ProtocolError
from synth.interface import Inquiry
from synth.linkage.pairs import SHARED_PHASES, Geometry
from synth.linkage.settings import AGGREGATOR
from synth.messages import wire
from synth.messages.fields import as_arrays, blobs, number, text
from synth.messages.wire import Envelope
from synth.plan import Plan
from synth.privacy.noise import NoiseSource

KEY_BYTES = 32


@dataclass(frozen=True)
class Post:
    """One party's letters in one run."""

    plan: Plan
    rows: LinkedTable
    inquiries: Mapping[str, Inquiry]  # by phase
    seal: Seal

    @property
    def party(self) -> str:
        return self.rows.party

    @sum_refusals()
    def handle(self, envelope: Envelope, noise: NoiseSource) -> Envelope:
        """Take in the letters of the step before, write those of this one."""
        self.seal.sequence(envelope)  # refuses another epoch
        step, letters = text(envelope, "step"), blobs(envelope, "letter")
        if step in ("key", "keyed"):
            return self._posted(step, "", self._key(step, letters, noise))
        asked = {name: array for name, array in envelope.arrays.items() if not name.startswith("letter/")}
        ask = wire.unpack_ask(Envelope(asked, envelope.options))
        phase = str(ask.options.get("phase"))
        if phase not in self.inquiries or phase not in SHARED_PHASES:
            raise ProtocolError("letters are written before tables across parties are asked for, and before no others")
        geometry = Geometry.of(self.plan, self.inquiries[phase], ask, self.rows.places)
        exchange, about = self.rows.exchanges[phase], f"{phase} {geometry.digest()}"
        if step == "seeds":
            posted = self._posted(step, about, exchange.seeds(geometry, self._ones(geometry)))
            return Envelope(posted.arrays, {"places": geometry.places})
        if step == "deal":
            return self._posted(step, about, exchange.deal(geometry, self._opened(letters, "seeds", about)))
        if step == "rows":
            return self._rows(exchange, geometry, about, number(envelope, "chunk"), letters)
        raise ProtocolError("a message asks for letters of a step that does not exist")

    def _key(self, step: str, letters: Letters, noise: NoiseSource) -> Letters:
        """The first holder makes the key; whoever holds no columns never has it."""
        leader, *others = self.plan.holders
        if step == "key" and self.party == leader:
            if "secret" not in self.rows.page.values:
                self.rows.keep_secret(noise.child("pseudonyms").random_bytes(KEY_BYTES))
            return dict.fromkeys(others, self.rows.secret)
        if step == "keyed" and self.party in others:
            if leader not in letters:
                raise NoSession("the letter with the key of the pseudonyms is missing; the aggregator must carry it")
            self.rows.keep_secret(self._opened(letters, "key", "")[leader])
        return {}

    def _rows(self, exchange: Exchange, geometry: Geometry, about: str, chunk: int, letters: Letters) -> Envelope:
        ones = self._ones(geometry)
        if chunk == 0:
            exchange.take_deals(geometry, self._opened(letters, "deal", about))
        else:
            exchange.take_rows(geometry, ones, chunk - 1, self._opened(letters, f"rows {chunk - 1}", about))
        return self._posted(f"rows {chunk}", about, exchange.rows(geometry, ones, chunk))

    def _ones(self, geometry: Geometry) -> Ints:
        return self.rows.places_of_ones(geometry.bins, geometry.names)

    def _posted(self, step: str, about: str, letters: Letters) -> Envelope:
        recipients = self.seal.sessions.current.admitted
        boxes = {
            name: content
            if name == AGGREGATOR
            else sealed.seal(
                content,
                key=self.seal.credentials.identity,
                sender=self.party,
                recipient=recipients[name],
                purpose=_purpose(step, about),
            )
            for name, content in letters.items()
        }
        return Envelope(as_arrays("letter", boxes))

    def _opened(self, boxes: Letters, step: str, about: str) -> Letters:
        session, credentials = self.seal.sessions.current, self.seal.credentials
        dealing = self.plan.linkage is not None and self.plan.linkage.dealer == AGGREGATOR
        return {
            sender: content
            if sender == AGGREGATOR and dealing
            else sealed.unseal(
                content,
                session=session.key,
                recipient=session.admitted[self.party],
                sender=sender,
                roster=credentials.roster,
                purpose=_purpose(step, about),
            )
            for sender, content in boxes.items()
        }


def _purpose(step: str, about: str) -> str:
    return f"linkage {step} {about}"
