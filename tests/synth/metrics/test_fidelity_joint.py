"""What only several columns together show."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from synth.metrics.fidelity import tvd_two_way
from synth.metrics.fidelity_joint import avd
from synth.schema import Categorical, Schema


def _binary(columns: int) -> Schema:
    return Schema(columns={f"b{k}": Categorical(categories=["0", "1"]) for k in range(columns)})


def test_three_way_parity_is_invisible_to_pairs() -> None:
    bits = np.array([[a, b] for a in (0, 1) for b in (0, 1)] * 2)
    even = pd.DataFrame(np.column_stack([bits, bits.sum(axis=1) % 2]), columns=["b0", "b1", "b2"])
    odd = even.assign(b2=1 - even.b2)
    schema = _binary(3)
    assert tvd_two_way(even, odd, schema) == 0.0
    assert avd(even, odd, schema, ways=3) == pytest.approx(1.0)
    assert avd(even, odd, schema, ways=2) == 0.0


def test_more_ways_than_columns_uses_all_and_sizes_may_differ() -> None:
    schema = _binary(2)
    real = pd.DataFrame({"b0": [0, 1], "b1": [0, 1]})
    synthetic = pd.DataFrame({"b0": [0, 0, 1, 1], "b1": [0, 1, 0, 1]})
    assert avd(real, synthetic, schema) == pytest.approx(0.5)


def test_combinations_are_drawn_by_seed() -> None:
    schema = _binary(12)  # 495 combinations of four, 100 drawn
    rng = np.random.default_rng(0)
    left, right = (pd.DataFrame(rng.integers(0, 2, (50, 12)), columns=list(schema.columns)) for _ in range(2))
    assert avd(left, right, schema, seed=1) == avd(left, right, schema, seed=1)
    assert avd(left, right, schema, seed=1) != avd(left, right, schema, seed=2)
