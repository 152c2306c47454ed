"""A simulation's folder is one run's at a time: a second one would destroy both, with or without --overwrite."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fed_node.errors import StoreInUse
from fed_node.ledger.chain import lock_path
from fed_node.ledger.holder import holder_of, in_words
from fed_node.settings import LEDGER
from synth.errors import InputError, OutputError

GRACE_SECONDS = 20.0  # parties of a killed run notice within moments, unless in the middle of a long computation


@contextmanager
def occupied(out: Path) -> Iterator[None]:
    """The folder is ours until the process leaves this, or ends in whatever way: the system lets go of the lock."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        folder = os.open(out, os.O_RDONLY)
    except OSError as error:
        why = "it is a file" if out.is_file() else error.strerror
        raise OutputError(f"cannot use {out} as a folder: {why}. Choose another --out.") from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno == errno.EWOULDBLOCK:  # else: a file system without locks
            os.close(folder)
            raise InputError(
                f"a run is under way in {out} ({in_words(out)}). Wait for it, or choose another --out; --overwrite is "
                "for what has ended."
            ) from None
    try:
        yield
    finally:
        with suppress(OSError):
            out.rmdir()  # if nothing came of it
        os.close(folder)


def wait_for_ledgers(homes: Iterable[Path], seconds: float = GRACE_SECONDS) -> None:
    """Until no process of a run that was killed holds a ledger any more; it ends by itself."""
    end = time.monotonic() + seconds
    for home in homes:
        lock = lock_path(home / LEDGER)
        while (process := holder_of(lock)) is not None:
            if time.monotonic() > end:
                raise StoreInUse(
                    f"process {process} still writes to {home / LEDGER}: a party of an earlier run. End it "
                    f"(kill {process}), then continue with --resume."
                )
            time.sleep(0.05)
