"""A run, at the aggregator: admit → agree → train → assess → publish.

`synthesize` is the data flow in order. It sees sums and released quantities only; what it writes after every round is
enough to continue after a kill.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from aggregator import checkpoint
from aggregator.admit import admit
from aggregator.checkpoint import Position
from aggregator.exchange import GridExchange
from aggregator.federate import federate
from aggregator.publish import Release, publish
from aggregator.secure_sum import SecureSum
from aggregator.spending import Spending
from aggregator.watch import Watch
from crypto.errors import CryptoError
from crypto.keys import Identity, IdentityKey
from synth.assessment.inquiry import AssessmentInquiry
from synth.assessment.record import AssessmentRecord
from synth.encoding.records import Records
from synth.errors import InputError
from synth.interface import Ask, Synthesizer
from synth.mixture_rounds import statistics_inquiry
from synth.plan import Plan
from synth.statistics import Statistics
from synth.synthesizers import build

Keep = Callable[[Position], None]  # writes the checkpoint


@dataclass(frozen=True)
class Desk:
    """Where a run works and where its result goes."""

    work: Path  # the checkpoint; survives a kill
    output: Path
    simulated: bool
    seed: int | None = None  # simulations and tests only
    identity: Path | None = None  # PEM file of the key that signs certificates
    roster: Mapping[str, Identity] | None = None  # the parties' identities; without it, trusted on first use

    @property
    def key(self) -> IdentityKey | None:
        if self.identity is None:
            return None
        try:
            return IdentityKey.from_pem(self.identity.read_bytes())
        except (OSError, CryptoError) as error:
            raise InputError(f"the aggregator's key {self.identity} cannot be used ({error}).") from None

    @property
    def checkpoint(self) -> Path:
        return self.work / "checkpoint.npz"


def synthesize(plan: Plan, exchange: GridExchange, desk: Desk, watch: Watch) -> Release:
    """The whole run; continues from the desk's checkpoint if there is one."""
    key, synthesizer = desk.key, build(plan)
    assessment = AssessmentInquiry(plan) if plan.assessment else None
    position, statistics = _resumed(plan, desk, synthesizer, assessment) or (_start(plan, desk), None)
    watch.stage("admitting parties")
    sums = admit(plan, position.run, exchange, desk.roster)
    if statistics is None:
        statistics, position = agree(plan, sums, position, watch)
        watch.stage("fitting the encoding")
        synthesizer.begin(statistics, position.seed)
    keep = partial(
        checkpoint.save, desk.checkpoint, statistics=statistics, synthesizer=synthesizer, assessment=assessment
    )
    position = train(plan, sums, synthesizer, position, keep, watch)
    watch.stage(f"drawing {plan.rows:,} rows")
    rows = synthesizer.sample(plan.rows, position.seed)
    found = None
    if assessment is not None:
        found, position = assess(plan, sums, assessment, statistics, rows, position, keep, watch)
    watch.stage("collecting the parties' signed statements")
    statements = sums.finish()
    return publish(plan, synthesizer, rows, statements, found, position, desk.output, desk.simulated, key)


def agree(plan: Plan, sums: SecureSum, position: Position, watch: Watch) -> tuple[Statistics, Position]:
    """The statistics that every encoding is fitted on: the run's first asks."""
    watch.stage(f"summing statistics ({plan.secure_sum.statistics})")
    inquiry, spending, asked = statistics_inquiry(plan), Spending(plan), 0

    def absorbed(ask: Ask) -> None:
        nonlocal asked
        spending.add(inquiry, ask, asked, sums.answered[asked])
        asked += 1

    federate(inquiry, sums, number=0, sequence=0, absorbed=absorbed)
    return inquiry.result(), replace(position, sequence=asked, **spending.to_records())


def train(
    plan: Plan, sums: SecureSum, synthesizer: Synthesizer, position: Position, keep: Keep, watch: Watch
) -> Position:
    """Every ask of the synthesizer that was not absorbed yet."""
    keep(position)
    watch.stage(f"training {plan.synthesizer.name}")
    spending = Spending(plan, position.spent, position.sums)
    here = position

    def absorbed(ask: Ask) -> None:
        nonlocal here
        spending.add(synthesizer, ask, here.sequence, sums.answered[here.sequence])
        here = replace(here, number=here.number + 1, sequence=here.sequence + 1, **spending.to_records())
        keep(here)
        watch.round(*synthesizer.progress(), synthesizer.losses(), spending.epsilon())

    federate(synthesizer, sums, position.number, position.sequence, absorbed)
    return here


def assess(
    plan: Plan,
    sums: SecureSum,
    inquiry: AssessmentInquiry,
    statistics: Statistics,
    rows: Records,
    position: Position,
    keep: Keep,
    watch: Watch,
) -> tuple[AssessmentRecord, Position]:
    """The last ask of the plan: how well the drawn rows fit the parties' own. The question is kept before it is asked,
    as parties answer no other under its number."""
    watch.stage(f"scoring the table on the parties' rows ({plan.secure_sum.statistics})")
    inquiry.begin(statistics, rows)
    keep(position)
    spending, last = Spending(plan, position.spent, position.sums), sum(plan.planned_asks.values()) - 1

    def absorbed(ask: Ask) -> None:
        nonlocal position
        spending.add(inquiry, ask, last, sums.answered[last])
        position = replace(position, **spending.to_records())
        keep(position)

    federate(inquiry, sums, number=0, sequence=last, absorbed=absorbed)
    return inquiry.result(rows, position.seed), position


def _resumed(
    plan: Plan, desk: Desk, synthesizer: Synthesizer, assessment: AssessmentInquiry | None
) -> tuple[Position, Statistics | None] | None:
    if not desk.checkpoint.exists():
        return None
    return checkpoint.load(desk.checkpoint, plan, synthesizer, assessment)


def _start(plan: Plan, desk: Desk) -> Position:
    """A new run. Its name is on the disk before anybody is asked: asked again under another name, parties pay twice."""
    if desk.seed is None:
        position = Position(secrets.token_hex(8), plan.digest(), secrets.randbits(62))
    else:
        position = Position(f"seed-{desk.seed}-{plan.digest()[:8]}", plan.digest(), desk.seed)
    checkpoint.save(desk.checkpoint, position)
    return position
