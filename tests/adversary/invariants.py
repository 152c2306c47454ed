"""The three promises, checked after every move; a broken one is a sentence.

noise       whatever the coalition can open holds at least the promised noise of parties outside it
charges     every answer that left was charged, once; one approval is one run
likeness    on a table with one row more or less, every reply has the same code, names, types and sizes
"""

from __future__ import annotations

from collections import Counter

from synth.plan import Plan
from tests.adversary.consortium import plans
from tests.adversary.openable import Combination, opened, reduced
from tests.adversary.recorder import Recorder
from tests.adversary.world import World


def below_promise(recorder: Recorder) -> list[str]:
    """Openings of something else than one sum of enough honest parties' answers to one question."""
    by_digest = {plan.digest(): plan for plan in plans()}
    rows = reduced(opened(recorder.vectors, recorder.known), set(recorder.coalition))
    return [*recorder.foreign, *(sentence for row in rows if (sentence := _flaw(row, by_digest)))]


def _flaw(row: Combination, by_digest: dict[str, Plan]) -> str:
    answers = list(row)
    names = ", ".join(f"{row[each]}·{each.party}" for each in answers)
    what = f"{names} of {answers[0].run}, ask {answers[0].sequence}"
    if len({(each.run, each.sequence) for each in answers}) != 1 or set(row.values()) != {1}:
        return f"opened {what}, which is no sum of answers to one question"
    needed = by_digest[answers[0].plan].noisy_parties
    if len({each.party for each in answers}) < needed:
        return f"opened {what}; the promise needs the noise of {needed} honest parties"
    return ""


def uncharged(world: World) -> list[str]:
    """Answers that left and were not charged, or were charged once and drawn twice; runs without an approval."""
    found = []
    drawn = Counter((each.party, each.run, each.sequence) for each in world.recorder.answers)
    for (party, run, sequence), times in drawn.items():
        charged = sequence in world.homes[party].party.ledger.asks(run)
        if not charged or times > 1:
            found.append(f"{party} let out {times} answers to ask {sequence} of {run}, charged: {charged}")
    for party, home in world.homes.items():
        begun = Counter(entry.plan_digest for entry in _first_reservations(home.party.ledger.history()))
        given = Counter(entry.plan_digest for entry in home.party.ledger.history() if entry.kind == "approve")
        found += [f"{party} began {n} runs on {given[plan]} approvals" for plan, n in begun.items() if n > given[plan]]
    return found


def _first_reservations(history: list) -> list:  # type: ignore[type-arg]
    seen: set[str] = set()
    first = []
    for entry in history:
        if entry.kind == "reserve" and entry.run not in seen:
            seen.add(entry.run)
            first.append(entry)
    return first
