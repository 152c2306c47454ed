"""Where noise comes from.

Noise that an adversary can predict is no noise, so it never comes from a statistical generator. A source is an
AES-256-CTR keystream (fast: a gigabyte and more per second), keyed by the operating system. A seed is accepted for
simulations and tests only; the source then says `seeded`, and so must the certificate.

Integers are exact: Skellam draws come from tables in exact arithmetic, Poisson sampling compares integers. Gaussian
values are single-precision floats with 64 random bits behind the radius (values up to 9.4 standard deviations
occur); that floating-point sums reveal a little more than real numbers would is a known limit, kept small by the
fixed-point rounding of every answer before it leaves.
"""

import hashlib
import os

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from synth.errors import PrivacyError
from synth.privacy.skellam import UNIFORM_BITS, Skellam, skellam

_KEY_BYTES = 32


class NoiseSource:
    """One stream of secret random bits. Not shared between threads; safe across forks."""

    def __init__(self, key: bytes | None = None) -> None:
        """A stream from the operating system; `key` only through `seeded_source`."""
        self.seeded = key is not None
        self._key = key if key is not None else os.urandom(_KEY_BYTES)
        self._start()

    def child(self, *labels: str | int) -> "NoiseSource":
        """An independent stream. From a seed, the same labels give the same stream; otherwise never the same."""
        return NoiseSource(_derive(self._key, labels)) if self.seeded else NoiseSource()

    def random_bytes(self, count: int) -> bytes:
        if not self.seeded and self._process != os.getpid():  # a fork must not repeat its parent's noise
            self._key = os.urandom(_KEY_BYTES)
            self._start()
        return self._stream.update(bytes(count))

    def uint64(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(self.random_bytes(8 * count), dtype="<u8")

    def normal(self, count: int) -> NDArray[np.float32]:
        """Standard normal values (Box–Muller)."""
        pairs = (count + 1) // 2
        words = np.frombuffer(self.random_bytes(12 * pairs), dtype="<u4").reshape(3, pairs)
        high, low, turn = (row.astype(np.float32) for row in words)
        # A 64-bit uniform in (0, 1]: float32 keeps 24 leading bits wherever they are, so tiny values stay distinct.
        uniform = high * np.float32(2.0**-32) + (low + np.float32(0.5)) * np.float32(2.0**-64)
        radius = np.sqrt(np.float32(-2) * np.log(uniform))
        angle = turn * np.float32(2 * np.pi * 2.0**-32)
        values = np.empty(2 * pairs, dtype=np.float32)
        np.multiply(radius, np.cos(angle), out=values[:pairs])
        np.multiply(radius, np.sin(angle), out=values[pairs:])
        return values[:count]

    def skellam(self, variance: float, count: int) -> NDArray[np.int64]:
        """Symmetric integer noise of that variance, within `skellam(variance).sampling_error` of exact."""
        table = skellam(variance)
        words = self.uint64(count)
        magnitudes = self.magnitudes(table, words >> np.uint64(1))
        return np.where(words & np.uint64(1), -magnitudes, magnitudes)

    def poisson_sample(self, rows: int, rate: float) -> NDArray[np.bool_]:
        """Each of `rows` rows joins independently with probability `rate`, rounded down to a multiple of 2^-32."""
        if not 0 < rate <= 1:
            raise PrivacyError(f"a sampling rate is a probability above 0, got {rate}")
        words = np.frombuffer(self.random_bytes(4 * rows), dtype="<u4")
        return words < np.uint64(int(rate * 2.0**32))

    def magnitudes(self, table: Skellam, first: NDArray[np.uint64]) -> NDArray[np.int64]:
        """|X| = how many tail probabilities lie above a uniform draw, of which `first` is the leading 63 bits."""
        not_above = np.searchsorted(table.first_words, first, side="right")
        tied = np.flatnonzero(not_above != np.searchsorted(table.first_words, first, side="left"))
        magnitudes = np.asarray(len(table.tails) - not_above, dtype=np.int64)
        for index in tied:  # one draw in 10^16: only the remaining bits decide
            rest = UNIFORM_BITS - 63
            uniform = int(first[index]) << rest | int.from_bytes(self.random_bytes(rest // 8))
            magnitudes[index] = sum(tail > uniform for tail in table.tails)
        return magnitudes

    def _start(self) -> None:
        self._process = os.getpid()
        self._stream: CipherContext = Cipher(algorithms.AES(self._key), modes.CTR(bytes(16))).encryptor()


def seeded_source(seed: int, *labels: str | int) -> NoiseSource:
    """A repeatable stream, for simulations and tests only."""
    return NoiseSource(_derive(b"fedsynth seeded noise", (seed, *labels)))


def share_variance(total: float, parties: int, colluders: int) -> float:
    """The variance each party adds so that the parties outside a coalition of `colluders` still add `total`."""
    if not 0 <= colluders < parties:
        raise PrivacyError(f"{colluders} colluders of {parties} parties leave nobody whose noise is secret")
    return total / (parties - colluders)


def _derive(key: bytes, labels: tuple[str | int, ...]) -> bytes:
    """A 256-bit key per label sequence; repr keeps ("a", 1) and ("a1",) apart."""
    return hashlib.sha256(key + repr(labels).encode()).digest()
