"""One party's encrypted vector on its way: chunks of ciphertext and what they claim to be.

The claims (context, entries) are checked before any ciphertext is touched; the sender's voucher makes them true. Sums
have no such form: whoever opens one adds it up itself, so none ever travels.
"""

from dataclasses import dataclass

from crypto.errors import Malformed, WrongContext, WrongShape
from crypto.framing import number_bytes, pack, read_number, unpack

SLOTS = 2048  # values in one chunk
CHUNK_BYTES = 2 * 4096 * 8  # two polynomials of 4096 coefficients of eight bytes


@dataclass(frozen=True)
class EncryptedVector:
    context_digest: bytes
    length: int  # values, without padding
    body: bytes  # chunks one after the other

    def to_bytes(self) -> bytes:
        return pack("encrypted vector", self.context_digest, number_bytes(self.length), self.body)

    @classmethod
    def from_bytes(cls, data: bytes) -> "EncryptedVector":
        context_digest, length_field, body = unpack("encrypted vector", data, 3)
        length = read_number(length_field)
        if length < 1 or len(body) != chunks_for(length) * CHUNK_BYTES:
            raise Malformed("an encrypted vector's length does not match its ciphertexts; ask for it again")
        return cls(context_digest, length, body)

    def chunks(self) -> list[bytes]:
        return [self.body[start : start + CHUNK_BYTES] for start in range(0, len(self.body), CHUNK_BYTES)]

    def require(self, *, context_digest: bytes, length: int) -> None:
        if self.context_digest != context_digest:
            raise WrongContext("a ciphertext was made under another key than this epoch's; it cannot be added")
        if self.length != length:
            raise WrongShape(f"an encrypted vector has {self.length} entries where {length} are expected")


def chunks_for(length: int) -> int:
    return -(-length // SLOTS)
