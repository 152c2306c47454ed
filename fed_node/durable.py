"""Files that are there after a power cut, whole or not at all.

A file is written beside its place, flushed to the disk, moved into place and the move flushed too. `sealed` puts the
SHA-256 of the content before it, so that `unsealed` tells a file that was cut or altered later.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import suppress
from pathlib import Path

from fed_node.errors import StoreDamaged, StoreUnwritable

CHECKSUM_BYTES = 65  # 64 hexadecimal digits and a line feed


def write_durably(path: Path, content: bytes, *, settle: bool = True) -> None:
    """When this returns, the file survives a crash; until then, what was there before does.

    Without `settle` its place in the folder is durable only after the next write that settles there.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        if settle:
            sync_folder(path.parent)
    except OSError as error:
        raise StoreUnwritable(
            f"cannot write {path}: {error.strerror}. Free space or make the volume writable, then try again; "
            "nothing was released."
        ) from error
    finally:
        with suppress(OSError):  # gone after the move; in the way of nothing otherwise
            beside.unlink()


def read_durable(path: Path) -> bytes | None:
    """The file's content; None if there is no such file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreDamaged(f"cannot read {path}: {error.strerror}. Repair the volume, then try again.") from error


def sealed(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def unsealed(whole: bytes, path: Path) -> bytes:
    """The content that was sealed, if it is still that; `path` is for the message."""
    content = whole[CHECKSUM_BYTES:]
    if whole[:CHECKSUM_BYTES] != hashlib.sha256(content).hexdigest().encode() + b"\n":
        raise StoreDamaged(
            f"{path} is cut or was altered: its checksum does not match. Restore it from a backup of the volume."
        )
    return content


def sync_folder(folder: Path) -> None:
    """Make created, renamed and removed names in the folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
