"""Sums under CKKS: the parties hold the key, the aggregator carries what it cannot read.

The only importer of TenSEAL. One setting, for addition alone: ring degree 4096, primes of 60 and 49 bits (the
109 bits that 128-bit security allows), scale 2^40; 32 bytes a value. The aggregator's ``PublicContext`` has no
secret, rotation or relinearisation key and refuses to be made with one. A ``PartyContext`` has the secret key; its
public half is always taken from it, never from the aggregator, who could otherwise offer a key of its own.

TenSEAL opens almost anything: a flipped bit, a foreign key or one party's ciphertext gives numbers like any other.
So a message carries nothing but coefficients (the rest of TenSEAL's format is the same for all and is put back
here), names its context and is vouched for by its sender. A sum is never taken from outside: ``open`` is given every
party's ciphertext, whose vouchers the caller verified, and adds them itself. Nothing inside the numbers could prove
who is in a sum: the scheme is linear, so whatever pattern the slots hold, a small multiple of one party's ciphertext
can be found that leaves the pattern alone and shows the rest of that party's slots.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import tenseal as ts
from numpy.typing import NDArray

from crypto.derive import digest
from crypto.encrypted import CHUNK_BYTES, SLOTS, EncryptedVector, chunks_for
from crypto.errors import Malformed, WrongContext
from crypto.ranges import require_reals
from crypto.rounds import FEWEST_PARTIES, require_exactly
from crypto.slots import slot_share

_RING_DEGREE = 4096
_PRIME_BITS = [60, 49]
_SCALE = 2.0**40


class PublicContext:
    """What needs no secret: to tell this key's ciphertexts from others, and to add them. All the aggregator holds."""

    def __init__(self, data: bytes) -> None:
        self._context = _load(data)
        if self._context.has_secret_key():
            raise WrongContext("a public context came with a secret key; it is refused and must be replaced")
        self.data = data
        self.digest = digest(data)

    def checked(self, message: bytes, length: int) -> EncryptedVector:
        """A party's message as a vector of this key and this many entries."""
        vector = EncryptedVector.from_bytes(message)
        vector.require(context_digest=self.digest, length=length)
        return vector

    def add(
        self,
        contributions: Iterable[tuple[str, bytes]],
        *,
        length: int,
        parties: Collection[str],
        minimum: int = FEWEST_PARTIES,
    ) -> list[bytes]:
        """The chunks of the sum of one vector of each declared party; vouchers are checked before."""
        received = [(party, self.checked(message, length)) for party, message in contributions]
        require_exactly((party for party, _ in received), parties, minimum)
        return [self._add_chunks(chunks) for chunks in zip(*(vector.chunks() for _, vector in received), strict=True)]

    def _add_chunks(self, chunks: tuple[bytes, ...]) -> bytes:
        with tenseal_refusals("a ciphertext is not valid; ask its sender to send it again"):
            total = _ciphertext(self._context, chunks[0])
            for chunk in chunks[1:]:
                total += _ciphertext(self._context, chunk)
            return _coefficients(total)


class PartyContext:
    """What a party holds: it encrypts its own vector, and adds up and opens everybody's."""

    def __init__(self, secret: bytes) -> None:
        """``secret`` comes from ``make`` or, in a sealed box, from the party that made it."""
        self._context = _load(secret)
        if not self._context.has_secret_key():
            raise WrongContext("a party's context came without its secret key; ask for it again")
        if not np.allclose(ts.ckks_vector(self._context, np.ones(SLOTS)).decrypt(), 1.0, atol=1e-3):
            raise WrongContext("the halves of a party's key do not belong together; a new epoch is needed")
        self._secret = secret
        self.public = PublicContext(_serialized(self._context, secret=False))

    @classmethod
    def make(cls) -> "PartyContext":
        return cls(_serialized(_new_context(), secret=True))

    def secret_bytes(self) -> bytes:
        """To be sealed to the other parties. Whoever has it can open any ciphertext of this run."""
        return self._secret

    def encrypt(self, slots: NDArray[np.float64], *, parties: int) -> bytes:
        """An encrypted vector; entries beyond the share that one of so many parties has of a slot are refused."""
        require_reals(slots, slot_share(parties))
        count = chunks_for(slots.size)
        rows = np.zeros(count * SLOTS)
        rows[: slots.size] = slots
        body = b"".join(_coefficients(ts.ckks_vector(self._context, row)) for row in rows.reshape(count, SLOTS))
        return EncryptedVector(self.public.digest, slots.size, body).to_bytes()

    def open(
        self,
        contributions: Iterable[tuple[str, bytes]],
        *,
        length: int,
        parties: Collection[str],
        minimum: int = FEWEST_PARTIES,
    ) -> NDArray[np.float64]:
        """The slots of the sum of these vectors, one of each of ``parties``; their vouchers are checked before.

        Should the numbers turn out ``Forged`` when they are decoded, the use of this key must end: make a new one for
        the next epoch. CKKS, like every lattice scheme, would give its key away bit by bit to someone who may try
        altered ciphertexts at will and watch which are refused.
        """
        chunks = self.public.add(contributions, length=length, parties=parties, minimum=minimum)
        with tenseal_refusals("an encrypted sum is not valid; a new epoch is needed"):
            rows = np.array([_ciphertext(self._context, chunk).decrypt() for chunk in chunks])
        return rows.ravel()[:length]


@dataclass(frozen=True)
class _Layout:
    """The bytes TenSEAL writes around the coefficients: parameters, sizes and scale, the same every time."""

    before: bytes
    after: bytes

    @classmethod
    def of(cls, context: Any) -> "_Layout":
        start = 131  # TenSEAL 0.3.18; the check below fails loudly if a version changes it
        data = ts.ckks_vector(context, np.zeros(SLOTS)).serialize()
        layout = cls(data[:start], data[start + CHUNK_BYTES :])
        layout.strip(data)
        return layout

    def strip(self, data: bytes) -> bytes:
        inner = data[len(self.before) : len(data) - len(self.after)]
        if len(inner) != CHUNK_BYTES or self.wrap(inner) != data:
            raise WrongContext("TenSEAL wrote a ciphertext in an unknown layout; install the pinned version")
        return inner

    def wrap(self, coefficients: bytes) -> bytes:
        return self.before + coefficients + self.after


@cache
def _layout() -> _Layout:
    return _Layout.of(_new_context())


def _new_context() -> Any:
    context = ts.context(ts.SCHEME_TYPE.CKKS, _RING_DEGREE, coeff_mod_bit_sizes=_PRIME_BITS, n_threads=1)
    context.global_scale = _SCALE
    return context


def _load(data: bytes) -> Any:
    """A context with exactly our parameters (they are in the layout) and no key for anything but adding."""
    with tenseal_refusals("an encryption context is damaged; ask for it again"):
        context = ts.context_from(data, n_threads=1)
        layout = _Layout.of(context)
    if layout != _layout() or context.has_galois_keys() or context.has_relin_keys():
        raise WrongContext("an encryption context has other parameters or keys than agreed; it is refused")
    return context


def _serialized(context: Any, *, secret: bool) -> bytes:
    data: bytes = context.serialize(
        save_public_key=True, save_secret_key=secret, save_galois_keys=False, save_relin_keys=False
    )
    return data


def _ciphertext(context: Any, coefficients: bytes) -> Any:
    return ts.ckks_vector_from(context, _layout().wrap(coefficients))


def _coefficients(ciphertext: Any) -> bytes:
    return _layout().strip(ciphertext.serialize())


@contextmanager
def tenseal_refusals(message: str) -> Iterator[None]:
    """TenSEAL's own refusals, as ours; its texts are not ours to forward."""
    try:
        yield
    except (RuntimeError, ValueError, IndexError, MemoryError):
        raise Malformed(message) from None
