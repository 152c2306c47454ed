"""What this party must never do twice in a run, written down before it is done once.

Three promises are kept here, across restarts. One vector per round of an epoch: a mask stream that covered two vectors
would give both away. One set of ciphertexts opened per round of an epoch: the key must not be tried on altered ones.
One list of parties per answer: sums of the same numbers over two lists would differ by one party's numbers.

The third is kept in the ledger as well (`Lists`). The journal is lost with the folder of the run's keys, which is no
loss otherwise; the answers would remain, and could be summed over a second list.

An answer is bound to its list when it can first be part of an opened sum. Under its party's own mask that is when the
party confirms the list and gives up the mask (crypto/confirming.py). Without one it is the moment of sealing, whether
or not anything is ever opened. Either way another list is refused from then on with the same code, already-confirmed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol

from crypto.derive import digest
from crypto.framing import pack
from crypto.rounds import Round
from fed_node.errors import AlreadyConfirmed, AlreadyOpened, NotSealed, SecondVector, StoreDamaged
from fed_node.seal.run_folder import RunFolder
from synth.plan import Mode

NAME = "journal.json"


@dataclass
class _Pages:
    epoch: int = -1  # of all below but the last two
    sealed: dict[str, str] = field(default_factory=dict)  # sequence → digest of round and numbers
    opened: dict[str, str] = field(default_factory=dict)  # sequence → digest of round and ciphertexts
    latest: int = -1  # the sequence sealed last,
    layout: str = ""  # its layout,
    mode: Mode = "plain"  # how it was sealed
    question: str = ""  # and what it answers
    released: dict[str, str] = field(default_factory=dict)  # sequence → digest of the opened counts, over all epochs
    confirmed: dict[str, list[str]] = field(default_factory=dict)  # sequence → parties, over all epochs


@dataclass(frozen=True)
class LastSealed:
    """The answer that was sealed last: the only one that can be confirmed or opened."""

    layout: str
    mode: Mode
    question: str


class Lists(Protocol):
    """Where the list that an answer is bound to is remembered, whatever folder is lost."""

    def list_of(self, run: str, sequence: int) -> tuple[str, ...] | None: ...

    def bind(self, run: str, sequence: int, parties: Sequence[str]) -> None: ...


class Journal:
    """The journal of one run."""

    def __init__(self, folder: RunFolder, lists: Lists) -> None:
        self.folder, self.lists = folder, lists
        self._pages = self._read()

    def seal(self, moment: Round, numbers: bytes, what: LastSealed, *, under_own_mask: bool) -> None:
        """Note that these numbers are about to be masked or encrypted, and bound to their list if nothing else will."""
        self._require_free(moment)
        pages, once = self._turn_to(moment), _digest(moment, numbers)
        if pages.sealed.setdefault(str(moment.number), once) != once:
            raise SecondVector(
                f"ask {moment.number} was sealed in epoch {moment.period.epoch} with other numbers; one mask must not "
                "cover both. The aggregator must start a new epoch."
            )
        pages.latest, pages.layout, pages.mode, pages.question = moment.number, what.layout, what.mode, what.question
        if not under_own_mask:
            pages.confirmed[str(moment.number)] = list(moment.parties)
        self._write()

    def sealed(self, epoch: int, sequence: int) -> LastSealed:
        if (self._pages.epoch, self._pages.latest) != (epoch, sequence):
            raise NotSealed(f"ask {sequence} is not the one this party answered last in epoch {epoch}")
        return LastSealed(self._pages.layout, self._pages.mode, self._pages.question)

    def _require_free(self, moment: Round) -> None:
        """Refuse numbers that are bound to another list of parties."""
        if (self._list_of(moment) or moment.parties) != moment.parties:
            raise AlreadyConfirmed(
                f"ask {moment.number} is bound to other parties; over two lists the sums would differ by one party's "
                "numbers. Resume when the parties of that list are back."
            )

    def confirm(self, moment: Round) -> None:
        """Note the one list of parties whose sum of this answer may be opened."""
        self._require_free(moment)
        if self._list_of(moment) is None:
            self.lists.bind(moment.period.run, moment.number, moment.parties)

    def _list_of(self, moment: Round) -> tuple[str, ...] | None:
        noted = self._pages.confirmed.get(str(moment.number))
        return tuple(noted) if noted else self.lists.list_of(moment.period.run, moment.number)

    def open(self, moment: Round, ciphertexts: bytes) -> None:
        """Note which set of ciphertexts is about to be opened."""
        pages, once = self._turn_to(moment), _digest(moment, ciphertexts)
        if pages.opened.setdefault(str(moment.number), once) != once:
            raise AlreadyOpened(
                f"ask {moment.number} was opened in epoch {moment.period.epoch} from other ciphertexts; start a new "
                "epoch"
            )
        self._write()

    def release(self, moment: Round, counts: bytes) -> None:
        """Note what was opened, for the statement at the end. Counts only: reals differ by a step between openers."""
        self._pages.released[str(moment.number)] = digest(counts).hex()
        self._write()

    @property
    def released(self) -> dict[int, str]:
        """Digests of the opened counts, by ask."""
        return {int(number): found for number, found in self._pages.released.items()}

    def _turn_to(self, moment: Round) -> _Pages:
        if self._pages.epoch != moment.period.epoch:
            before = self._pages
            self._pages = _Pages(moment.period.epoch, released=before.released, confirmed=before.confirmed)
        return self._pages

    def _write(self) -> None:
        self.folder.write(NAME, json.dumps(asdict(self._pages)).encode())

    def _read(self) -> _Pages:
        try:
            content = self.folder.read(NAME)
            return _Pages() if content is None else _Pages(**json.loads(content))
        except (ValueError, TypeError, OSError) as error:
            raise StoreDamaged(
                f"{self.folder.path / NAME} cannot be read, so nobody knows what was sealed before. Restore the volume "
                "from a backup, or start a new run."
            ) from error


def _digest(moment: Round, content: bytes) -> str:
    return digest(pack("journal", moment.to_bytes(), content)).hex()
