"""Arrays and a little JSON as one file: models, checkpoints and stored answers. No pickle, no half-written file.

The format is NumPy's .npz (a zip of .npy) with one extra entry holding UTF-8 JSON, and a SHA-256 of everything as the
last 32 bytes, so truncation and bit rot are noticed before anything is believed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from synth.errors import InputError, OutputError
from synth.interface import Arrays

_META = "__meta__"
_DIGEST_BYTES = 32


def pack(arrays: Arrays, meta: dict[str, Any]) -> bytes:
    text = np.frombuffer(json.dumps(meta, allow_nan=False).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{_META: text}, **arrays)
    content = buffer.getvalue()
    return content + hashlib.sha256(content).digest()


def unpack(content: bytes, origin: str) -> tuple[Arrays, dict[str, Any]]:
    """The inverse of `pack`; `origin` names the file in the error."""
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        raise InputError(f"{origin} is damaged or not a fedsynth file: its checksum is wrong. Restore it from a copy.")
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"{origin} is not a fedsynth file ({error}).") from None
    return arrays, json.loads(arrays.pop(_META).tobytes())


def write_durably(path: Path, content: bytes) -> None:
    """Write, fsync, rename: after this returns the file survives a power cut; before, the old one does."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as partial:
            try:
                partial.write(content)
                partial.flush()
                os.fsync(partial.fileno())
                os.replace(partial.name, path)
            except OSError:
                os.unlink(partial.name)
                raise
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise OutputError(
            f"cannot write {path}: {error.strerror}. Free space or choose another folder; nothing was replaced."
        ) from None
