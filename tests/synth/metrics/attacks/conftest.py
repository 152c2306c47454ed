"""A population where every person is distinct, split into members and strangers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from synth.schema import Categorical, Continuous, Schema


@pytest.fixture(scope="session")
def people() -> Schema:
    return Schema(
        columns={
            "height": Continuous(min=0, max=1, decimals=9),
            "weight": Continuous(min=0, max=1, decimals=9),
            "income": Continuous(min=0, max=1, decimals=9),
            "town": Categorical(categories=["p", "q", "r", "s"]),
            "club": Categorical(categories=["y", "n"]),
        },
        target="club",
    )


def population(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "height": rng.random(n),
            "weight": rng.random(n),
            "income": rng.random(n),
            "town": rng.choice(["p", "q", "r", "s"], n),
            "club": rng.choice(["y", "n"], n),
        }
    )


@pytest.fixture(scope="session")
def members() -> pd.DataFrame:
    return population(1500, 1)


@pytest.fixture(scope="session")
def strangers() -> pd.DataFrame:
    return population(1500, 2)


@pytest.fixture(scope="session")
def honest() -> pd.DataFrame:
    """A synthetic table from the same population that never saw a member."""
    return population(1500, 3)
