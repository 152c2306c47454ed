"""Who holds a lock, for the sentence that says so: a number that a person can look up, and end."""

from __future__ import annotations

from pathlib import Path

LOCKS = Path("/proc/locks")


def holder_of(path: Path) -> int | None:
    """The process that has locked a file or folder with `flock`; None if nobody has, or the system does not tell.

    A line of the system's list: `1: FLOCK  ADVISORY  WRITE 4711 08:01:131234 0 EOF`. Files are told by their inode
    alone, since containers see other device numbers than the list has."""
    try:
        inode, lines = path.stat().st_ino, LOCKS.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split()
        if "FLOCK" in fields and fields[-3].rpartition(":")[2] == str(inode) and fields[-4].isdecimal():
            return int(fields[-4]) or None
    return None


def in_words(path: Path) -> str:
    """'process 4711', or 'another process' where its number is not known."""
    process = holder_of(path)
    return "another process" if process is None else f"process {process}"
