"""A saved model, as anybody may have written it: rows, or a sentence that says why there are none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from fedsynth.conditions import Conditions
from synth.encoding.formulas import formulas_in
from synth.encoding.records import Records
from synth.encoding.unrolling import written
from synth.errors import InputError
from synth.interface import Arrays, Synthesizer
from synth.messages import archive
from synth.plan import Plan, parse_plan
from synth.synthesizers.registry import build

LARGEST_BYTES = 4 << 30
ATTEMPTS = 20  # draws until enough rows fulfil the conditions
FEWEST_AGAIN, MOST_AT_ONCE = 5_000, 500_000  # rows of one draw
SEED_STRIDE = 0x9E3779B1  # from one draw's seed to the next
# What families and the libraries under them raise on arrays that do not fit their plan.
_MISFITS = (
    KeyError, IndexError, ValueError, TypeError, AttributeError, RuntimeError, ArithmeticError, AssertionError,
    NotImplementedError, MemoryError, StopIteration,
)  # fmt: skip


@dataclass(frozen=True)
class Model:
    """A plan and what was learned under it."""

    origin: str
    plan: Plan
    arrays: Arrays
    steps: int | None = None  # of every sequence drawn, at most

    def draw(self, rows: int, seed: int, conditions: Conditions) -> pd.DataFrame:
        """The synthesizer is built, restored and asked here, so that nothing of a hostile file outlives the call."""
        try:
            synthesizer = build(self.plan)
            synthesizer.restore(self.arrays)
            drawn = _fulfilling(synthesizer, rows, seed, conditions)
            return written(self.plan.table, self.plan.layout, drawn, self.steps)
        except _MISFITS as error:
            raise InputError(
                f"{self.origin} holds arrays that do not fit its own plan ({type(error).__name__}): it is damaged, or "
                "was made to mislead. Get it from where its certificate is."
            ) from error

    def of_length(self, steps: int) -> Model:
        """The same model, drawing sequences of so many steps at most."""
        layout = self.plan.layout
        if layout is None or not layout.ordered:
            raise InputError(f"{self.origin} draws no sequences; leave --length out")
        if not layout.is_series and steps > layout.steps:
            raise InputError(f"the sequences of {self.origin} have {layout.steps} steps at most; ask for fewer")
        if not layout.is_series:
            return replace(self, steps=steps)
        content = self.plan.model_dump(mode="json", by_alias=True)
        content["schema"]["sequence"]["length"] = steps  # pairs of steps are the same however far they are followed
        return replace(self, plan=parse_plan(content))

    def require_no_formulas(self) -> None:
        if self.plan.output.formulas is None and (columns := formulas_in(self.plan.table)):
            raise InputError(
                f"labels of {', '.join(map(repr, columns))} in {self.origin} are formulas to a spreadsheet, which "
                "would carry them out; draw into a .parquet file."
            )


def _fulfilling(synthesizer: Synthesizer, rows: int, seed: int, conditions: Conditions) -> Records:
    """Labels are asked of the model outright, everything else of the rows it draws, until there are enough."""
    fixed = conditions.fixed or None
    drawn = synthesizer.sample(rows, seed, fixed)
    kept = [drawn.take(conditions.hold(drawn))]
    found, tried = len(kept[0]), rows
    for attempt in range(1, ATTEMPTS):
        if found >= rows:
            break
        share = max(found, 1) / tried
        wanted = min(max(int(1.2 * (rows - found) / share), FEWEST_AGAIN), MOST_AT_ONCE)
        drawn = synthesizer.sample(wanted, (seed + attempt * SEED_STRIDE) % 2**32, fixed)
        kept.append(drawn.take(conditions.hold(drawn)))
        found, tried = found + len(kept[-1]), tried + wanted
    if found < rows:
        raise InputError(
            f"only {found:,} of {tried:,} rows drawn fulfil the conditions, and {rows:,} were asked for: they are too "
            "rare in this model. Ask for fewer rows, or for less."
        )
    return Records.concat(kept).take(slice(0, rows))


def read_model(path: Path) -> Model:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise InputError(f"{path} is larger than any model.")
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"the model {path} cannot be read: {error.strerror}; give the path of a model.npz") from None
    return model_of(content, str(path))


def model_of(content: bytes, origin: str) -> Model:
    arrays, meta = archive.unpack(content, origin)
    plan: Any = meta.get("plan")
    if plan is None:
        raise InputError(f"{origin} is no model: it names no plan. Give the path of a model.npz.")
    return Model(origin, parse_plan(plan), arrays)
