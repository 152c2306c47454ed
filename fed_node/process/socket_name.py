"""A Unix socket by a name that the system takes, whatever folder it lies in.

The kernel allows 107 bytes for a socket's path, and homes are sometimes deep. A longer path is reached through a handle
of its folder, which the system shows under a short name of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from synth.errors import InputError

LONGEST_BYTES = 107
LONGEST_NAME_BYTES = 80


@contextmanager
def socket_name(path: Path) -> Iterator[str]:
    """To bind or connect to while it is open. A folder that is not there is `FileNotFoundError`, as for any path."""
    if len(os.fsencode(path)) <= LONGEST_BYTES:
        yield str(path)
        return
    if len(os.fsencode(path.name)) > LONGEST_NAME_BYTES:
        raise InputError(
            f"the socket's name {path.name} is longer than {LONGEST_NAME_BYTES} bytes; choose a shorter one."
        )
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
