"""Who did what, and when: a file of JSON lines that is only ever added to, one at each party and one at the aggregator.

Each line holds the hash of the line before it, as the ledger's entries do: changing, removing or reordering lines
breaks the chain. Cutting off its end does not; so send the lines elsewhere as they are written. A line is on the disk
before what it tells of happens. `who` is the word of the caller: what the machine or the cluster's API called them,
passed on by the command that they ran.

What people do is noted each time. What messages cause is noted once a day for each distinct fact, and facts are fixed
words, names of runs that were approved, and digests: nobody outside can fill the volume or write into the file. No fact
depends on a row.
"""

from __future__ import annotations

import datetime as dt
import fcntl
import getpass
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from synth.errors import FedsynthError, NotVerified, OutputError

FILE = "audit.jsonl"
WHO = "FEDSYNTH_WHO"  # in the environment: whom a command acts for, where it runs for somebody else
ROOT = "0" * 64  # what the first line is chained to
LONGEST_WORD = 200  # characters of one fact
MOST_WORDS = 200  # of one list

Fact = str | int | list[str]


def caller() -> str:
    """Whom this process acts for: told by the environment, else the user that the system knows."""
    if told := os.environ.get(WHO):
        return told
    try:
        return f"system:{getpass.getuser()}"
    except (KeyError, OSError):  # a user id without a name, as containers have
        return f"system:{os.getuid()}"


def as_lines(lines: list[dict[str, Any]]) -> str:
    """As they are in the file: one JSON object a line, for people and for other programs."""
    return "\n".join(json.dumps(line, ensure_ascii=True) for line in lines)


class AuditLog:
    """Any number of processes may add to one file; each waits for its turn."""

    def __init__(self, path: Path, side: str) -> None:
        self.path, self.side = path, side
        self._today: tuple[dt.date, set[str]] | None = None  # what was noted today of what is noted once a day
        self._turn = threading.Lock()

    def note(self, action: str, who: str, **facts: Fact) -> None:
        """When this returns, the line is on the disk."""
        line = {"time": _now().isoformat(timespec="seconds"), "side": self.side, "who": who, "action": action} | facts
        with self._turn, self._open() as file:
            last = _last_line(file, self.path)
            number, previous = (last["number"] + 1, last["hash"]) if last else (1, ROOT)
            body = {"number": number} | {name: _bounded(fact) for name, fact in line.items()} | {"previous": previous}
            file.write(f"{as_lines([body | {'hash': _hash(body)}])}\n".encode())
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def noted(self, action: str, who: str, **facts: Fact) -> Iterator[None]:
        """Note what is about to be done, and that it failed if it does."""
        self.note(action, who, **facts)
        try:
            yield
        except FedsynthError as error:
            self.note(f"{action}-failed", who, **facts, code=error.code, party=getattr(error, "party", ""))
            raise

    def note_once_a_day(self, action: str, who: str, **facts: Fact) -> None:
        """For what messages cause: the same fact again on the same day says nothing new and is not written."""
        today, key = _now().date(), json.dumps([action, who, facts], sort_keys=True)
        if self._today is None or self._today[0] != today:
            self._today = (today, self._keys_of(today))
        if key not in self._today[1]:
            self.note(action, who, **facts)
            self._today[1].add(key)

    def read(self) -> list[dict[str, Any]]:
        """All lines, each checked against the chain."""
        lines, previous = self.unchecked(), ROOT
        for place, line in enumerate(lines, start=1):
            body = {name: value for name, value in line.items() if name != "hash"}
            if (line["number"], line.get("previous"), line["hash"]) != (place, previous, _hash(body)):
                raise NotVerified(
                    f"{self.path}: the chain breaks at line {place}: it was changed, or one before it is missing. "
                    "Compare with the lines that were sent elsewhere."
                )
            previous = line["hash"]
        return lines

    def unchecked(self) -> list[dict[str, Any]]:
        """All lines as they are."""
        try:
            texts = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        # what follows the last line's end was never finished
        return [_parsed(text, self.path, place) for place, text in enumerate(texts[:-1], start=1)]

    def _keys_of(self, day: dt.date) -> set[str]:
        frame = {"number", "time", "side", "who", "action", "previous", "hash"}
        return {
            json.dumps([line["action"], line["who"], {k: v for k, v in line.items() if k not in frame}], sort_keys=True)
            for line in self.unchecked()
            if line["time"].startswith(day.isoformat())
        }

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "a+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield file
        except OSError as error:
            raise OutputError(
                f"cannot write the audit log {self.path}: {error.strerror}. Make room; nothing is done unnoted."
            ) from error


def _last_line(file: BinaryIO, path: Path) -> dict[str, Any] | None:
    """The last line that was finished; what a power cut left behind it is cut off, since nothing came of it."""
    end, size = file.seek(0, os.SEEK_END), 4096
    while True:
        begin = max(0, end - size)
        file.seek(begin)
        tail = file.read(end - begin)
        finished = tail.rfind(b"\n") + 1
        if begin == 0 or tail.count(b"\n") > 1:
            break
        size *= 4
    if finished != len(tail):
        file.truncate(begin + finished)
    text = tail[:finished].rstrip(b"\n").rpartition(b"\n")[2]
    return _parsed(text, path, "the last") if text else None


def _parsed(text: bytes, path: Path, place: int | str) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        line = None
    if not isinstance(line, dict) or not isinstance(line.get("hash"), str) or not isinstance(line.get("number"), int):
        raise NotVerified(f"{path}: line {place} is no entry of an audit log. Restore the file from a copy.")
    return line


def _bounded(fact: Fact) -> Fact:
    """Short and printable, whoever worded it."""
    if isinstance(fact, list):
        return [str(_bounded(each)) for each in fact[:MOST_WORDS]]
    if isinstance(fact, str):
        return "".join(letter if letter.isprintable() else "?" for letter in fact[:LONGEST_WORD])
    return fact


def _hash(body: dict[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
