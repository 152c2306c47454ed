"""Reading what an envelope claims to hold: each field is there and of its type, or the message is refused."""

from __future__ import annotations

import numpy as np

from synth.errors import ProtocolError
from synth.interface import Array
from synth.messages.wire import Envelope

_NUMBER_LIMIT = 2**62  # leaves room to count on


def number(envelope: Envelope, name: str) -> int:
    """A whole number of at least 0."""
    value = envelope.options.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _NUMBER_LIMIT:
        raise ProtocolError(f"a message must carry the number '{name}'; its sender runs another version")
    return value


def text(envelope: Envelope, name: str) -> str:
    value = envelope.options.get(name)
    if not isinstance(value, str):
        raise ProtocolError(f"a message must carry the text '{name}'; its sender runs another version")
    return value


def blob(envelope: Envelope, name: str) -> bytes:
    """Bytes, which travel as an array of type uint8."""
    array = envelope.arrays.get(name)
    if array is None or array.dtype != np.uint8 or array.ndim != 1:
        raise ProtocolError(f"a message must carry the bytes '{name}'; its sender runs another version")
    return array.tobytes()


def blobs(envelope: Envelope, kind: str) -> dict[str, bytes]:
    """All bytes named 'kind/…', by the rest of their names."""
    prefix = f"{kind}/"
    return {name.removeprefix(prefix): blob(envelope, name) for name in envelope.arrays if name.startswith(prefix)}


def as_array(data: bytes) -> Array:
    return np.frombuffer(data, dtype=np.uint8)


def as_arrays(kind: str, data: dict[str, bytes]) -> dict[str, Array]:
    """The inverse of `blobs`."""
    return {f"{kind}/{name}": as_array(value) for name, value in data.items()}
