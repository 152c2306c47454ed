"""What every part of an evaluation is, plain values that can be stored and drawn; and the part about sequences, which
reports read without the networks that measured it."""

from __future__ import annotations

from pydantic import ConfigDict

from synth.strict import Strict


class View(Strict):
    model_config = ConfigDict(allow_inf_nan=False, revalidate_instances="always")


class SequenceFigure(View):
    """One figure of the synthetic sequences; `real` is the same figure of real ones, where there is one."""

    name: str
    value: float
    real: float | None = None


class Fan(View):
    """One attribute over the steps: shares of the sequences below, and some whole ones."""

    name: str
    real: list[list[float]]  # one line a share
    synthetic: list[list[float]]
    real_paths: list[list[float]]
    synthetic_paths: list[list[float]]


class SequenceView(View):
    steps: int
    real_sequences: int
    synthetic_sequences: int
    figures: list[SequenceFigure]
    controls: dict[str, float]  # predictive errors of what has seen no data
    fans: list[Fan]
    real_points: list[tuple[float, float]]  # first two principal components of the real sequences
    synthetic_points: list[tuple[float, float]]
    membership_auroc: float | None  # how well nearness to a synthetic sequence tells members; None without holdout
