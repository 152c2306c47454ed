"""The party's own record of what its rows have cost, and the gate before every answer.

A run reserves its whole cost before it starts, so it never dies half-way for lack of budget; each ask is then charged
against the reservation before anything is computed; what was not used is given back at the end. Entries are only ever
added, each is on the disk before the method returns, and each is chained to the one before (see `chain`).

The exact ε of a composition takes tenths of a second, too long to wait for at every ask. It is not needed there: the
reservation was composed with everything else when it was made, and a charge can only use part of it. So a charge
carries, as its cumulative (ε, δ), the ε of everything spent *and reserved*: never less than what was spent, and the
very figure that was held against the budget. The entry that ends a run has the unused part taken out again, and
`spent()` composes what was really charged at any time.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from fed_node.book import Account, Budget, Entry, Kind, from_link, to_body, utc_now
from fed_node.chain import Chain
from fed_node.errors import AskChanged, NotReserved, StoreError
from fed_node.ledger_view import LedgerView
from fed_node.tally import Tally, events_of, tally_of
from synth.errors import BudgetError, InputError
from synth.privacy.accounting import Spent, compose
from synth.privacy.events import Event, Unaccounted

__all__ = ["Budget", "Entry", "Ledger", "LedgerView"]

ROUNDING = 1e-9  # relative; adding the same losses in another order differs by less


class Ledger(LedgerView):
    """One dataset's ledger, for the single process that may write it. Without a budget everything is recorded only."""

    def __init__(self, path: Path, dataset: str, budget: Budget | None) -> None:
        self._open(Chain(path, write=True))
        with ExitStack() as on_failure:
            on_failure.callback(self.close)
            self._agree(dataset, budget)
            on_failure.pop_all()

    def reserve(self, run: str, plan_digest: str, events: Iterable[Event]) -> Entry:
        """Set aside a run's whole cost, or refuse. Repeated, it changes nothing; a released run is taken up again."""
        with self._guard:
            book, wanted = self._current(), tally_of(events)
            account = book.accounts.get(run)
            if account is not None:
                if (account.plan_digest, account.reserved) != (plan_digest, wanted):
                    raise AskChanged(f"run {run} was reserved before under another plan or cost; start a new run.")
                if account.is_open:
                    return account.frame
            whole = compose(events_of(book.committed(without=run) + wanted), book.delta)
            self._refuse_beyond_budget(run, wanted, whole)
            return self._add("reserve", whole, run, plan_digest, wanted)

    def charge(self, run: str, plan_digest: str, sequence: int, ask_digest: str, events: Iterable[Event]) -> Entry:
        """Record what an answer costs, before it is computed. The same ask again costs nothing again."""
        with self._guard:
            account = self._account(run)
            if account.plan_digest != plan_digest:
                raise AskChanged(f"run {run} was reserved under another plan; start a new run.")
            if (before := account.charges.get(sequence)) is not None:
                if before.ask_digest != ask_digest:
                    raise AskChanged(
                        f"run {run}, ask {sequence} was charged before with other content. The aggregator must resume "
                        "from its checkpoint or start a new run."
                    )
                return before
            if not account.is_open:
                raise NotReserved(f"run {run} has ended here and its reservation was given back; reserve it again.")
            cost = tally_of(events)
            if not account.charged + cost <= account.reserved:
                raise BudgetError(
                    f"run {run}, ask {sequence} costs {events_of(cost)}, but of its reservation only "
                    f"{events_of(account.reserved - account.charged)} is left: the plan or the code changed after "
                    "approval. Approve the plan again and start a new run."
                )
            committed = self._current().entries[-1].cumulative  # a charge is within it, so it does not change
            return self._add("charge", committed, run, plan_digest, cost, sequence, ask_digest)

    def release(self, run: str) -> Entry:
        """End a run: what it reserved and did not use is given back. Repeated, it changes nothing."""
        with self._guard:
            book, account = self._current(), self._account(run)
            if not account.is_open:
                return account.frame
            left = compose(events_of(book.committed(without=run) + account.charged), book.delta)
            return self._add("release", left, run, account.plan_digest, account.reserved - account.charged)

    def _agree(self, dataset: str, budget: Budget | None) -> None:
        """The file is this dataset's; a budget that the party changed since is written down first."""
        book = self._current()
        if book.entries and book.dataset != dataset:
            raise InputError(
                f"{self._chain.path} is the ledger of dataset '{book.dataset}', not of '{dataset}'. Correct the "
                "dataset's name, or give the other dataset a ledger of its own."
            )
        if not book.entries or book.budget != budget:
            kind: Kind = "budget" if book.entries else "open"
            book.budget = budget  # the δ to compose at
            spent = compose(events_of(book.committed()), book.delta)
            self._append(Entry(kind, utc_now(), spent, dataset=dataset, budget=budget))

    def _account(self, run: str) -> Account:
        account = self._current().accounts.get(run)
        if account is None:
            raise NotReserved(f"run {run} never reserved its cost here; approve its plan and start it again.")
        return account

    def _refuse_beyond_budget(self, run: str, wanted: Tally, whole: Spent) -> None:
        budget = self._current().budget
        if budget is None or whole.epsilon <= budget.epsilon * (1 + ROUNDING):
            return
        if unaccounted := [event.what for event in wanted if isinstance(event, Unaccounted)]:
            raise BudgetError(
                f"run {run} would release {', '.join(unaccounted)} without any provable privacy, and dataset "
                f"'{self.dataset}' has a budget. Use the rigorous profile, or rows that are public."
            )
        raise BudgetError(
            f"run {run} would bring dataset '{self.dataset}' to ε = {whole.epsilon:.4g} at δ = {budget.delta:g}, spent "
            f"and reserved together; the budget is {budget.epsilon:g}. Lower the plan's ε, end a run that still holds "
            "a reservation, or raise the budget."
        )

    def _add(
        self, kind: Kind, cumulative: Spent, run: str, plan_digest: str, cost: Tally, sequence: int = -1, ask: str = ""
    ) -> Entry:
        events = tuple(events_of(cost))
        return self._append(
            Entry(
                kind, utc_now(), cumulative,
                run=run, plan_digest=plan_digest, events=events, sequence=sequence, ask_digest=ask,
            )
        )  # fmt: skip

    def _append(self, entry: Entry) -> Entry:
        try:
            link = self._chain.append(to_body(entry))
        except StoreError:
            self._book = None  # whether it reached the disk is for the disk to say
            raise
        entry = from_link(link)
        self._current().enter(entry)
        return entry
