"""Tables of a few rows: chance decides most of their figures, so nothing about them is called good."""

from __future__ import annotations

from fedsynth.report.words import Verdict, count
from synth.metrics.evaluation import Evaluation

FEW_ROWS = 100


def caution(evaluation: Evaluation) -> str | None:
    tables = {
        "real": evaluation.rows_real,
        "synthetic": evaluation.rows_synthetic,
        "holdout": evaluation.rows_holdout,
    }
    few = [f"the {name} table has {count(rows, 'row')}" for name, rows in tables.items() if rows and rows < FEW_ROWS]
    if not few:
        return None
    return f"Caution: {', '.join(few)}. Below {FEW_ROWS} rows chance decides most figures, so nothing is called good."


def cautious(found: Verdict, evaluation: Evaluation) -> Verdict:
    """The verdict, unless it praises what too few rows can show."""
    praised = found.tone == "good" and caution(evaluation) is not None
    return Verdict("unknown", "too few rows to judge") if praised else found
