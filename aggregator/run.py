"""A run, at the aggregator: admit → agree → train → assess → publish.

`synthesize` is the data flow in order. It sees sums and released quantities only; what it writes after every round is
enough to continue after a kill.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from aggregator.publish import Release, publish, require_no_formulas
from aggregator.stages import Course
from aggregator.states import RunState
from aggregator.sums.admit import admit
from aggregator.sums.bound import BoundLists
from aggregator.sums.exchange import GridExchange
from aggregator.sums.secure_sum import SecureSum
from aggregator.watch import Watch
from crypto.errors import CryptoError
from crypto.keys import Identity, IdentityKey
from synth.assessment.inquiry import AssessmentInquiry
from synth.assessment.record import AssessmentRecord
from synth.encoding.records import Records
from synth.errors import InputError
from synth.interface import Synthesizer
from synth.linkage.inquiry import AlignmentInquiry
from synth.plan import Plan
from synth.statistics.histograms import Statistics
from synth.statistics.mixture_rounds import statistics_inquiry
from synth.synthesizers.registry import build


@dataclass(frozen=True)
class Workspace:
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

    @cached_property
    def lists(self) -> BoundLists:
        return BoundLists(self.work / "lists.json")

    @property
    def checkpoint(self) -> Path:
        return self.work / "checkpoint.npz"


def synthesize(plan: Plan, exchange: GridExchange, workspace: Workspace, watch: Watch) -> Release:
    """The whole run; continues from the workspace's checkpoint if there is one."""
    require_no_formulas(plan)  # what cannot be carried out fails before anybody is asked
    key, synthesizer = workspace.key, build(plan)
    course = Course.taken_up(plan, workspace.checkpoint, watch, workspace.seed)
    watch.stage("admitting parties", RunState.admitting)
    sums = admit(plan, course.position.run, exchange, workspace.roster, workspace.lists)
    align(course, sums)
    statistics = agree(course, sums)
    train(course, sums, synthesizer, statistics)
    watch.stage(f"drawing {plan.rows:,} rows", RunState.releasing)
    rows = synthesizer.sample(plan.rows, course.position.seed)
    found = assess(course, sums, statistics, rows) if plan.assessment else None
    watch.stage("collecting the parties' signed statements", RunState.releasing)
    statements = sums.finish()
    return publish(
        plan, synthesizer, rows, statements, found, course.position, workspace.output, workspace.simulated, key
    )


def align(course: Course, sums: SecureSum) -> None:
    """Whose row is whose, where parties hold different columns of the same people."""
    if course.plan.partition == "columns":
        course.carry_out(AlignmentInquiry(course.plan), sums, "aligning the parties' rows")


def agree(course: Course, sums: SecureSum) -> Statistics:
    """The statistics that every encoding is fitted on."""
    inquiry = statistics_inquiry(course.plan)
    course.carry_out(inquiry, sums, f"summing statistics ({course.plan.secure_sum.statistics})")
    return inquiry.result()


def train(course: Course, sums: SecureSum, synthesizer: Synthesizer, statistics: Statistics) -> None:
    """Until the synthesizer has nothing left to ask."""

    def begin() -> None:
        course.watch.stage("fitting the encoding")
        synthesizer.begin(statistics, course.position.seed)

    course.carry_out(synthesizer, sums, f"training {course.plan.synthesizer.name}", begin)


def assess(course: Course, sums: SecureSum, statistics: Statistics, rows: Records) -> AssessmentRecord:
    """How well the drawn rows fit the parties' own."""
    inquiry, mode = AssessmentInquiry(course.plan), course.plan.secure_sum.statistics
    doing = f"scoring the table on the parties' rows ({mode})"
    course.carry_out(inquiry, sums, doing, lambda: inquiry.begin(statistics, rows))
    return inquiry.result(rows, course.position.seed)
