"""Tables whose every metric can be worked out by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from synth.schema import Boolean, Categorical, Continuous, Integer, Schema


@pytest.fixture(scope="session")
def clinic() -> Schema:
    return Schema(
        columns={
            "age": Integer(min=0, max=99),
            "dose": Continuous(min=0.0, max=1.0, missing=True),
            "ward": Categorical(categories=["a", "b", "c"], missing=True),
            "ill": Boolean(false="no", true="yes"),
        },
        target="ill",
    )


@pytest.fixture(scope="session")
def ward_only() -> Schema:
    return Schema(columns={"ward": Categorical(categories=["a", "b", "c"], missing=True)})


@pytest.fixture
def patients() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [20, 40, 60, 80],
            "dose": [0.0, 0.5, 1.0, None],
            "ward": ["a", "a", "b", None],
            "ill": ["no", "yes", "no", "yes"],
        }
    )
