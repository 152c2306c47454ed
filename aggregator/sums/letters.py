"""Carrying letters between parties that hold columns of the same people; dealing, where the plan lets us.

The letters are sealed, so all that happens here is sorting them by recipient. A party that does not answer stops the
run: nobody else has its columns. Steps are those of fed_node/linkage/post.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from aggregator.errors import Disagreement
from aggregator.sums.epochs import KeyAgreement
from crypto.cross_tables import chunks_of
from crypto.dealing import deals
from crypto.encrypted_tables import rounds_of
from synth.interface import Ask, Scalar
from synth.linkage.pairs import Geometry
from synth.linkage.settings import AGGREGATOR
from synth.messages import wire
from synth.messages.fields import as_arrays, blobs, number
from synth.messages.wire import Envelope
from synth.plan import Plan
from synth.programme import inquiries

Letters = dict[str, dict[str, bytes]]  # recipient → sender → letter


class Carrier:
    """One epoch's letters, in rounds: what was written in one step is delivered with the next."""

    def __init__(self, plan: Plan, agreement: KeyAgreement, header: Mapping[str, Scalar]) -> None:
        self.plan, self.agreement, self.header = plan, agreement, dict(header)

    def key(self) -> None:
        """The key of the pseudonyms, from the first holder to the others."""
        letters, _ = self._step("key", {})
        self._step("keyed", letters)

    def shares(self, ask: Ask) -> None:
        """Everything that shares of the tables of this ask need, chunk by chunk."""
        letters, replies = self._step("seeds", {}, ask)
        places = {number(reply, "places") for reply in replies.values()}
        if len(places) != 1:
            raise Disagreement("the parties' tables do not have the same number of places; start a new run")
        geometry = Geometry.of(self.plan, inquiries(self.plan)[str(ask.options["phase"])], ask, places.pop())
        chunks = chunks_of(geometry.places, geometry.widest)
        rounds = rounds_of(geometry.places, map(geometry.widths, geometry.pairs)) if geometry.encrypted else len(chunks)
        own = deals(geometry.dealt_by(AGGREGATOR), chunks, letters.pop(AGGREGATOR, {}))
        letters, _ = self._step("deal", letters, ask)
        for recipient, letter in own.items():
            letters.setdefault(recipient, {})[AGGREGATOR] = letter
        for chunk in range(rounds + 1):
            letters, _ = self._step("rows", letters, ask, chunk)

    def _step(
        self, step: str, letters: Letters, ask: Ask | None = None, chunk: int = 0
    ) -> tuple[Letters, dict[str, Envelope]]:
        packed = wire.pack_ask(ask) if ask is not None else Envelope()
        options = self.header | packed.options | {"step": step, "chunk": chunk}
        envelopes = {
            party.name: Envelope(packed.arrays | as_arrays("letter", letters.get(party.name, {})), options)
            for party in self.plan.parties
        }
        replies = self.agreement.send("letters", envelopes)
        written: Letters = {}
        for sender, reply in replies.items():
            for recipient, letter in blobs(reply, "letter").items():
                written.setdefault(recipient, {})[sender] = letter
        return written, replies
