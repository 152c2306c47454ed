"""An encrypted vector on its way: chunks of ciphertext and what they claim to be.

The claims (context, entries, how many parties are inside) are checked before any ciphertext is touched; the
sender's voucher and the roll call make them true.
"""

from dataclasses import dataclass

from crypto.errors import Malformed, WrongContext, WrongShape
from crypto.framing import number_bytes, pack, read_number, unpack
from crypto.rollcall import ROLL_CALL_SLOTS

SLOTS = 2048
VALUES_PER_CHUNK = SLOTS - ROLL_CALL_SLOTS
CHUNK_BYTES = 2 * 4096 * 8  # two polynomials of 4096 coefficients of eight bytes


@dataclass(frozen=True)
class EncryptedVector:
    context_digest: bytes
    length: int  # values, without roll call and padding
    terms: int  # parties inside
    body: bytes  # chunks one after the other

    def to_bytes(self) -> bytes:
        return pack(
            "encrypted vector",
            self.context_digest,
            number_bytes(self.length),
            number_bytes(self.terms),
            self.body,
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "EncryptedVector":
        context_digest, length_field, terms, body = unpack("encrypted vector", data, 4)
        length = read_number(length_field)
        if length < 1 or len(body) != chunks_for(length) * CHUNK_BYTES:
            raise Malformed("an encrypted vector's length does not match its ciphertexts; ask for it again")
        return cls(context_digest, length, read_number(terms), body)

    def chunks(self) -> list[bytes]:
        return [self.body[start : start + CHUNK_BYTES] for start in range(0, len(self.body), CHUNK_BYTES)]

    def require(self, *, context_digest: bytes, length: int, terms: int) -> None:
        if self.context_digest != context_digest:
            raise WrongContext("a ciphertext was made under another key than this run's; it cannot be added")
        if self.length != length:
            raise WrongShape(f"an encrypted vector has {self.length} entries where {length} are expected")
        if self.terms != terms:
            raise WrongShape(f"an encrypted vector is a sum of {self.terms} where {terms} is expected")


def chunks_for(length: int) -> int:
    return -(-length // VALUES_PER_CHUNK)
