"""The party's own record of what its rows have cost, and the gate before every answer.

Approving a plan sets its whole cost aside, so a run never dies half-way for lack of budget. One run takes that over
(or, where a policy approves without a person, reserves as it begins) and belongs to its plan from then on; each ask is
charged against the reservation before anything is computed, and its answer is noted before it leaves; what was not used
is given back at the end. Entries are only ever added, each is on the disk before the method returns, and each is
chained to the one before (see `chain`).

The ε of a composition takes tenths of a second, too long to wait for at every ask. It is not needed there: the
reservation was composed with everything else when it was made, and a charge can only use part of it. So a charge
carries, as its cumulative (ε, δ), the ε of everything spent *and reserved*: never less than what was spent, and the
very figure that was held against the budget. The entry that ends a run has the unused part taken out again, and
`spent()` composes what was really charged at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from fed_node.errors import (
    AlreadyConfirmed,
    AskChanged,
    NotApproved,
    NotReserved,
    RunFinished,
    RunOfAnotherPlan,
    StoreDamaged,
    StoreError,
)
from fed_node.ledger.book import Account, Budget, Entry, Kind, from_link, to_body, utc_now
from fed_node.ledger.chain import Chain
from fed_node.ledger.lifetime import held, is_within
from fed_node.ledger.tally import Tally, events_of, tally_of
from fed_node.ledger.view import LedgerView
from synth.errors import BudgetError, InputError
from synth.privacy.accounting import Spent
from synth.privacy.events import Event

__all__ = ["Budget", "Entry", "Ledger", "LedgerView"]


class Ledger(LedgerView):
    """One dataset's ledger, for the single process that may write it. Without a budget everything is recorded only."""

    def __init__(self, path: Path, dataset: str, budget: Budget | None) -> None:
        self._open(Chain(path, write=True))
        with ExitStack() as on_failure:
            on_failure.callback(self.close)
            self._check_dataset(dataset)
            self.set_budget(budget, dataset)
            on_failure.pop_all()

    def approve(self, plan_digest: str, events: Iterable[Event]) -> Entry:
        """Set aside a plan's whole cost for its next run, or refuse. Nothing changes while it is set aside already."""
        with self._guard:
            book, wanted = self._current(), tally_of(events)
            standing = book.approvals.get(plan_digest)
            if standing is not None and standing.reserved == wanted:
                return standing.frame
            whole = held(book.others(standing), book.budget, wanted)
            self._refuse_beyond_budget(f"plan {plan_digest[:12]}", wanted, whole)
            if standing is not None:  # another version of the code, at another price
                self.withdraw(plan_digest)
            return self._add("approve", whole, "", plan_digest, wanted)

    def withdraw(self, plan_digest: str) -> list[Entry]:
        """Give back what a plan's approval set aside, and what its open runs have not used; they cannot go on. It is
        remembered, so that no policy approves the plan again."""
        with self._guard:
            book = self._current()
            ended = [self.release(run) for run, account in book.runs_of(plan_digest).items() if account.is_open]
            standing = book.approvals.get(plan_digest)
            if plan_digest not in book.withdrawn:
                left = held(book.others(standing), book.budget)
                unused = standing.reserved if standing else tally_of([])
                ended.append(self._add("withdraw", left, "", plan_digest, unused))
            return ended

    def reserve(self, run: str, plan_digest: str, events: Iterable[Event], *, automatic: bool = False) -> Entry:
        """Begin a run with its whole cost set aside, or refuse. Repeated, it changes nothing.

        The run takes a person's approval over, and nobody else can; `automatic`: the policy approves without one. A
        run that was released is taken up again as a new one would be, a finished one never.
        """
        with self._guard:
            book, wanted = self._current(), tally_of(events)
            account, standing = book.accounts.get(run), book.approvals.get(plan_digest)
            if account is not None:
                self._require_plan(run, account, plan_digest)
                if account.reserved != wanted:
                    raise AskChanged(f"run {run} was reserved before at another cost; start a new run.")
                if account.is_finished:
                    raise RunFinished(f"run {run} has ended here for good; start a new run.")
                if account.is_open:
                    return account.frame
            self._require_approval(plan_digest, standing, wanted, automatic)
            whole = held(book.others(account, standing), book.budget, wanted)
            self._refuse_beyond_budget(f"run {run}", wanted, whole)
            return self._add("reserve", whole, run, plan_digest, wanted)

    def charge(self, run: str, plan_digest: str, sequence: int, ask_digest: str, events: Iterable[Event]) -> Entry:
        """Record what an answer costs, before it is computed. The same ask again costs nothing again."""
        with self._guard:
            account = self._account(run)
            self._require_plan(run, account, plan_digest)
            if (before := account.charges.get(sequence)) is not None:
                if before.ask_digest != ask_digest:
                    raise AskChanged(
                        f"run {run}, ask {sequence} was charged before with other content. The aggregator must resume "
                        "from its checkpoint or start a new run."
                    )
                return before
            if account.is_finished:
                raise RunFinished(f"run {run} has ended here for good; start a new run.")
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
            self._refuse_beyond_budget(f"run {run}", cost, committed)  # the budget may have been lowered since
            return self._add("charge", committed, run, plan_digest, cost, sequence, ask_digest)

    def answer(self, run: str, sequence: int, ask_digest: str, answer_digest: str) -> Entry:
        """Note that the answer to a charged ask is stored, before it leaves: from now on it is the only one."""
        with self._guard:
            account = self._account(run)
            charge, before = account.charges.get(sequence), account.answers.get(sequence)
            if charge is None or charge.ask_digest != ask_digest:
                raise StoreDamaged(
                    f"run {run}, ask {sequence}: there is a stored answer that the ledger never charged. One of the "
                    "two was replaced by another copy; restore the volume as a whole, or start a new run."
                )
            if before is None:
                committed = self._current().entries[-1].cumulative
                return self._add("answer", committed, run, account.plan_digest, tally_of([]), sequence, answer_digest)
            if before.answer_digest != answer_digest:
                raise StoreDamaged(
                    f"run {run}, ask {sequence}: the stored answer is not the one that the ledger knows. Restore the "
                    "volume as a whole, or start a new run."
                )
            return before

    def bind(self, run: str, sequence: int, parties: Sequence[str]) -> None:
        """Note the one list of parties in whose sum an answer may be opened, before it can be."""
        with self._guard:
            account = self._account(run)
            bound = account.lists.get(sequence)
            if bound is None:
                committed, plan = self._current().entries[-1].cumulative, account.plan_digest
                names = tuple(parties)
                self._append(
                    Entry("bind", utc_now(), committed, run=run, plan_digest=plan, sequence=sequence, parties=names)
                )
            elif bound != tuple(parties):
                raise AlreadyConfirmed(f"run {run}, ask {sequence} is bound to other parties for good.")

    def release(self, run: str) -> Entry:
        """Stop a run: what it reserved and did not use is given back. Repeated, it changes nothing."""
        with self._guard:
            account = self._account(run)
            return self._end("release", run, account) if account.is_open else account.frame

    def finish(self, run: str) -> Entry:
        """End a run for good, giving back what it did not use. Repeated, it changes nothing."""
        with self._guard:
            account = self._account(run)
            return account.frame if account.is_finished else self._end("finish", run, account)

    def restore(
        self, run: str, plan_digest: str, spent: Iterable[Event], witnessed: tuple[int, str] | None = None
    ) -> Entry:
        """After an older copy was put back: charge what a run spent in all, as far as this copy does not know of it,
        whatever the budget says. What happened is not refused; what comes next is."""
        with self._guard:
            book, account = self._current(), self._current().accounts.get(run)
            known = account.charged if account else tally_of([])
            missing = tally_of(spent) - known
            after = Entry("restore", utc_now(), Spent(0.0, book.delta, "none"), run=run, plan_digest=plan_digest,
                          events=tuple(events_of(missing)), witnessed=witnessed)  # fmt: skip
            parts = [
                *book.others(account, book.approvals.get(plan_digest)),
                Account(plan_digest, known + missing, after),
            ]
            return self._append(replace(after, cumulative=held(parts, book.budget)))

    def give_up(self) -> list[str]:
        """After a copy was put back: a run that was under way when it was taken may have been answered since, and asked
        again it would be answered with other noise. Each is charged all that was set aside for it, and is over."""
        with self._guard:
            under_way = {run: each for run, each in self._current().accounts.items() if each.is_open}
            for run, account in under_way.items():
                self.restore(run, account.plan_digest, events_of(account.reserved))
            return list(under_way)

    def _end(self, kind: Kind, run: str, account: Account) -> Entry:
        book, unused = self._current(), account.unused
        after = replace(account, is_open=False)
        return self._add(kind, held([*book.others(account), after], book.budget), run, account.plan_digest, unused)

    def set_budget(self, budget: Budget | None, dataset: str | None = None) -> None:
        """A budget that the party changed holds from now on, and is written down first."""
        with self._guard:
            book = self._current()
            if book.entries and book.budget == budget:
                return
            if book.budget is not None and budget is None:
                raise InputError(
                    f"{self._chain.path} has a budget of ε = {book.budget.epsilon:g}, and neither a policy nor the "
                    "party's settings state one any more. Put the file back: nothing is answered without."
                )
            kind: Kind = "budget" if book.entries else "open"
            spent = held(book.others(), budget)
            self._append(Entry(kind, utc_now(), spent, dataset=dataset or book.dataset, budget=budget))

    def _check_dataset(self, dataset: str) -> None:
        book = self._current()
        if book.entries and book.dataset != dataset:
            raise InputError(
                f"{self._chain.path} is the ledger of dataset '{book.dataset}', not of '{dataset}'. Correct the "
                "dataset's name, or give the other dataset a ledger of its own."
            )

    def _account(self, run: str) -> Account:
        account = self._current().accounts.get(run)
        if account is None:
            raise NotReserved(f"run {run} never reserved its cost here; approve its plan and start it again.")
        return account

    def _require_plan(self, run: str, account: Account, plan_digest: str) -> None:
        if account.plan_digest != plan_digest:
            raise RunOfAnotherPlan(f"run {run} was begun under another plan; a new plan needs a new run.")

    def _require_approval(self, plan_digest: str, standing: Account | None, wanted: Tally, automatic: bool) -> None:
        if standing is not None and standing.reserved != wanted:
            raise NotApproved(
                f"plan {plan_digest[:12]} costs something else than when it was approved: the code has changed "
                "since. Look at the cost and approve it again."
            )
        if standing is None and (not automatic or plan_digest in self._current().withdrawn):
            raise NotApproved(
                f"plan {plan_digest[:12]} has no approval that is left for this run: one approval is for one run, and "
                "a withdrawn one is gone. `fedsynth node approve PLAN` again lets it spend again."
            )

    def _refuse_beyond_budget(self, who: str, wanted: Tally, whole: Spent) -> None:
        budget = self._current().budget
        if budget is None or is_within(whole, budget):
            return
        if unaccounted := [event.words() for event in wanted if not event.guaranteed]:
            raise BudgetError(
                f"{who} would release {'; '.join(unaccounted)}, and dataset "
                f"'{self.dataset}' has a budget. Use the rigorous profile, or rows that are public."
            )
        raise BudgetError(
            f"{who} would bring dataset '{self.dataset}' to ε = {whole.epsilon:.4g} at δ = {budget.delta:g}, spent "
            f"and reserved together; the budget is {budget.epsilon:g}. Lower the plan's ε, withdraw a plan that still "
            "holds a reservation (`fedsynth node withdraw`), or raise the budget."
        )

    def _add(
        self, kind: Kind, cumulative: Spent, run: str, plan_digest: str, cost: Tally, sequence: int = -1, what: str = ""
    ) -> Entry:
        """`what`: the digest of the ask that is charged, or of the answer that may leave."""
        ask_digest, answer_digest = (what, "") if kind == "charge" else ("", what)
        return self._append(
            Entry(
                kind, utc_now(), cumulative, run=run, plan_digest=plan_digest, events=tuple(events_of(cost)),
                sequence=sequence, ask_digest=ask_digest, answer_digest=answer_digest,
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
