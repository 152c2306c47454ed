"""Sums of products under BFV, for two parties that have nobody to deal for them. The second importer of TenSEAL.

The owner of a key encrypts vectors of whole numbers; the other party multiplies each by a vector of its own, entry by
entry, adds up and sends the total back. One setting: ring degree 8192, three primes of 60 bits and one of 38 (the 218
bits that 128-bit security allows), a plaintext prime t of 50 bits.

What the owner can read of a total beside the numbers in it is nothing: the other party adds a fresh encryption of its
masks and *floods* it. TenSEAL has no such call: a ciphertext is written whose first polynomial is uniform in 128 bits
and whose second is zero, and added. Why that is enough, for an owner who followed the protocol and knows its key s and
all its coins. A total is (c0, c1). c1 is what the factors p made of the owner's ciphertexts, and a u + e of the fresh
encryption: without u and e that is indistinguishable from uniform, if ring-LWE is hard, whoever knows s. Beside it
there is c0 + c1 s = (q/t) m + v + flood, m the masked numbers and v the noise. The flood is independent of all else, so
that v moves it by |v| / 2^128 in total variation, a coefficient. *Bound on v*, whatever the coins: a ciphertext is
made under all four primes, where its noise is at most 21 (2n + 1) (SEAL's errors are within ±21, its secrets ternary;
n = 8192), and divided by the last, 2^38, which rounds both polynomials: (n + 1) / 2, and ½ for (q/t) m. That is below
FRESH_NOISE. SEAL lifts a factor's coefficients to ±t/2, so that a product's noise is below n FRESH_NOISE t/2, and those
of a total add up. `flood_distance` has the sum over all coefficients of all totals. It is a bound and no estimate: the
noise that a test measures is some thousand times smaller.

Both parties are taken to follow the protocol: an owner who makes a key of another form, or another party who alters
ciphertexts and watches what opens, is not kept out.
"""

import os
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import tenseal as ts
from numpy.typing import NDArray

from crypto.ckks import tenseal_refusals
from crypto.errors import Malformed, WrongContext, WrongShape

Numbers = NDArray[np.int64]

SLOTS = 8192
PLAIN = 1125899906826241  # the largest prime below 2^50 that leaves 1 when divided by 2·8192
CIPHERTEXT_BYTES = 393_358  # as TenSEAL 0.3.18 writes it
FLOOD_BITS = 128  # q / 2t is a little more than 2^129
FLOOD_WORDS = 3
FRESH_NOISE = SLOTS // 2 + 2
_PRIME_BITS = [60, 60, 60, 38]
_PRIMES = (1152921504606683137, 1152921504606748673, 1152921504606830593)  # of a ciphertext, in SEAL's order
_ZSTD = bytes.fromhex("28b52ffd")
_FRAME = 12  # magic, descriptor, size of the content, header of its first block
_BEFORE = 97  # parameters and sizes that stand before the coefficients
_HEADER = 16  # of SEAL; its sixth byte says how what follows is compressed, its last eight how long it is


class OwnerKey:
    """Encrypts, and opens what comes back."""

    def __init__(self, secret: bytes) -> None:
        self._context = _load(secret)
        if not self._context.has_secret_key():
            raise WrongContext("the key of encrypted rows came without its secret half; start a new run")

    @classmethod
    def make(cls) -> bytes:
        return _serialized(_new_context(), secret=True)

    def public(self) -> bytes:
        return _serialized(self._context, secret=False)

    def encrypt(self, numbers: Numbers) -> bytes:
        data: bytes = ts.bfv_vector(self._context, _slots(numbers).tolist()).serialize()
        return data

    def open(self, total: bytes) -> NDArray[np.uint64]:
        """The numbers of a total, between 0 and the plaintext prime."""
        with tenseal_refusals("an encrypted total is not valid; ask its sender to send it again"):
            found = np.array(ts.bfv_vector_from(self._context, total).decrypt(), dtype=np.int64)
        if found.shape != (SLOTS,):
            raise Malformed("an encrypted total does not have as many numbers as agreed")
        return (found % PLAIN).astype(np.uint64)


class OtherKey:
    """What the other party does with the owner's ciphertexts."""

    def __init__(self, public: bytes) -> None:
        self._context = _load(public)
        if self._context.has_secret_key():
            raise WrongContext("a public key came with its secret half; it is refused and must be replaced")

    def added(self, total: bytes, products: Iterable[tuple[bytes, Numbers]]) -> bytes:
        """The total (b"": none yet) and the products of ciphertexts and vectors. A vector of zeros adds nothing."""
        with tenseal_refusals("an encrypted row is not valid; ask its sender to send it again"):
            found = ts.bfv_vector_from(self._context, total) if total else None
            for ciphertext, factor in products:
                if factor.any():
                    product = ts.bfv_vector_from(self._context, ciphertext) * _slots(factor).tolist()
                    found = product if found is None else found + product
        return b"" if found is None else bytes(found.serialize())

    def hidden(self, total: bytes, mask: NDArray[np.uint64]) -> bytes:
        """The total with a mask in every slot, and nothing else to be read from it."""
        if mask.shape != (SLOTS,) or int(mask.max()) >= PLAIN:
            raise WrongShape("a mask of a total has one number below the plaintext prime for every slot")
        with tenseal_refusals("an encrypted total is not valid; start a new run"):
            found = ts.bfv_vector(self._context, mask.astype(np.int64).tolist()) + self._flood()
            if total:
                found = found + ts.bfv_vector_from(self._context, total)
        return bytes(found.serialize())

    def _flood(self) -> Any:
        words = (
            np.frombuffer(os.urandom(8 * FLOOD_WORDS * SLOTS), dtype="<u8").reshape(FLOOD_WORDS, SLOTS).astype(object)
        )
        wide = sum(word << 64 * place for place, word in enumerate(words)) >> (64 * FLOOD_WORDS - FLOOD_BITS)
        coefficients = np.zeros((2, len(_PRIMES), SLOTS), dtype="<u8")
        for place, prime in enumerate(_PRIMES):
            coefficients[0, place] = np.asarray(wide % prime, dtype=np.uint64)
        return ts.bfv_vector_from(self._context, _written(coefficients))


def flood_distance(ciphertexts: int, totals: int) -> float:
    """Most that what the owner sees of its totals, each of so many ciphertexts, can differ from what depends on no
    factor (total variation, beside ring-LWE)."""
    noise = ciphertexts * SLOTS * FRESH_NOISE * (PLAIN // 2 + 1) + FRESH_NOISE
    return totals * SLOTS * noise / 2.0**FLOOD_BITS


def _slots(numbers: Numbers) -> Numbers:
    if numbers.ndim != 1 or len(numbers) > SLOTS:
        raise WrongShape(f"one ciphertext holds {SLOTS} numbers")
    return np.pad(numbers, (0, SLOTS - len(numbers)))


def _new_context() -> Any:
    return ts.context(ts.SCHEME_TYPE.BFV, SLOTS, plain_modulus=PLAIN, coeff_mod_bit_sizes=_PRIME_BITS, n_threads=1)


def _load(data: bytes) -> Any:
    """A context with exactly our parameters, whose digest every ciphertext carries, and no key beyond the pair."""
    with tenseal_refusals("the key of encrypted rows is damaged; start a new run"):
        context = ts.context_from(data, n_threads=1)
        agreed = _envelope(context) == _agreed()
    if not agreed or context.has_galois_keys() or context.has_relin_keys():
        raise WrongContext("the key of encrypted rows has other parameters than agreed; it is refused")
    return context


def _serialized(context: Any, *, secret: bool) -> bytes:
    data: bytes = context.serialize(
        save_public_key=True, save_secret_key=secret, save_galois_keys=False, save_relin_keys=False
    )
    return data


@cache
def _agreed() -> tuple[bytes, bytes, bytes]:
    return _envelope(_new_context())


def _envelope(context: Any) -> tuple[bytes, bytes, bytes]:
    """What TenSEAL and SEAL write before the coefficients of a ciphertext: the same for all of one setting."""
    data = ts.bfv_vector(context, [0] * SLOTS).serialize()
    frame = data.find(_ZSTD)
    if len(data) != CIPHERTEXT_BYTES or frame < _HEADER:
        raise WrongContext("TenSEAL wrote a ciphertext in an unknown layout; install the pinned version")
    start = frame + _FRAME
    return data[:4], data[frame - _HEADER : frame], data[start : start + _BEFORE]


def _written(coefficients: NDArray[np.uint64]) -> bytes:
    """A ciphertext with these coefficients (polynomials, primes, degree), not compressed."""
    sizes, header, before = _agreed()
    body = before + coefficients.astype("<u8").tobytes()
    content = header[:5] + b"\0" + header[6:8] + (_HEADER + len(body)).to_bytes(8, "little") + body
    return sizes + b"\x12" + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """As protocol buffers write a length."""
    found = bytearray()
    while number >= 128:
        found.append(number % 128 | 128)
        number //= 128
    return bytes([*found, number])
