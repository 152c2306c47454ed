"""Whole runs by columns: what is opened is what counting the rows in one place gives, whoever deals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from aggregator.federate import federate
from synth.assessment.inquiry import AssessmentInquiry
from synth.encoding import contingency
from synth.encoding.records import Codec
from synth.interface import Ask, Sum
from synth.privacy.noise import seeded_source
from synth.programme import programme
from synth.statistics.histograms import Statistics
from synth.statistics.mixture_rounds import statistics_inquiry
from tests.linkage.consortium import RUN, Consortium, Outcome, carried_out, prepared
from tests.vertical import AGGREGATOR_DEALS, COLUMNS, NOTARY, TWO, plan_by_columns, tables_by_columns, whole_table

ROWS = 150
SHAPES: dict[str, tuple[dict[str, list[str]], dict[str, Any]]] = {
    "three parties, each deals for the others": (COLUMNS, {}),
    "two parties and a notary": (NOTARY, {}),
    "two parties, the aggregator deals": (TWO, AGGREGATOR_DEALS),
    "two parties, nobody deals": (TWO, {"linkage": {"dealer": "none"}}),
    "three parties, nobody deals": (COLUMNS, {"linkage": {"dealer": "none"}}),
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


def test_an_assessment_compares_pairs_across_parties_by_shares_of_their_own(tmp_path: Path) -> None:
    """Without noise the figures are those of the rows in one place; outcomes of whole rows are not asked for."""
    changes: dict[str, Any] = {"assessment": {"pairs": 12}, "gate": {"maximum_tvd_two_way": 0.9}}
    plan, whole = plan_by_columns(COLUMNS, ROWS, privacy="none", **changes), whole_table(ROWS)
    consortium = Consortium(plan, tables_by_columns(whole, COLUMNS), tmp_path)
    sums, ask, sequence = prepared(consortium)
    sums.total(ask, sequence)
    found, inquiry = Codec(plan.table).fit(whole_table(ROWS, seed=1))[0], AssessmentInquiry(plan)
    inquiry.begin(statistics_of(consortium), found)
    for _ in federate(inquiry, sums, 0, programme(plan).stage("assessment").first):
        pass
    record = inquiry.result(found, 0)
    bins = inquiry.counted_bins(inquiry.ask(0) or Ask())
    in_one_place = inquiry._counted(Codec(plan.table).fit(whole)[0], bins)
    for part, counts in inquiry.counts.items():
        np.testing.assert_array_equal(counts, in_one_place[part])
    assert any(plan.owner([inquiry.names[one] for one in pair]) is None for pair in inquiry.cliques["pairs"])
    assert set(record.figures) == {"tvd_one_way", "tvd_two_way"}
    assert [verdict.outcome for verdict in record.verdicts] == ["passed"]


def statistics_of(consortium: Consortium) -> Statistics:
    """What the run's statistics were, without noise."""
    inquiry = statistics_inquiry(consortium.plan)
    counts = sum(
        inquiry.answer(Ask(options={"phase": "statistics"}), name, party.runs[RUN]._data, {}, seeded_source(0))[
            0
        ].arrays["counts"]
        for name, party in consortium.parties.items()
    )
    inquiry.absorb(Sum({"counts": np.asarray(counts)}, 1.0, tuple(consortium.parties)))
    return inquiry.result()


def test_bayes_counts_pairs_where_a_family_lies_across_parties(tmp_path: Path) -> None:
    plan = plan_by_columns(COLUMNS, ROWS, privacy="none", synthesizer={"name": "bayes", "generations": 5})
    whole = whole_table(ROWS)
    outcome = carried_out(Consortium(plan, tables_by_columns(whole, COLUMNS), tmp_path))
    model: Any = outcome.model
    for number in (0, 1):
        np.testing.assert_array_equal(model.measured[number][1], expected_counts(outcome, whole, number))
    wide = [clique for clique in model.measured[1][0] if len(clique) > 2]
    assert all(plan.owner([model.names[column] for column in clique]) for clique in wide)
