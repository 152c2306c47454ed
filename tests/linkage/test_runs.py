"""Whole runs by columns: what is opened is what counting the rows in one place gives, whoever deals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from synth.encoding import contingency
from synth.encoding.records import Codec
from tests.linkage.consortium import Consortium, Outcome, carried_out
from tests.vertical import AGGREGATOR_DEALS, COLUMNS, NOTARY, TWO, plan_by_columns, tables_by_columns, whole_table

ROWS = 150
SHAPES: dict[str, tuple[dict[str, list[str]], dict[str, Any]]] = {
    "three parties, each deals for the others": (COLUMNS, {}),
    "two parties and a notary": (NOTARY, {}),
    "two parties, the aggregator deals": (TWO, AGGREGATOR_DEALS),
    "presorted": (COLUMNS, {"linkage": {"alignment": "presorted"}}),
    "everything encrypted": (TWO, AGGREGATOR_DEALS | {"secure_sum": {"colluders": 0, "updates": "ckks"}}),
}


def expected_counts(outcome: Outcome, whole: pd.DataFrame, number: int) -> np.ndarray:
    """The tables of an ask, counted over all columns in one place."""
    model: Any = outcome.model
    cliques = model.measured[number][0]
    records = Codec(model.plan.table).fit(whole)[0]
    index = model.bins.index(records, model.names)
    return contingency.count(index, [model.bins.size(name) for name in model.names], cliques)


@pytest.mark.parametrize("shape", SHAPES)
def test_opened_tables_are_exact(shape: str, tmp_path: Path) -> None:
    columns, changes = SHAPES[shape]
    plan, whole = plan_by_columns(columns, ROWS, privacy="none", **changes), whole_table(ROWS)
    outcome = carried_out(Consortium(plan, tables_by_columns(whole, columns), tmp_path))
    model: Any = outcome.model
    np.testing.assert_array_equal(model.measured[0][1], expected_counts(outcome, whole, 0))
    assert len(model.sample(50, 1)) == 50


def test_bayes_counts_pairs_where_a_family_lies_across_parties(tmp_path: Path) -> None:
    plan = plan_by_columns(COLUMNS, ROWS, privacy="none", synthesizer={"name": "bayes", "generations": 5})
    whole = whole_table(ROWS)
    outcome = carried_out(Consortium(plan, tables_by_columns(whole, COLUMNS), tmp_path))
    model: Any = outcome.model
    for number in (0, 1):
        np.testing.assert_array_equal(model.measured[number][1], expected_counts(outcome, whole, number))
    wide = [clique for clique in model.measured[1][0] if len(clique) > 2]
    assert all(plan.owner([model.names[column] for column in clique]) for clique in wide)
