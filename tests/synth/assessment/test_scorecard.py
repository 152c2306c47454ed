"""The scorecard is logistic regression on binned columns, applied by looking up points."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from synth.assessment.scorecard import BUCKETS, train
from synth.encoding.cells import Cells
from synth.encoding.records import Codec, Records
from synth.plan import parse_schema
from tests.small import SCHEMA, table

SMALL = parse_schema(SCHEMA)
CELLS = Cells(SMALL, 32)


def people(rows: int, seed: int) -> Records:
    return Codec(SMALL).encode(table(rows, seed))


def test_it_predicts_what_it_was_trained_for() -> None:
    card = train(CELLS, people(3000, 1), "died", 2, [1])
    strangers = people(3000, 2)
    probabilities = card.probabilities(CELLS, strangers, "died")
    died = strangers.columns["died"] == 1
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    exact = roc_auc_score(died, probabilities[:, 1])
    assert exact > 0.75  # the best possible score, age itself, reaches about 0.8
    (bucket,) = card.buckets(probabilities, [1])
    assert bucket.min() >= 0
    assert bucket.max() < BUCKETS
    assert roc_auc_score(died, bucket) == pytest.approx(exact, abs=0.01)
    assert probabilities[died, 1].mean() == pytest.approx(1 - probabilities[died, 0].mean())


def test_the_target_is_not_looked_at() -> None:
    card = train(CELLS, people(500, 1), "died", 2, [1])
    assert (card.weights[:, CELLS.slices["died"]] == 0).all()


def test_several_classes_each_have_points_and_buckets() -> None:
    rows = people(2000, 3)
    classes = CELLS.slices["ward"].stop - CELLS.slices["ward"].start
    card = train(CELLS, rows, "ward", classes, list(range(classes)))
    assert card.weights.shape == (classes, CELLS.size)
    assert card.edges.shape == (classes, BUCKETS - 1)
    assert (np.diff(card.edges) >= 0).all()


def test_a_table_of_one_class_knows_nothing_and_one_without_a_class_never_guesses_it() -> None:
    rows = people(400, 4)
    same = Records(rows.columns | {"died": np.zeros(400, dtype=np.int64)})
    blind = train(CELLS, same, "died", 2, [1]).probabilities(CELLS, rows, "died")
    np.testing.assert_allclose(blind, 0.5)
    few = Records(rows.columns | {"ward": np.minimum(rows.columns["ward"], 1)})
    guesses = train(CELLS, few, "ward", 5, list(range(5))).probabilities(CELLS, rows, "ward").argmax(axis=1)
    assert set(guesses) <= {0, 1}
