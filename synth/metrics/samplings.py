"""Which figures looked at a sample of the rows, in words: a reader must know, and limits stand where they are used."""

from __future__ import annotations

from collections.abc import Iterable

from synth.metrics import kernel
from synth.metrics.attacks import attribute, inference, membership
from synth.metrics.metric import FidelityMetric
from synth.metrics.registry import FIDELITY
from synth.metrics.risks import ATTACKED_ROWS, NEAREST_ROWS

TRAINING_ROWS = 35_000
TEST_ROWS = 20_000
"""Rows the classifiers train on and are tested on at most."""


def in_words(real: int, synthetic: int, holdout: int | None) -> list[str]:
    """Of a whole evaluation of so many rows."""
    rows, people = max(real, synthetic, holdout or 0), max(real, holdout or 0)
    said = of_fidelity(FIDELITY, rows)
    if rows > TRAINING_ROWS:
        said.append(f"training of classifiers: at most {TRAINING_ROWS:,} rows of each table")
    elif real != synthetic:
        said.append("training of classifiers: as many rows of either table as the smaller one has")
    if (holdout or 0) > TEST_ROWS:
        said.append(f"test of classifiers: {TEST_ROWS:,} holdout rows")
    if rows > ATTACKED_ROWS:
        said.append(f"attacks (copies are looked for in all rows): at most {ATTACKED_ROWS:,} rows of each table")
    if people > inference.ATTACKS:
        said.append(f"singling out, linkability, inference: {inference.ATTACKS:,} attacks")
    if people > attribute.TARGETS or synthetic > attribute.TRAINING_ROWS:
        learnt = f"learnt from at most {attribute.TRAINING_ROWS:,} synthetic rows"
        said.append(f"attribute disclosure: {learnt}, about at most {attribute.TARGETS:,} people of each side")
    if holdout is not None:
        said += _against_holdout(real, holdout, rows)
    return said


def of_fidelity(metrics: Iterable[FidelityMetric], rows: int) -> list[str]:
    """One line for all figures of one limit."""
    limits: dict[int, list[str]] = {}
    for metric in metrics:
        if metric.rows is not None and rows > metric.rows:
            limits.setdefault(metric.rows, []).append(metric.title)
    said = [f"{', '.join(titles)}: at most {limit:,} rows of each table" for limit, titles in sorted(limits.items())]
    for metric in metrics:
        if metric.name == "mmd" and rows > kernel.POINTS_PER_SIDE:
            draws = f"mean of {kernel.REPETITIONS} draws of {kernel.POINTS_PER_SIDE:,} rows of each table"
            said.append(f"{metric.title}: {draws}")
    return said


def _against_holdout(real: int, holdout: int, rows: int) -> list[str]:
    """Attacks that take as many real as holdout rows, or fewer."""
    said = []
    if max(real, holdout) > membership.TARGETS_PER_SIDE:
        said.append(f"membership: at most {membership.TARGETS_PER_SIDE:,} people of each side")
    if real != holdout:
        said.append("membership, singling out, copies: as many real as holdout rows")
    if rows > NEAREST_ROWS:
        said.append(f"distance to the closest record: at most {NEAREST_ROWS:,} rows of each table")
    return said
