"""How numbers leave under masks or under encryption, as functions of one session.

Counts are masked in both modes; under CKKS the masked counts are then encrypted, so that a party which gives the
shared key away shows nobody's counts. Where losses are tolerated, they also lie under the party's own mask, in both
modes (crypto/confirming.py says why). Reals are masked, or encrypted: their noise is complete in each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from crypto.ckks import PartyContext
from crypto.confirming import cover, own_seed, uncover
from crypto.errors import Forged
from crypto.masking import RingVector, mask
from crypto.rounds import Round
from crypto.vectors import CountVector, EncryptedVectors, MaskedVectors, RealVector, Shape
from fed_node.errors import AnswerOutOfRange, NoSession
from fed_node.seal.session import Session, SessionStore
from synth.interface import Answer
from synth.messages.sums import REAL_CLIP, Layout, count_limit, tolerates_loss
from synth.plan import Plan


def shape_of(plan: Plan, layout: Layout, parties: int) -> Shape:
    return Shape(layout.counts, layout.reals, count_limit(plan), REAL_CLIP, parties)


def within_range(plan: Plan, layout: Layout, answer: Answer) -> Answer:
    """The answer with its counts limited to the room that the sum has for them.

    A count beyond the limit is cut, never refused: whether it is beyond depends on single rows through one party's
    share of the noise, and a refusal would say so for nothing. Reals carry all of their noise, so those that leave the
    range (the training went astray) may be refused; the refusal names the array, never a number.
    """
    limit, arrays = count_limit(plan), dict(answer.arrays)
    for entry in layout.entries:
        array = arrays[entry.name]
        if entry.way == "count" and limit is None:
            arrays[entry.name] = array.astype(np.int64)
        elif entry.way == "count" and limit is not None:
            room = np.iinfo(array.dtype)
            arrays[entry.name] = array.clip(max(-limit, room.min), min(limit, room.max)).astype(np.int64)
        elif array.size and not -REAL_CLIP <= array.min() <= array.max() <= REAL_CLIP:  # NaN fails every comparison
            raise AnswerOutOfRange(
                f"array '{entry.name}' of the answer is not finite or leaves ±{REAL_CLIP:g}, the room of a sum. "
                "Nothing was sent; the training went astray."
            )
    if not abs(answer.weight) <= REAL_CLIP:
        raise AnswerOutOfRange(f"the weight of the answer is not finite or leaves ±{REAL_CLIP:g}. Nothing was sent.")
    return replace(answer, arrays=arrays)


def masked(plan: Plan, session: Session, moment: Round, layout: Layout, answer: Answer) -> bytes:
    vectors = MaskedVectors(shape_of(plan, layout, len(moment.parties)))
    return _hidden(plan, session, moment, vectors.encode(*layout.flatten(answer))).tobytes()


def encrypted(plan: Plan, session: Session, moment: Round, layout: Layout, answer: Answer) -> bytes:
    vectors = EncryptedVectors(shape_of(plan, layout, len(moment.parties)))
    counts, reals = layout.flatten(answer)
    ring: RingVector = np.empty(0, dtype=np.uint32)
    if counts.size:
        ring = _hidden(plan, session, moment, vectors.ring(counts))
    return context_of(session).encrypt(vectors.slots(ring, reals), parties=len(moment.parties))


def opened(
    plan: Plan,
    sessions: SessionStore,
    moment: Round,
    layout: Layout,
    ciphertexts: Mapping[str, bytes],
    seeds: Mapping[str, bytes] | None,
) -> tuple[CountVector, RealVector]:
    """The sum of everybody's vouched ciphertexts, own masks (of these seeds) taken off, rounded.

    A forged one costs the key: no key is tried on a second.
    """
    vectors = EncryptedVectors(shape_of(plan, layout, len(moment.parties)))
    parties, minimum = moment.parties, plan.minimum_parties
    try:
        slots = context_of(sessions.current).open(
            ciphertexts.items(), length=vectors.size, parties=parties, minimum=minimum
        )
        ring, reals = vectors.parts(slots)
    except Forged:
        sessions.retire()
        raise
    if seeds is not None:
        ring = uncover(ring, seeds, parties=parties, minimum=minimum)
    return vectors.counts(ring), reals


def context_of(session: Session) -> PartyContext:
    if session.context is None:
        raise NoSession("there is no CKKS key for this run here; the aggregator must say hello again")
    return session.context


def _hidden(plan: Plan, session: Session, moment: Round, vector: RingVector) -> RingVector:
    """Under the masks shared with the others and, where losses are tolerated, the party's own."""
    vector = mask(vector, me=session.party, secrets=session.secrets, moment=moment)
    return cover(vector, own_seed(session.key, moment)) if tolerates_loss(plan) else vector
