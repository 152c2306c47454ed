"""What a ledger's entries add up to: for each run, and for each approved plan that waits for its run, what is set
aside; and for each run its plan, what was charged and what was answered.

The book is a function of the entries alone. It is built again whenever a ledger is opened, so there is no second
record of what was spent that could disagree with the first.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from fed_node.ledger.chain import Link
from fed_node.ledger.heads import first_head, next_head
from fed_node.ledger.tally import Tally, tally_of
from synth.privacy.accounting import Spent
from synth.privacy.events import Event, from_dict, to_dict

Kind = Literal[
    "open", "budget", "approve", "withdraw", "reserve", "charge", "answer", "bind", "release", "finish", "restore"
]  # fmt: skip
DELTA_WITHOUT_BUDGET = 1e-6  # only what simulations on public rows print depends on it
UNBOUNDED = "unbounded"  # JSON has no infinity


@dataclass(frozen=True)
class Budget:
    """What all runs together may spend on a dataset: `epsilon` at `delta`."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0 and 0 < self.delta < 1):
            raise ValueError(f"a budget needs ε above 0 and δ between 0 and 1, got {self.epsilon} and {self.delta}")


@dataclass(frozen=True)
class Entry:
    """One line of the ledger. `cumulative` bounds everything spent up to and including it, over all runs.

    Entries "open" and "budget" set dataset and budget. "approve" sets a plan's whole cost aside for one run,
    "withdraw" gives it back and is remembered. "reserve" begins a run and binds it to its plan for ever; it takes over
    what an approval set aside. "charge" spends, "answer" says that the answer is stored and may leave, "bind" names
    the one list of parties in whose sum it may be opened; "release" gives back what a run did not use, "finish" does so
    for good. "restore" charges, after an older copy was put back, what a run spent beyond it, and ends that run.
    `time` is for people; nothing is decided by it.
    """

    kind: Kind
    time: str  # UTC, ISO 8601
    cumulative: Spent
    dataset: str = ""
    budget: Budget | None = None
    run: str = ""
    plan_digest: str = ""
    sequence: int = -1
    ask_digest: str = ""
    answer_digest: str = ""
    parties: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    witnessed: tuple[int, str] | None = None  # "restore": number and head of an entry that the older copy lacks
    number: int = 0
    hash: str = ""


@dataclass
class Account:
    """One run, or one approved plan that has none yet: charged never exceeds reserved."""

    plan_digest: str
    reserved: Tally
    frame: Entry  # the latest "approve", "reserve", "release" or "finish"
    is_open: bool = True
    is_finished: bool = False
    charged: Tally = field(default_factory=Counter)
    charges: dict[int, Entry] = field(default_factory=dict)  # by sequence number
    answers: dict[int, Entry] = field(default_factory=dict)  # of these, the ones whose answer may have left
    lists: dict[int, tuple[str, ...]] = field(default_factory=dict)  # of these, the ones bound to a list of parties

    @property
    def committed(self) -> Tally:
        """What this run has spent or may still spend."""
        return self.reserved if self.is_open else self.charged

    @property
    def unused(self) -> Tally:
        """What it may still spend."""
        return self.reserved - self.charged if self.is_open else Counter()


class Book:
    """Accounts by run, in the order in which they were opened, and approvals by the digest of their plan."""

    def __init__(self) -> None:
        self.dataset = ""
        self.budget: Budget | None = None
        self.accounts: dict[str, Account] = {}
        self.approvals: dict[str, Account] = {}  # set aside, not yet taken over by a run
        self.withdrawn: set[str] = set()  # digests of plans that nobody approved since
        self.automatic: set[str] = set()  # runs that took over nobody's approval
        self.entries: list[Entry] = []
        self.heads: list[str] = []  # by entry, as others may see them
        self.lost: set[tuple[int, str]] = set()  # heads of entries that an older copy lacks, and that were made up for

    def enter(self, entry: Entry) -> None:
        self.heads.append(next_head(self.heads[-1], entry) if self.heads else first_head(entry))
        self.entries.append(entry)
        match entry.kind:
            case "open" | "budget":
                self.dataset, self.budget = entry.dataset, entry.budget
            case "approve":
                self.approvals[entry.plan_digest] = Account(entry.plan_digest, tally_of(entry.events), entry)
                self.withdrawn.discard(entry.plan_digest)
            case "withdraw":
                self.approvals.pop(entry.plan_digest, None)
                self.withdrawn.add(entry.plan_digest)
            case "reserve":
                if self.approvals.pop(entry.plan_digest, None) is None and entry.run not in self.accounts:
                    self.automatic.add(entry.run)
                account = self.accounts.setdefault(entry.run, Account(entry.plan_digest, tally_of(entry.events), entry))
                account.is_open, account.frame = True, entry
            case "charge":
                account = self.accounts[entry.run]
                account.charged += tally_of(entry.events)
                account.charges[entry.sequence] = entry
            case "answer":
                self.accounts[entry.run].answers[entry.sequence] = entry
            case "bind":
                self.accounts[entry.run].lists[entry.sequence] = entry.parties
            case "release" | "finish":
                account = self.accounts[entry.run]
                account.is_open, account.frame = False, entry
                account.is_finished |= entry.kind == "finish"
            case "restore":
                self._restore(entry)
            case _:
                raise ValueError(f"'{entry.kind}' is no kind of entry")

    def _restore(self, entry: Entry) -> None:
        """The run is over and cost at least this; an approval of its plan was used by what was lost."""
        self.approvals.pop(entry.plan_digest, None)
        account = self.accounts.setdefault(entry.run, Account(entry.plan_digest, Counter(), entry))
        account.charged += tally_of(entry.events)
        account.reserved |= account.charged
        account.is_open, account.is_finished, account.frame = False, True, entry
        if entry.witnessed is not None:
            self.lost.add(entry.witnessed)

    @property
    def delta(self) -> float:
        """The δ at which everything here is composed."""
        return self.budget.delta if self.budget else DELTA_WITHOUT_BUDGET

    def charged(self) -> Tally:
        return _sum(account.charged for account in self.accounts.values())

    def others(self, *without: Account | None) -> list[Account]:
        """Every run and approved plan but these."""
        return [each for each in self._all() if not any(each is one for one in without)]

    def holders(self) -> list[tuple[str, Account]]:
        """Who has set something aside: open runs by name, and approvals, which have none."""
        runs = [(run, account) for run, account in self.accounts.items() if account.is_open]
        return runs + [("", account) for account in self.approvals.values()]

    def reserved(self) -> Tally:
        """What open runs and approved plans have not used yet."""
        return _sum(account.unused for account in self._all())

    def runs_of(self, plan_digest: str) -> dict[str, Account]:
        return {run: account for run, account in self.accounts.items() if account.plan_digest == plan_digest}

    def _all(self) -> list[Account]:
        return [*self.accounts.values(), *self.approvals.values()]


def to_body(entry: Entry) -> dict[str, Any]:
    """The entry as JSON values; number and hash belong to the chain."""
    body: dict[str, Any] = {"kind": entry.kind, "time": entry.time, "cumulative": spent_to_dict(entry.cumulative)}
    if entry.kind in ("open", "budget"):
        budget = entry.budget and {"epsilon": entry.budget.epsilon, "delta": entry.budget.delta}
        return body | {"dataset": entry.dataset, "budget": budget}
    body |= {"run": entry.run, "plan_digest": entry.plan_digest, "events": [to_dict(event) for event in entry.events]}
    if entry.kind == "charge":
        body |= {"sequence": entry.sequence, "ask_digest": entry.ask_digest}
    if entry.kind == "answer":
        body |= {"sequence": entry.sequence, "answer_digest": entry.answer_digest}
    if entry.kind == "bind":
        body |= {"sequence": entry.sequence, "parties": list(entry.parties)}
    if entry.witnessed is not None:
        body |= {"witnessed": list(entry.witnessed)}
    return body


def from_link(link: Link) -> Entry:
    body = dict(link.body)
    budget, witnessed = body.pop("budget", None), body.pop("witnessed", None)
    return Entry(
        witnessed=witnessed and (int(witnessed[0]), str(witnessed[1])),
        cumulative=_spent_from(body.pop("cumulative")),
        budget=budget and Budget(**budget),
        events=tuple(from_dict(event) for event in body.pop("events", [])),
        parties=tuple(body.pop("parties", [])),
        number=link.number,
        hash=link.hash,
        **body,
    )


def utc_now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def spent_to_dict(spent: Spent) -> dict[str, Any]:
    epsilon = spent.epsilon if math.isfinite(spent.epsilon) else UNBOUNDED
    return {"epsilon": epsilon, "delta": spent.delta, "method": spent.method}


def _spent_from(body: dict[str, Any]) -> Spent:
    epsilon = math.inf if body["epsilon"] == UNBOUNDED else body["epsilon"]
    return Spent(epsilon, body["delta"], body["method"])


def _sum(tallies: Iterable[Tally]) -> Tally:
    total: Tally = Counter()
    for tally in tallies:
        total += tally
    return total
