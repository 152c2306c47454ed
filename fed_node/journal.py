"""What this party must never do twice in a run, written down before it is done once.

Three promises are kept here, across restarts. One vector per round of an epoch: a mask stream that covered two vectors
would give both away. One ciphertext opened per round of an epoch: the key must not be tried on altered ones. One list
of parties per answer: sums of the same numbers over two lists would differ by one party's numbers.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from fed_node.errors import AlreadyConfirmed, AlreadyOpened, NotSealed, SecondVector, StoreDamaged
from synth.archive import write_durably
from synth.plan import Mode


@dataclass
class _Pages:
    epoch: int = -1  # of all below but the last
    sealed: dict[str, str] = field(default_factory=dict)  # sequence → digest of the numbers
    opened: dict[str, str] = field(default_factory=dict)  # sequence → digest of the ciphertext
    latest: int = -1  # the sequence sealed last,
    layout: str = ""  # its layout,
    mode: Mode = "plain"  # how it was sealed
    question: str = ""  # and what it answers
    confirmed: dict[str, list[str]] = field(default_factory=dict)  # sequence → parties, over all epochs


@dataclass(frozen=True)
class LastSealed:
    """The answer that was sealed last: the only one that can be confirmed or opened."""

    layout: str
    mode: Mode
    question: str


class Journal:
    """The journal of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pages = self._read()

    def seal(self, epoch: int, sequence: int, digest: str, what: LastSealed) -> None:
        """Note that the numbers of this digest are about to be masked or encrypted."""
        pages = self._turn_to(epoch)
        if pages.sealed.setdefault(str(sequence), digest) != digest:
            raise SecondVector(
                f"ask {sequence} was sealed in epoch {epoch} with other numbers; one mask must not cover both. "
                "The aggregator must start a new epoch."
            )
        pages.latest, pages.layout, pages.mode, pages.question = sequence, what.layout, what.mode, what.question
        self._write()

    def sealed(self, epoch: int, sequence: int) -> LastSealed:
        if (self._pages.epoch, self._pages.latest) != (epoch, sequence):
            raise NotSealed(f"ask {sequence} is not the one this party answered last in epoch {epoch}")
        return LastSealed(self._pages.layout, self._pages.mode, self._pages.question)

    def require_free(self, sequence: int, parties: list[str]) -> None:
        """Refuse numbers that were confirmed for another list of parties."""
        if self._pages.confirmed.get(str(sequence), parties) != parties:
            raise AlreadyConfirmed(
                f"ask {sequence} was confirmed for other parties; over two lists the sums would differ by one party's "
                "numbers. Resume when the parties of that list are back."
            )

    def confirm(self, sequence: int, parties: list[str]) -> None:
        """Note the one list of parties whose sum of this answer may be opened."""
        self.require_free(sequence, parties)
        if str(sequence) not in self._pages.confirmed:
            self._pages.confirmed[str(sequence)] = parties
            self._write()

    def open(self, epoch: int, sequence: int, digest: str) -> None:
        """Note which ciphertext is about to be opened."""
        pages = self._turn_to(epoch)
        if pages.opened.setdefault(str(sequence), digest) != digest:
            raise AlreadyOpened(
                f"ask {sequence} was opened in epoch {epoch} from another ciphertext; start a new epoch"
            )
        self._write()

    def _turn_to(self, epoch: int) -> _Pages:
        if self._pages.epoch != epoch:
            self._pages = _Pages(epoch, confirmed=self._pages.confirmed)
        return self._pages

    def _write(self) -> None:
        write_durably(self.path, json.dumps(asdict(self._pages)).encode())

    def _read(self) -> _Pages:
        try:
            return _Pages(**json.loads(self.path.read_bytes()))
        except FileNotFoundError:
            return _Pages()
        except (ValueError, TypeError, OSError) as error:
            raise StoreDamaged(
                f"{self.path} cannot be read, so nobody knows what was sealed before. Restore the volume from a "
                "backup, or start a new run."
            ) from error
