"""Models saved before there were fine cells still load and draw: `saved/` was written by that version."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from synth.synthesizers.registry import build
from tests.small import plan_of

SAVED = Path(__file__).parent / "saved"


@pytest.mark.parametrize("family", ["marginals", "bayes"])
def test_a_model_of_the_version_before_loads_and_draws(family: str) -> None:
    plan = plan_of({"name": family, "model_size_mb": 0.05}, rows=400, privacy={"epsilon": 20.0, "delta": 1e-6})
    with np.load(SAVED / f"{family}.npz") as file:
        state = {name.replace("__", "/"): file[name] for name in file.files}
    assert "statistics/layout" not in state
    model = build(plan)
    model.restore(state)
    rows = model.sample(1000, 1)
    filled = ~np.isnan(rows.columns["dose"])
    assert np.corrcoef(rows.columns["age"][filled], rows.columns["dose"][filled])[0, 1] > 0.6  # 0.88 in the real rows
    again = build(plan)
    again.restore(model.state())  # a copy of an old model stays an old model
    np.testing.assert_array_equal(again.sample(100, 2).columns["age"], model.sample(100, 2).columns["age"])
