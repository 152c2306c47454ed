"""Pairwise masking: each party's vector alone is uniform noise, and the noise cancels in the sum.

Every pair of parties shares one key stream per round. The party whose name comes first adds it, the other
subtracts it, modulo 2^32 or 2^64. Opening is nothing but the modular sum over exactly the declared parties: with
one of them missing, its uncancelled masks leave the rest uniform. No mask is ever revealed; a lost party means a
new epoch, not a recovery. Cost: one AES-CTR pass and one addition per other party.

A stream must not mask two different vectors. The caller keeps the rounds it has answered and refuses to answer
one of them with another vector; here the round, which names the list of parties, is simply required.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.derive import KeyStream
from crypto.errors import DuplicateParty, WrongShape
from crypto.pairing import PairSecret
from crypto.rounds import FEWEST_PARTIES, Round, require_exactly

RingVector = NDArray[np.unsignedinteger[Any]]
RING_TYPES = (np.dtype("<u4"), np.dtype("<u8"))


def mask(vector: RingVector, *, me: str, secrets: Mapping[str, PairSecret], moment: Round) -> RingVector:
    """``vector`` plus this party's masks of this round; 1-D, of the ring's type, as long as everybody's."""
    _require_ring(vector)
    if me in secrets:
        raise DuplicateParty(f"{me!r} shares a secret with itself; rebuild the pair secrets of this epoch")
    require_exactly([me, *secrets], moment.parties)
    masked = vector.copy()
    stream = KeyStream(vector.nbytes)
    for other in secrets:
        words = stream.of(secrets[other].stream_key(moment)).view(vector.dtype)
        if me < other:
            masked += words
        else:
            masked -= words
    return masked


def masked_sum(
    contributions: Iterable[tuple[str, RingVector]],
    *,
    parties: Collection[str],
    minimum: int = FEWEST_PARTIES,
) -> RingVector:
    """The sum of the unmasked vectors modulo the ring, from one masked vector of each declared party."""
    received = list(contributions)
    require_exactly((party for party, _ in received), parties, minimum)
    first = received[0][1]
    for party, vector in received:
        _require_ring(vector)
        if vector.shape != first.shape or vector.dtype != first.dtype:
            raise WrongShape(f"the vector of {party!r} differs from the others in length or ring; nothing was added")
    total = first.copy()
    for _, vector in received[1:]:
        total += vector
    return total


def _require_ring(vector: RingVector) -> None:
    if vector.dtype not in RING_TYPES:
        raise WrongShape("a masked vector must be of type uint32 or uint64, little-endian; quantise it first")
    if vector.ndim != 1 or vector.size == 0:
        raise WrongShape("a masked vector must have one dimension and at least one entry")
