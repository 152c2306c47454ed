"""A party's own mask: it stays on until the party has seen who is in the sum and stands by that list.

Pairwise masks alone would let an aggregator open one party's vector: it collects everybody's, claims that one of them
was lost, has the others send the same numbers again without it, and subtracts the two sums. So, where losses are
tolerated, each party adds one more stream that only it knows and reveals its seed once per round, for one list of
parties. A sum needs every seed of its list; a list that was never confirmed by all stays closed for ever.

The rule for callers, in both modes of a secure sum: a count either leaves under its party's own mask, or it is bound to
the list it leaves for by leaving. Under CKKS too, where the mask lies inside the ciphertext: all parties share that
key, so one of them could open two lists for the aggregator without asking anybody to confirm either.
"""

from collections.abc import Collection, Mapping

import numpy as np

from crypto.derive import KEY_BYTES, KeyStream, derive_key
from crypto.errors import Malformed
from crypto.framing import pack
from crypto.keys import SessionKey
from crypto.masking import RingVector
from crypto.rounds import FEWEST_PARTIES, Round, require_exactly


def consent_bytes(seed: bytes) -> bytes:
    """What a party signs for a round, and thereby for its list of parties, together with the seed it reveals."""
    return pack("consent", seed)


def own_seed(session: SessionKey, moment: Round) -> bytes:
    """The seed of this party's own mask in this round; another plan, list, number or question gives another."""
    return derive_key(session.to_bytes(), pack("own mask", moment.to_bytes()))


def cover(vector: RingVector, seed: bytes) -> RingVector:
    """The vector under the party's own mask."""
    return vector + _own_mask(vector, seed)


def uncover(
    total: RingVector, seeds: Mapping[str, bytes], *, parties: Collection[str], minimum: int = FEWEST_PARTIES
) -> RingVector:
    """The sum without its parties' own masks; every one of them must have revealed its seed."""
    require_exactly(seeds, parties, minimum)
    opened = total.copy()
    for seed in seeds.values():
        opened -= _own_mask(total, seed)
    return opened


def _own_mask(like: RingVector, seed: bytes) -> RingVector:
    if len(seed) != KEY_BYTES:
        raise Malformed(f"the seed of a mask has {KEY_BYTES} bytes; ask for it again")
    stream: RingVector = np.asarray(KeyStream(like.nbytes).of(seed).view(like.dtype))
    return stream
