"""After every absorbed answer the aggregator could be killed: this file is where it continues from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from synth.errors import InputError
from synth.interface import Arrays
from synth.messages import archive
from synth.plan import Plan

_FORMER = {"synthesizer": "training"}  # what parts were called in files that are still read


@dataclass(frozen=True)
class Position:
    """How far a run has come."""

    run: str
    plan_digest: str
    seed: int
    sequence: int = 0  # the run's next ask
    spent: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # events by party, for display
    sums: list[dict[str, Any]] = field(default_factory=list)  # who is in which sum, for the certificate


def save(path: Path, position: Position, states: Mapping[str, Arrays]) -> None:
    """`states` are those of the inquiries that have begun, by phase."""
    arrays = {f"{phase}/{name}": array for phase, state in states.items() for name, array in state.items()}
    archive.write_durably(path, archive.pack(arrays, asdict(position)))


def load(path: Path, plan: Plan) -> tuple[Position, dict[str, Arrays]]:
    """The position and the states; refuses a checkpoint of another plan."""
    arrays, meta = archive.unpack(path.read_bytes(), str(path))
    meta.pop("number", None)  # of the synthesizer's next ask: follows from the sequence
    position = Position(**meta)
    if position.plan_digest != plan.digest():
        raise InputError(f"the checkpoint {path} belongs to another plan; resume with the plan it was started with")
    states: dict[str, Arrays] = defaultdict(dict)
    for key, array in arrays.items():
        phase, _, name = key.partition("/")
        states[_FORMER.get(phase, phase)][name] = array
    return position, dict(states)
