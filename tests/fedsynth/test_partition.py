"""Partitions: disjoint, exhaustive, skewed where they say so, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedsynth.simulation.partition import Partition, partition
from synth.errors import InputError

TABLE = pd.DataFrame({"n": np.arange(600), "label": np.where(np.arange(600) % 4 == 0, "yes", "no")})
NAMES = ["a", "b", "c"]


@pytest.mark.parametrize("how", ["iid", "label-skew", "quantity-skew"])
def test_every_row_has_one_owner_and_seeds_repeat(how: Partition) -> None:
    parts = partition(TABLE, NAMES, how, "label", seed=3)
    together = sorted(n for part in parts.values() for n in part["n"])
    assert together == list(range(600))
    again = partition(TABLE, NAMES, how, "label", seed=3)
    assert all(parts[name].equals(again[name]) for name in NAMES)
    assert min(len(part) for part in parts.values()) >= 2


def test_skew_is_skew() -> None:
    sizes = [len(part) for part in partition(TABLE, NAMES, "iid", None, seed=1).values()]
    assert max(sizes) - min(sizes) <= 1
    rates = [(part["label"] == "yes").mean() for part in partition(TABLE, NAMES, "label-skew", "label", 1).values()]
    assert max(rates) - min(rates) > 0.1
    skewed = [len(part) for part in partition(TABLE, NAMES, "quantity-skew", None, seed=1).values()]
    assert max(skewed) > 2 * min(skewed)


def test_too_few_rows_and_no_label_are_said() -> None:
    with pytest.raises(InputError, match="cannot be split among 3"):
        partition(TABLE.head(5), NAMES, "iid", None, seed=0)
    with pytest.raises(InputError, match="needs a target"):
        partition(TABLE, NAMES, "label-skew", None, seed=0)
