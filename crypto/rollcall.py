"""The roll call: a few slots in every CKKS chunk that only the whole, declared set of parties can answer.

Each party encrypts, beside its values, numbers derived from a key that the parties share and the aggregator
lacks. An opened sum must show the sum of everybody's numbers. A sum that leaves a party out, counts one twice,
belongs to another round, mixes chunks or was opened under another key answers wrongly, but for a chance of
(parties / SLOT_LIMIT)^ROLL_CALL_SLOTS: 1e-32 for ten parties, 1e-24 for a hundred.

It proves who is in the sum, which is what privacy needs. It does not stop an aggregator from adding a known
offset to the values: such a sum still hides every party, and the aggregator receives the result anyway.
"""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from crypto.derive import KeyStream, derive_key
from crypto.errors import Forged
from crypto.framing import pack
from crypto.rounds import Round
from crypto.slots import slot_share

ROLL_CALL_SLOTS = 8
_TOLERANCE = 1e-3  # the numbers are whole, the error of a sum is below 1e-4; more would let small tampering pass


def roll_numbers(
    key: bytes, party: str, *, parties: Collection[str], moment: Round, chunks: int
) -> NDArray[np.float64]:
    """This party's numbers, of shape (chunks, ROLL_CALL_SLOTS), between 0 and its share of a slot."""
    names = pack("parties", *(each.encode() for each in sorted(parties)))
    stream_key = derive_key(key, pack("roll call", moment.to_bytes(), party.encode(), names))
    words = KeyStream(chunks * ROLL_CALL_SLOTS * 8).of(stream_key).view("<u8")
    numbers = words % np.uint64(slot_share(len(parties)))
    return numbers.astype(np.float64).reshape(chunks, ROLL_CALL_SLOTS)


def require_all_present(opened: NDArray[np.float64], key: bytes, *, parties: Collection[str], moment: Round) -> None:
    """Refuse an opened sum whose roll call is not answered by every party once."""
    expected = np.zeros_like(opened)
    for party in parties:
        expected += roll_numbers(key, party, parties=parties, moment=moment, chunks=len(opened))
    if not np.all(np.abs(opened - expected) < _TOLERANCE):
        raise Forged("a sum is not over exactly the declared parties of this round; nothing was opened")
