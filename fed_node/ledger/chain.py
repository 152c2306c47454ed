"""An append-only file of hash-chained entries that one process may write and anybody at the party may read.

SQLite in rollback mode with every flush it knows (synchronous EXTRA: the journal's removal is flushed too), so an
appended entry survives a power cut. Its write-ahead mode is faster, but a cut write-ahead file loses entries unseen.
Each entry's hash covers the hash before it: changing, removing or reordering an entry breaks the chain from there on,
and the file is refused. A lock file beside it admits a single writer, and remembers that there was a file: one that
vanished or was emptied is refused as well, never begun anew.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fed_node.errors import StoreDamaged, StoreError, StoreInUse, StoreUnwritable
from fed_node.ledger.holder import in_words
from synth.messages.archive import private_folder

ROOT = "0" * 64  # what the first entry is chained to
LOCK_WAIT_SECONDS = 10.0  # a reader holds the file for milliseconds
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
TABLE = """
CREATE TABLE entries (number INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL);
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;
CREATE TRIGGER entries_remain BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never removed'); END;
"""


@dataclass(frozen=True)
class Link:
    """One entry of the chain. Numbers count from 1."""

    number: int
    body: dict[str, Any]
    hash: str


class Chain:
    """Open it with `write=True` in one process only; readers need no lock."""

    def __init__(self, path: Path, *, write: bool) -> None:
        self.path = path
        self._lock = _locked(path) if write else None
        self._count, self.head = 0, ROOT  # head: hash of the last entry
        with ExitStack() as on_failure:
            on_failure.callback(self._unlock)
            with self._faults():
                if write:
                    self._begin()
                self._database = _connected(path)
                on_failure.callback(self._database.close)
            self.read()
            on_failure.pop_all()

    def append(self, body: dict[str, Any]) -> Link:
        """When this returns, the entry is on the disk. When it raises, only `read` tells what is there."""
        if self._lock is None:
            raise StoreUnwritable(f"{self.path} was opened for reading only.")
        text = _canonical(body)
        link = Link(self._count + 1, json.loads(text), _hash(self.head, text))
        with self._faults(), self._database:
            self._database.execute("INSERT INTO entries VALUES (?, ?, ?)", (link.number, text, link.hash))
        self._count, self.head = link.number, link.hash
        return link

    def read(self) -> list[Link]:
        """All entries in order, each checked against the chain."""
        with self._faults():
            rows = self._database.execute("SELECT number, body, hash FROM entries ORDER BY number").fetchall()
        links: list[Link] = []
        last = ROOT
        for place, (number, text, stored) in enumerate(rows, start=1):
            last = _hash(last, str(text))
            if (number, stored) != (place, last):
                raise StoreDamaged(
                    f"{self.path}: the chain breaks at entry {place}: it was changed, or one before it is missing. "
                    "Restore the file from a backup that holds its last entry; do not delete it."
                )
            links.append(Link(number, json.loads(text), stored))
        self._count, self.head = len(links), last
        return links

    def close(self) -> None:
        self._database.close()
        self._unlock()

    def _begin(self) -> None:
        """Make the file if there never was one: complete beside its place, then moved there."""
        assert self._lock is not None
        if self.path.exists():
            if self.path.stat().st_size == 0:
                raise StoreDamaged(f"{self.path} was emptied. Restore it from a backup; do not delete it.")
        elif os.fstat(self._lock).st_size:
            raise StoreDamaged(
                f"{self.path} is missing, but {lock_path(self.path).name} beside it says that it existed. "
                "Restore it from a backup: a new one would forget what was spent."
            )
        else:
            beside = self.path.with_name(f".{self.path.name}.new")
            beside.unlink(missing_ok=True)
            beside.touch(mode=0o600)  # what a party spent, on which plans, is nobody else's affair
            fresh = _connected(beside, create=True)
            fresh.executescript(f"BEGIN; {TABLE} COMMIT;")  # one flush to the disk, not three
            fresh.close()
            os.replace(beside, self.path)
            _sync_folder(self.path.parent)
        if not os.fstat(self._lock).st_size:
            os.write(self._lock, b"There is a ledger beside this file. Keep both.\n")
            os.fsync(self._lock)

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """SQLite's and the system's errors as ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._fault(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF, str(error)) from error
        except OSError as error:
            raise self._fault(sqlite3.SQLITE_IOERR, str(error.strerror)) from error

    def _fault(self, code: int, reason: str) -> StoreError:
        if code in DAMAGED:
            return StoreDamaged(
                f"{self.path} cannot be read as a ledger ({reason}). Restore it from a backup; do not delete it."
            )
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreInUse(f"{self.path} is held by another program ({reason}). Close it, then try again.")
        return StoreUnwritable(
            f"{self.path} cannot be written ({reason}). Free space or make the volume writable, then try again; "
            "nothing was released."
        )


def _locked(path: Path) -> int:
    """The descriptor that holds the writer's lock; the system lets go of it when the process ends, however it ends."""
    try:
        private_folder(path.parent)
        descriptor = os.open(lock_path(path), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise StoreUnwritable(
            f"cannot lock {path}: {error.strerror}. Make the volume writable, then try again."
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        who = in_words(lock_path(path))
        raise StoreInUse(
            f"{who} writes to {path}. A dataset has one writer: stop the other worker, or wait for it to end."
        ) from error
    return descriptor


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock_path(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _connected(path: Path, create: bool = False) -> sqlite3.Connection:
    mode = "rwc" if create else "rw"  # "rw" also opens a file that may only be read
    database = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=LOCK_WAIT_SECONDS, check_same_thread=False
    )
    database.execute("PRAGMA journal_mode = DELETE")
    database.execute("PRAGMA synchronous = EXTRA")
    return database


def _canonical(body: dict[str, Any]) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _hash(previous: str, text: str) -> str:
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()
