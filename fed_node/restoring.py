"""The end of a restore drill: the ledger is charged for what it forgot, or the dataset's budget is written off.

An older copy of a ledger does not know what was spent since. What did happen is known from outside it: certificates
state what this party signed for, other parties and the volume itself remember in which runs it took part, and under
which plans. A run is charged what its certificate states, or else all that its plan can cost. Where neither is at hand,
nobody can say what was spent, and then nothing may ever be spent again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from crypto.errors import CryptoError
from crypto.keys import Identity, IdentityKey
from fed_node.consent.approvals import Approvals
from fed_node.errors import StoreDamaged
from fed_node.ledger.ledger import Ledger
from fed_node.ledger.view import LedgerView
from fed_node.seal.standing import Seen
from fed_node.settings import KEY, LEDGER, PartySettings, budget_of, policy_at
from fed_node.witnesses import Witnesses
from synth.certificate.certificate import Certificate, SignedStatement, Statement, events_of, read
from synth.errors import InputError
from synth.plan import Plan
from synth.privacy.events import Event, Unaccounted
from synth.programme import whole_cost

WRITTEN_OFF = "written-off"  # the name under which a ledger notes what nobody knows
UNKNOWN = Unaccounted("what was spent before an older ledger was put back")


@dataclass(frozen=True)
class Known:
    """What an administrator brings: certificates of runs, and plans whose whole cost may be charged."""

    certificates: tuple[Certificate, ...] = ()
    plans: tuple[Plan, ...] = ()


def make_up(home: Path, known: Known, *, write_off: bool) -> list[str]:
    """Charge the ledger in a home for all that it lacks; what was done, in words. The worker must not be running."""
    settings = PartySettings.load(home)
    ledger = Ledger(home / LEDGER, settings.dataset, budget_of(settings, policy_at(home)))
    with closing(ledger):
        witnesses = Witnesses(home, settings.name, settings.dataset, ledger)
        stated = own_statements(home, settings.name, known.certificates)
        lacking = witnesses.lacking()
        plans = {plan.digest(): plan for plan in (*_on_the_volume(home, lacking), *known.plans)}
        unknown = [each for each in lacking if each.run not in stated and each.plan not in plans]
        if unknown and not write_off:
            wanted = "; ".join(sorted({f"run {each.run or '?'} of plan {each.plan[:12] or '?'}" for each in unknown}))
            raise InputError(
                f"nobody here knows what was spent in {wanted}. Bring its certificate (--certificate) or its plan "
                "(--plan), or give the dataset up with --write-off."
            )
        return [*_charged(ledger, settings.name, lacking, stated, plans, write_off), *_settled(witnesses, ledger)]


def _charged(
    ledger: Ledger,
    party: str,
    lacking: Iterable[Seen],
    stated: Mapping[str, Statement],
    plans: Mapping[str, Plan],
    write_off: bool,
) -> list[str]:
    told = []
    for each in lacking:
        witnessed = (each.number, each.head) if each.head else None
        if (statement := stated.get(each.run)) is not None:
            spent, plan, why = events_of(statement), statement.plan_digest, "as its certificate states"
        elif each.plan in plans:
            spent, plan, why = whole_cost(plans[each.plan], party), each.plan, "all that its plan can cost"
        else:
            spent, plan, why = list[Event]([UNKNOWN]), each.plan, "unknown: the budget is written off"
        ledger.restore(each.run or WRITTEN_OFF, plan, spent, witnessed)
        told.append(f"run {each.run or '?'}: charged {why}")
    done = {each.run for each in lacking}
    for run, statement in stated.items():
        if run not in done and against(ledger, statement) is not None:
            ledger.restore(run, statement.plan_digest, events_of(statement), _end_of(statement))
            told.append(f"run {run}: charged as its certificate states")
    if write_off and UNKNOWN not in ledger.events():
        ledger.restore(WRITTEN_OFF, "", [UNKNOWN])
        told.append("the budget is written off: nothing is answered on this dataset any more")
    return told


def _settled(witnesses: Witnesses, ledger: LedgerView) -> list[str]:
    witnesses.settle()
    witnesses.require_whole()
    return [f"ε = {ledger.committed().epsilon:.4g} is spent and reserved now"]


def own_statements(home: Path, party: str, certificates: Iterable[Certificate]) -> dict[str, Statement]:
    """What this party signed in these certificates, by run; its own signature is all that is believed."""
    found = {}
    for certificate in certificates:
        statements = [(signed, read(signed)) for signed in certificate.statements]
        own = [(signed, each) for signed, each in statements if each is not None and each.party == party]
        if len(own) != 1 or own[0][1] is None or not _is_own(home, own[0][0]):
            raise InputError(f"the certificate of run {certificate.run[:40]!r} holds nothing that this party signed.")
        found[own[0][1].run] = own[0][1]
    return found


def against(ledger: LedgerView, statement: Statement) -> str | None:
    """Where the ledger does not hold what its party signed for, in words; None: it holds all of it."""
    if statement.ledger_entries is None:  # version 0.2 signed the hash of an entry
        if statement.ledger_head not in {entry.hash for entry in ledger.history()}:
            return "the head that was signed is not in this ledger: it is older, or another one"
    elif not ledger.knows(statement.ledger_entries, statement.ledger_head):
        return f"entry {statement.ledger_entries} is missing or another one: the ledger is older, or was chained anew"
    lacking = ledger.lacks(statement.run, events_of(statement))
    return f"{len(lacking)} of the events that were signed for are not charged to the run" if lacking else None


def _end_of(statement: Statement) -> tuple[int, str] | None:
    return None if statement.ledger_entries is None else (statement.ledger_entries, statement.ledger_head)


def _is_own(home: Path, signed: SignedStatement) -> bool:
    if signed.signature is None:
        return False
    try:
        own = IdentityKey.from_pem((home / KEY).read_bytes()).identity
        if Identity(bytes.fromhex(signed.signature.public_key)) != own:
            return False
        own.verify(bytes.fromhex(signed.signature.signature), signed.text.encode())
    except (OSError, ValueError, CryptoError):
        return False
    return True


def _on_the_volume(home: Path, lacking: Iterable[Seen]) -> list[Plan]:
    """Plans of these runs that were approved or begun here."""
    found = []
    for folder in (Approvals(home / "approved"), Approvals(home / "begun")):
        for digest in {each.plan for each in lacking if each.plan}:
            try:
                found += [folder.get(digest)] if folder.has(digest) else []
            except StoreDamaged:
                continue
    return found
