"""Where noise comes from.

Noise that an adversary can predict is no noise, so it never comes from a statistical generator. A source is an
AES-256-CTR keystream (fast: a gigabyte and more per second), keyed by the operating system. A seed is accepted for
simulations and tests only; the source then says `seeded`, and so must the certificate.

All noise is whole numbers, because the low bits of floating-point noise tell what it was added to (Mironov, CCS
2012). Skellam draws come from tables in exact arithmetic, Poisson sampling compares integers, and Gaussian noise is
rounded to integers exactly (see `rounded_gaussian`).
"""

import hashlib
import os

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from synth.errors import PrivacyError
from synth.privacy.rounded_gaussian import MOST_SIGMA, nearest_magnitudes, settled_magnitude
from synth.privacy.skellam import UNIFORM_BITS, Skellam, skellam

_KEY_BYTES = 32
_AT_ONCE = 1 << 14  # draws whose arrays stay in the processor's cache


class NoiseSource:
    """One stream of secret random bits. Not shared between threads; safe across forks."""

    def __init__(self, key: bytes | None = None) -> None:
        """A stream from the operating system; `key` only through `seeded_source`."""
        self.seeded = key is not None
        self._key = key if key is not None else os.urandom(_KEY_BYTES)
        self._further: NoiseSource | None = None
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

    def rounded_gaussian(self, sigma: float, count: int) -> NDArray[np.int64]:
        """N(0, σ²) rounded to the nearest integer, without error.

        For an integer S, round(S + N) = S + round(N): added to integers, this is the Gaussian mechanism and a rounding
        of what it released. A double settles which integer it is except near a boundary or far out; there it is
        settled in high precision, with more random bits if need be (a stream of their own, so that what is drawn next
        does not depend on it).
        """
        if not 0 < sigma <= MOST_SIGMA:
            raise PrivacyError(
                f"Gaussian noise needs a deviation above 0 and at most {MOST_SIGMA:g} units, got {sigma}"
            )
        values = np.empty(count, dtype=np.int64)
        for start in range(0, count, _AT_ONCE):
            values[start : start + _AT_ONCE] = self._rounded_gaussian(sigma, min(_AT_ONCE, count - start))
        return values

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

    def below(self, limit: int) -> int:
        """A whole number from 0 to `limit` - 1, each equally likely to the last bit."""
        size = limit.bit_length() // 8 + 8
        whole = 1 << 8 * size
        while True:  # again with a probability below 2^-56
            drawn = int.from_bytes(self.random_bytes(size))
            if drawn < whole - whole % limit:
                return drawn % limit

    def distinct_below(self, limit: int, count: int) -> list[int]:
        """A uniform set of so many different ones (Floyd's algorithm), in no particular order."""
        found: set[int] = set()
        for last in range(limit - count, limit):
            drawn = self.below(last + 1)
            found.add(last if drawn in found else drawn)
        return sorted(found)

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

    def _rounded_gaussian(self, sigma: float, count: int) -> NDArray[np.int64]:
        words = self.uint64(count)
        magnitudes, unsettled = nearest_magnitudes(sigma, words >> np.uint64(1))
        for index in unsettled:
            magnitudes[index] = settled_magnitude(sigma, int(words[index]) >> 1, self._further_word)
        negative = (words & np.uint64(1)).view(np.int64)
        magnitudes ^= -negative  # with the next line -magnitude in two's complement, where the last bit says so
        magnitudes += negative
        return magnitudes

    def _further_word(self) -> int:
        """64 bits for a draw that the first ones left open."""
        if self._further is None:
            self._further = self.child("further bits")
        return int.from_bytes(self._further.random_bytes(8))

    def _start(self) -> None:
        self._process = os.getpid()
        self._stream: CipherContext = Cipher(algorithms.AES(self._key), modes.CTR(bytes(16))).encryptor()


def seeded_source(seed: int, *labels: str | int) -> NoiseSource:
    """A repeatable stream, for simulations and tests only."""
    return NoiseSource(_derive(b"fedsynth seeded noise", (seed, *labels)))


def _derive(key: bytes, labels: tuple[str | int, ...]) -> bytes:
    """A 256-bit key per label sequence; repr keeps ("a", 1) and ("a1",) apart."""
    return hashlib.sha256(key + repr(labels).encode()).digest()
