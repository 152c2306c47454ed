"""Reading a party's ledger, without disturbing the worker that writes it."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from fed_node.errors import StoreDamaged
from fed_node.ledger.book import Book, Budget, Entry, from_link, spent_to_dict
from fed_node.ledger.chain import Chain
from fed_node.ledger.heads import FRAMES
from fed_node.ledger.lifetime import held
from fed_node.ledger.tally import events_of, tally_of
from synth.errors import InputError, PrivacyError
from synth.privacy.accounting import Spent, compose
from synth.privacy.events import Event, to_dict


@dataclass(frozen=True)
class Reservation:
    """What is set aside and not used yet, and for whom."""

    plan_digest: str
    run: str  # empty: the plan was approved, and its run has not begun
    events: tuple[Event, ...]


class LedgerView:
    """The ledger as it stood when it was opened: every entry on the disk was checked before it was used."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise InputError(f"there is no ledger at {path}; it is made when the party first runs.")
        self._open(Chain(path, write=False))

    def _open(self, chain: Chain) -> None:
        self._guard = threading.RLock()
        self._chain = chain
        self._book: Book | None = None
        with ExitStack() as on_failure:
            on_failure.callback(self.close)
            self._current()
            on_failure.pop_all()

    @property
    def dataset(self) -> str:
        return self._current().dataset

    @property
    def budget(self) -> Budget | None:
        return self._current().budget

    @property
    def head(self) -> str:
        """Hash of the last entry; in a certificate it proves later that nothing was cut off."""
        return self._chain.head

    def head_at(self, number: int) -> str | None:
        """The head that others may see, as it was after that entry; None: there is no such entry."""
        with self._guard:
            heads = self._current().heads
            return heads[number - 1] if 0 < number <= len(heads) else None

    def knows(self, number: int, head: str) -> bool:
        """Whether this ledger held that head once, or an administrator made up for what it lacks."""
        with self._guard:
            return self.head_at(number) == head or (number, head) in self._current().lost

    def frames(self) -> list[Entry]:
        """Entries whose heads are shown to others."""
        with self._guard:
            return [entry for entry in self._current().entries if entry.kind in FRAMES]

    def lost(self) -> list[tuple[int, str]]:
        """Heads of entries that an older copy lacked, and that were made up for."""
        with self._guard:
            return sorted(self._current().lost)

    def end_of(self, run: str) -> Entry:
        """The entry that ended a run."""
        with self._guard:
            return self._current().accounts[run].frame

    def history(self) -> list[Entry]:
        with self._guard:
            return list(self._current().entries)

    def events(self, run: str | None = None) -> list[Event]:
        """What was charged so far, by all runs or by one; steps are added up."""
        with self._guard:
            book = self._current()
            if run is None:
                return events_of(book.charged())
            account = book.accounts.get(run)
            return events_of(account.charged) if account else []

    def lacks(self, run: str, events: Sequence[Event]) -> list[Event]:
        """Of these events those that the run was not charged for."""
        return events_of(tally_of(events) - tally_of(self.events(run)))

    def asks(self, run: str) -> list[int]:
        """Numbers of the asks that a run was charged for."""
        with self._guard:
            account = self._current().accounts.get(run)
            return sorted(account.charges) if account else []

    def ask_digests(self, run: str) -> dict[int, str]:
        """What those asks were, by number."""
        with self._guard:
            account = self._current().accounts.get(run)
            return {number: entry.ask_digest for number, entry in account.charges.items()} if account else {}

    def plan_of(self, run: str) -> str | None:
        """Digest of the one plan that a run belongs to for ever; None: no such run ever reserved."""
        with self._guard:
            account = self._current().accounts.get(run)
            return account.plan_digest if account else None

    def is_finished(self, run: str) -> bool:
        with self._guard:
            account = self._current().accounts.get(run)
            return account is not None and account.is_finished

    def is_open(self, run: str) -> bool:
        with self._guard:
            account = self._current().accounts.get(run)
            return account is not None and account.is_open

    def is_answered(self, run: str, sequence: int) -> bool:
        """Whether the answer to an ask may have left."""
        with self._guard:
            account = self._current().accounts.get(run)
            return account is not None and sequence in account.answers

    def list_of(self, run: str, sequence: int) -> tuple[str, ...] | None:
        """The one list of parties in whose sum an answer may be opened; None: it is not bound yet."""
        with self._guard:
            account = self._current().accounts.get(run)
            return account.lists.get(sequence) if account else None

    def is_withdrawn(self, plan_digest: str) -> bool:
        """Whether somebody took the plan's approval back and nobody gave it again."""
        with self._guard:
            return plan_digest in self._current().withdrawn

    def is_set_aside(self, plan_digest: str) -> bool:
        """Whether a person's approval waits for the plan's next run."""
        with self._guard:
            return plan_digest in self._current().approvals

    def automatic_runs(self) -> int:
        """How many runs ever began without a person's approval."""
        with self._guard:
            return len(self._current().automatic)

    def spent(self, run: str | None = None) -> Spent:
        """Tight ε of `events`, at the budget's δ: what was lost if the plans had been fixed beforehand."""
        return compose(self.events(run), self._current().delta)

    def reserved(self) -> list[Event]:
        """What open runs and approved plans have set aside and not used yet."""
        with self._guard:
            return events_of(self._current().reserved())

    def reservations(self) -> list[Reservation]:
        """The same by holder, in the order in which they were made."""
        with self._guard:
            holders = self._current().holders()
            return [Reservation(each.plan_digest, run, tuple(events_of(each.unused))) for run, each in holders]

    def was_begun(self, plan_digest: str) -> bool:
        """Whether a run of the plan took an approval over."""
        with self._guard:
            return bool(self._current().runs_of(plan_digest))

    def committed(self) -> Spent:
        """ε of everything spent and reserved together: what is held against the budget."""
        with self._guard:
            book = self._current()
            return held(book.others(), book.budget)

    def committed_with(self, plan_digest: str, events: Sequence[Event], budget: Budget) -> Spent:
        """The same if the plan were approved now, under that budget."""
        with self._guard:
            book = self._current()
            return held(book.others(book.approvals.get(plan_digest)), budget, tally_of(events))

    def verify(self) -> int:
        """Check the chain on the disk again: how many entries hold; `StoreDamaged` names the first that does not."""
        with self._guard:
            return len(self._chain.read())

    def to_json(self) -> str:
        """Everything, for auditors and other programs."""
        with self._guard:
            links = self._chain.read()
            budget = self.budget and {"epsilon": self.budget.epsilon, "delta": self.budget.delta}
            content = {
                "dataset": self.dataset,
                "budget": budget,
                "spent": spent_to_dict(self.spent()),
                "committed": spent_to_dict(self.committed()),
                "reservations": [
                    {"plan_digest": each.plan_digest, "run": each.run, "events": [to_dict(e) for e in each.events]}
                    for each in self.reservations()
                ],
                "head": self.head,
                "entries": [{"number": link.number, **link.body, "hash": link.hash} for link in links],
            }
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)

    def close(self) -> None:
        self._chain.close()

    def _current(self) -> Book:
        """The book of what is on the disk; read again after a write that failed."""
        if self._book is None:
            book = Book()
            for link in self._chain.read():
                try:
                    book.enter(from_link(link))
                except (PrivacyError, KeyError, TypeError, ValueError) as error:
                    raise StoreDamaged(
                        f"{self._chain.path}: entry {link.number} is not one this version writes ({error}). Use the "
                        "version that wrote it, or restore the file from a backup."
                    ) from error
            self._book = book
        return self._book
