"""From one secret to many: HKDF-SHA256 for keys, AES-256-CTR for long streams.

Every derived key is used for one purpose at one place, because the place is in the HKDF info. A stream key is
never used twice, so the counter may start at zero: the key itself is the nonce.
"""

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256, Hash
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

KEY_BYTES = 32


def derive_key(secret: bytes, info: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info).derive(secret)


def digest(data: bytes) -> bytes:
    hasher = Hash(SHA256())
    hasher.update(data)
    return hasher.finalize()


class KeyStream:
    """Key streams of one size, written into one buffer: allocation would cost more than the cipher."""

    def __init__(self, size_bytes: int) -> None:
        self._zeros = bytes(size_bytes)
        self._buffer = np.empty(size_bytes, dtype=np.uint8)

    def of(self, key: bytes) -> NDArray[np.uint8]:
        """The stream of this key; valid until the next call."""
        cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16)))
        cipher.encryptor().update_into(self._zeros, self._buffer.data)
        return self._buffer
