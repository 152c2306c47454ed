"""How numbers leave under masks or under encryption, as functions of one session.

Counts are masked in both modes; under CKKS the masked counts are then encrypted, so that a party which gives the
shared key away shows nobody's counts. Reals are masked, or encrypted: their noise is complete in each of them.
"""

from __future__ import annotations

import numpy as np

from crypto.ckks import PartyContext
from crypto.confirming import cover, own_seed
from crypto.errors import Forged
from crypto.masking import RingVector, mask
from crypto.rounds import Round
from crypto.vectors import CountVector, EncryptedVectors, MaskedVectors, RealVector, Shape
from fed_node.errors import AnswerOutOfRange, NoSession
from fed_node.session import Session, SessionStore
from synth.interface import Answer
from synth.plan import Plan
from synth.sums import REAL_CLIP, Layout, count_limit, tolerates_loss


def shape_of(plan: Plan, layout: Layout, parties: int) -> Shape:
    return Shape(layout.counts, layout.reals, count_limit(plan), REAL_CLIP, parties)


def check_range(plan: Plan, layout: Layout, answer: Answer) -> None:
    """Refuse numbers that the sum has no room for; the refusal names the array, never a number."""
    for entry in layout.entries:
        limit = count_limit(plan) if entry.way == "count" else REAL_CLIP
        array = answer.arrays[entry.name]
        if array.size and not -limit <= array.min() <= array.max() <= limit:  # NaN fails every comparison
            raise AnswerOutOfRange(
                f"array '{entry.name}' of the answer is not finite or leaves ±{limit:g}, the room of a sum. Nothing "
                "was sent. For counts, declare more rows in the plan; otherwise the training went astray."
            )
    if not abs(answer.weight) <= REAL_CLIP:
        raise AnswerOutOfRange(f"the weight of the answer is not finite or leaves ±{REAL_CLIP:g}. Nothing was sent.")


def masked(plan: Plan, session: Session, moment: Round, question: str, layout: Layout, answer: Answer) -> bytes:
    vectors, secrets = MaskedVectors(shape_of(plan, layout, len(session.parties))), session.secrets_for(question)
    vector = mask(vectors.encode(*layout.flatten(answer)), me=session.party, secrets=secrets, moment=moment)
    if tolerates_loss(plan):
        vector = cover(vector, own_seed(session.key, moment=moment, parties=session.parties))
    return vector.tobytes()


def encrypted(plan: Plan, session: Session, moment: Round, question: str, layout: Layout, answer: Answer) -> bytes:
    vectors, secrets = EncryptedVectors(shape_of(plan, layout, len(session.parties))), session.secrets_for(question)
    counts, reals = layout.flatten(answer)
    ring: RingVector = np.empty(0, dtype=np.uint32)
    if counts.size:
        ring = mask(vectors.ring(counts), me=session.party, secrets=secrets, moment=moment)
    return context_of(session).encrypt(
        vectors.slots(ring, reals), party=session.party, parties=session.parties, moment=moment
    )


def opened(
    plan: Plan, sessions: SessionStore, moment: Round, layout: Layout, total: bytes
) -> tuple[CountVector, RealVector]:
    """The sum in a ciphertext, rounded. A forged one costs the key: no key is tried on a second."""
    session = sessions.current
    vectors = EncryptedVectors(shape_of(plan, layout, len(session.parties)))
    try:
        slots = context_of(session).open(
            total, length=vectors.size, parties=session.parties, moment=moment, minimum=plan.minimum_parties
        )
        return vectors.decode(slots)
    except Forged:
        sessions.retire()
        raise


def context_of(session: Session) -> PartyContext:
    if session.context is None:
        raise NoSession("there is no CKKS key for this run here; the aggregator must say hello again")
    return session.context
