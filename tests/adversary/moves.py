"""Everything a hostile aggregator, a person at a party, or misfortune can do next, as small frozen values.

A move says what is done, not which bytes are sent: those differ between two worlds whose parties have other keys. So
one series of moves can be played in a world and in its neighbour, and what comes back compared.
"""

from __future__ import annotations

from dataclasses import dataclass

RUNS = tuple(f"run-{place}-{turn}" for place in range(7) for turn in range(2))  # two of each plan, and any may be mixed
FOLDERS = ("answers", "sessions")  # what a volume may lose; the ledger is what everything else is held against


@dataclass(frozen=True)
class Where:
    """Whom a message goes to, and which run and plan it names."""

    party: str
    run: str
    plan: int  # place in consortium.plans()


@dataclass(frozen=True)
class Hello:
    to: Where
    epoch: int = 0


@dataclass(frozen=True)
class Keys:
    """Announcements of `parties`: those of the same run and plan, or (`stolen`) whatever they said last."""

    to: Where
    parties: tuple[str, ...]
    stolen: bool = False


@dataclass(frozen=True)
class Question:
    """An ask; `variant` 0 is the planned one, others are of the right form and another content."""

    to: Where
    sequence: int
    variant: int = 0
    late: int = 0  # how many epochs behind it pretends to be


@dataclass(frozen=True)
class Confirm:
    to: Where
    sequence: int


@dataclass(frozen=True)
class Open:
    to: Where
    sequence: int
    leave_out: str = ""  # a party whose ciphertext is replaced by the receiver's own


@dataclass(frozen=True)
class Finish:
    to: Where


@dataclass(frozen=True)
class Junk:
    """A message that can only be refused, to push others out of memory."""

    to: Where
    kind: str


@dataclass(frozen=True)
class Replay:
    """An earlier message again, perhaps to somebody else."""

    place: int
    party: str


@dataclass(frozen=True)
class Restart:
    party: str


@dataclass(frozen=True)
class Lose:
    """A folder of the party's volume is gone, and its process with it."""

    party: str
    folder: str


@dataclass(frozen=True)
class Approve:
    party: str
    plan: int


@dataclass(frozen=True)
class Withdraw:
    party: str
    plan: int


Move = Hello | Keys | Question | Confirm | Open | Finish | Junk | Replay | Restart | Lose | Approve | Withdraw
