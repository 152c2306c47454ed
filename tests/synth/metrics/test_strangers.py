"""A holdout that is no holdout is noticed; twins by coincidence are not taken for one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from synth.errors import InputError
from synth.metrics.evaluate import evaluate
from synth.metrics.strangers import why_no_strangers
from synth.metrics.tables import Table, table_of
from synth.schema import Categorical, Integer, Schema

NUMBERS = Schema(columns={"x": Integer(min=0, max=10**6), "y": Integer(min=0, max=10**6)})
LABELS = Schema(columns={"g": Categorical(categories=["a", "b", "c"])})


def numbers(rows: int, seed: int) -> Table:
    drawn = np.random.default_rng(seed).integers(0, 10**6, (rows, 2))
    return table_of(pd.DataFrame(drawn, columns=["x", "y"]), NUMBERS)


def test_strangers_pass() -> None:
    assert why_no_strangers(numbers(1000, 1), numbers(500, 2), seed=0) is None


def test_twins_by_coincidence_pass() -> None:
    rows = [table_of(pd.DataFrame({"g": list("abc") * n}), LABELS) for n in (100, 50)]
    assert why_no_strangers(rows[0], rows[1], seed=0) is None


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_an_overlap_is_estimated(share: float) -> None:
    real, others = numbers(2000, 1), numbers(2000, 2)
    seen = int(1000 * share)
    rows = [*zip(real.numbers["x"][:seen], real.numbers["y"][:seen], strict=True)]
    rows += [*zip(others.numbers["x"][seen:1000], others.numbers["y"][seen:1000], strict=True)]
    reason = why_no_strangers(real, table_of(pd.DataFrame(rows, columns=["x", "y"]), NUMBERS), seed=0)
    assert reason is not None
    found = float(reason.split("%")[0].removeprefix("about ")) / 100
    assert found == pytest.approx(share, abs=0.16)  # five standard errors of 2 * sqrt(1/4 / 1000)


def test_an_evaluation_refuses_it() -> None:
    rows = numbers(300, 1)
    with pytest.raises(InputError, match="of the holdout rows are rows of the real table"):
        evaluate(rows, numbers(300, 2), NUMBERS, rows)
