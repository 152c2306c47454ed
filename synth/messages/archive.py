"""Arrays and a little JSON as one file: models, checkpoints and stored answers. No pickle, no half-written file.

The format is NumPy's .npz (a zip of .npy) with one extra entry holding UTF-8 JSON, and a SHA-256 of everything as the
last 32 bytes, so truncation and bit rot are noticed before anything is believed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from synth.errors import InputError, OutputError
from synth.interface import Arrays
from synth.messages import npy, strict_json
from synth.messages.npy import NotAnArray

LARGEST_META_BYTES = 64 << 20  # a plan, a position with all its sums
LARGEST_DIRECTORY_BYTES = 16 << 20  # about 200,000 arrays
_META = "__meta__"
_DIGEST_BYTES = 32
_END_OF_DIRECTORY = b"PK\x05\x06"
# What the standard library raises on archives that were made to be read wrongly.
_ZIP_FAULTS = (
    ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, struct.error, OverflowError, OSError,
)  # fmt: skip


def pack(arrays: Arrays, meta: dict[str, Any]) -> bytes:
    text = np.frombuffer(json.dumps(meta, allow_nan=False).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{_META: text}, **arrays)
    content = buffer.getvalue()
    return content + hashlib.sha256(content).digest()


def unpack(content: bytes, origin: str) -> tuple[Arrays, dict[str, Any]]:
    """The inverse of `pack`; `origin` names the file in the error. It never holds more than a few times its bytes:
    archives are not compressed here, and one that is could be a bomb."""
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        raise InputError(f"{origin} is damaged or not a fedsynth file: its checksum is wrong. Restore it from a copy.")
    try:
        _require_few_members(body)
        with zipfile.ZipFile(io.BytesIO(body)) as members:
            _require_uncompressed(members, len(body))
            arrays = {item.filename.removesuffix(".npy"): npy.read(members.read(item)) for item in members.infolist()}
    except _ZIP_FAULTS as error:
        raise InputError(f"{origin} is not a fedsynth file ({_reason(error)}).") from None
    meta = arrays.pop(_META, None)
    if meta is None or meta.dtype != np.uint8:
        raise InputError(f"{origin} is not a fedsynth file (it does not describe itself).")
    described = strict_json.parse(meta.tobytes(), f"the description in {origin}", LARGEST_META_BYTES)
    if not isinstance(described, dict):
        raise InputError(f"{origin} is not a fedsynth file (it does not describe itself).")
    return arrays, described


def _require_few_members(body: bytes) -> None:
    """The directory at the end, before it is read: an entry costs a hostile file 46 bytes and its reader many more."""
    end = body.rfind(_END_OF_DIRECTORY)
    if end < 0 or len(body) < end + 22:
        raise zipfile.BadZipFile("it is no archive")
    (directory_bytes,) = struct.unpack_from("<L", body, end + 12)
    if directory_bytes > LARGEST_DIRECTORY_BYTES:
        raise zipfile.BadZipFile("it lists more arrays than any model has")


def _require_uncompressed(members: zipfile.ZipFile, size: int) -> None:
    listed = members.infolist()
    if any(item.compress_type != zipfile.ZIP_STORED or item.file_size != item.compress_size for item in listed):
        raise zipfile.BadZipFile("it is compressed; such a file can unpack to more than the memory")
    if sum(item.file_size for item in listed) > size:
        raise zipfile.BadZipFile("its arrays overlap")
    if len({item.filename for item in listed}) != len(listed):
        raise zipfile.BadZipFile("it holds an array twice")


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, NotAnArray | zipfile.BadZipFile) else "its parts do not fit together"


def private_folder(path: Path) -> None:
    """The folder, and those above it that are missing, for their owner alone."""
    for folder in reversed([each for each in (path, *path.parents) if not each.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)


def write_durably(path: Path, content: bytes) -> None:
    """Write, fsync, rename: after this returns the file survives a power cut; before, the old one does. Readable by
    the owner alone."""
    try:
        private_folder(path.parent)
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
