"""After every absorbed answer the aggregator could be killed: this file is where it continues from."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from synth import archive
from synth.assessment.inquiry import AssessmentInquiry
from synth.errors import InputError
from synth.interface import Arrays, Synthesizer
from synth.plan import Plan
from synth.statistics import Statistics


@dataclass(frozen=True)
class Position:
    """How far a run has come."""

    run: str
    plan_digest: str
    seed: int
    number: int = 0  # the synthesizer's next ask
    sequence: int = 0  # the run's next ask
    spent: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # events by party, for display
    sums: list[dict[str, Any]] = field(default_factory=list)  # who is in which sum, for the certificate


def save(
    path: Path,
    position: Position,
    statistics: Statistics | None = None,
    synthesizer: Synthesizer | None = None,
    assessment: AssessmentInquiry | None = None,
) -> None:
    """Without statistics: a run that has a name and nothing else yet."""
    arrays: Arrays = {}
    if statistics is not None and synthesizer is not None:
        arrays |= {f"statistics/{k}": v for k, v in statistics.to_arrays().items()}
        arrays |= {f"synthesizer/{k}": v for k, v in synthesizer.state().items()}
    if assessment is not None:
        arrays |= {f"assessment/{k}": v for k, v in assessment.state().items()}
    archive.write_durably(path, archive.pack(arrays, asdict(position)))


def load(
    path: Path, plan: Plan, synthesizer: Synthesizer, assessment: AssessmentInquiry | None = None
) -> tuple[Position, Statistics | None]:
    """Restore synthesizer and assessment in place; refuse a checkpoint of another plan."""
    arrays, meta = archive.unpack(path.read_bytes(), str(path))
    position = Position(**meta)
    if position.plan_digest != plan.digest():
        raise InputError(f"the checkpoint {path} belongs to another plan; resume with the plan it was started with")
    if not arrays:
        return position, None
    synthesizer.restore(_under("synthesizer/", arrays))
    if assessment is not None:
        assessment.restore(_under("assessment/", arrays))
    return position, Statistics.from_arrays(plan, _under("statistics/", arrays))


def _under(prefix: str, arrays: Arrays) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
