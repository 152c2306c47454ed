"""Train on one table, score on another: known answers on separable, useless and degenerate tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from synth.errors import InputError
from synth.metrics.tables import table_of
from synth.metrics.utility import (
    ALL_CLASSIFIERS,
    CLASSIFIERS,
    CTGAN_FOUR,
    STANDARD_SIX,
    Omission,
    Preparation,
    Scores,
    mean_scores,
    scores_of,
    utility,
)
from synth.schema import Categorical, Continuous, Schema


def _schema(classes: int = 2) -> Schema:
    labels = [str(k) for k in range(classes)]
    return Schema(
        columns={
            "x": Continuous(min=-10, max=10, missing=True),
            "g": Categorical(categories=["u", "v"]),
            "y": Categorical(categories=labels),
        },
        target="y",
    )


def _rows(n: int, classes: int, seed: int, separable: bool = True) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    x = (y * 4.0 - 4.0 if separable else 0.0) + rng.uniform(-1, 1, n)
    return pd.DataFrame({"x": x, "g": rng.choice(["u", "v"], n), "y": y.astype(str)})


@pytest.mark.parametrize("classes", [2, 3])
def test_every_classifier_solves_a_separable_table(classes: int) -> None:
    train, test = _rows(300, classes, 1), _rows(200, classes, 2)
    result = utility(train, test, _schema(classes), 0, ALL_CLASSIFIERS)
    assert set(result) == set(ALL_CLASSIFIERS)
    for scores in result.values():
        assert isinstance(scores, Scores)
        assert min(scores.accuracy, scores.auroc, scores.auprc, scores.f1) > 0.97
        assert (scores.auroc_macro is None) == (classes == 2)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("knn", {"n_neighbors": 10}),
        ("mlp", {"hidden_layer_sizes": (100,), "max_iter": 200}),
        ("random_forest", {"n_estimators": 100, "max_depth": None}),
        ("adaboost", {"n_estimators": 50}),
        ("decision_tree", {"max_depth": None}),
        ("logistic_regression", {"C": 1.0}),
        ("gradient_boosting", {"max_iter": 100}),
    ],
)
def test_classifiers_are_those_of_the_papers(name: str, settings: dict[str, object]) -> None:
    made = CLASSIFIERS[name](0).get_params()
    assert {key: made[key] for key in settings} == settings


def test_a_useless_table_scores_at_chance() -> None:
    test = _rows(2000, 2, 3, separable=False)
    scores = utility(_rows(2000, 2, 4, separable=False), test, _schema(), 0, ["logistic_regression"])
    entry = scores["logistic_regression"]
    assert isinstance(entry, Scores)
    # Standard error of the AUROC about 0.013 at 2 x 1000 rows; five of them: false alarm below 1e-6.
    assert entry.auroc == pytest.approx(0.5, abs=0.065)


def test_one_class_is_an_omission_with_a_reason_never_a_number() -> None:
    train = _rows(50, 2, 5).assign(y="0")
    result = utility(train, _rows(50, 2, 6), _schema(), 0, STANDARD_SIX, fitted_on=_rows(50, 2, 7))
    for entry in result.values():
        assert isinstance(entry, Omission)
        assert "one class in the training table" in entry.reason
    assert isinstance(mean_scores(result, CTGAN_FOUR), Omission)


def test_fewer_rows_than_neighbours_is_an_omission() -> None:
    assert isinstance(utility(_rows(8, 2, 8), _rows(50, 2, 9), _schema(), 0, ["knn"])["knn"], Omission)


def test_a_class_the_training_table_never_saw_scores_zero_not_nan() -> None:
    train, test = _rows(300, 3, 1), _rows(300, 3, 2)
    train = train[train.y != "2"]
    entry = utility(train, test, _schema(3), 0, ["random_forest"])["random_forest"]
    assert isinstance(entry, Scores)
    # Its probability is 0 for every row: all tied, AUROC 1/2. Class 0 is separated perfectly, class 1 only from 0.
    assert entry.auroc_macro is not None
    assert entry.auroc_macro < 0.9
    assert 0.0 < entry.accuracy < 0.8


def test_weighted_and_macro_scores_by_hand() -> None:
    truth = np.array([0, 0, 1, 2])
    probabilities = np.array([[0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.6, 0.3, 0.1]])
    scores = scores_of(truth, probabilities, np.array([0, 1, 2]))
    # Class 0: perfect order (AUROC 1). Class 1: perfect. Class 2: all tied, AUROC 1/2, precision = prevalence 1/4.
    assert scores.accuracy == 0.75
    assert scores.auroc == pytest.approx(0.5 * 1 + 0.25 * 1 + 0.25 * 0.5)
    assert scores.auroc_macro == pytest.approx(2.5 / 3)
    assert scores.auprc == pytest.approx(0.5 + 0.25 + 0.25 * 0.25)
    # F1: class 0 has precision 2/3, recall 1 -> 0.8; class 1 -> 1; class 2 -> 0.
    assert scores.f1 == pytest.approx(0.5 * 0.8 + 0.25)
    assert scores.f1_macro == pytest.approx(1.8 / 3)


def test_preparation_is_fitted_on_real_rows_only() -> None:
    schema = _schema()
    real = table_of(pd.DataFrame({"x": [0.0, 2.0, None], "g": ["u", "u", "u"], "y": ["0", "1", "0"]}), schema)
    other = table_of(pd.DataFrame({"x": [5.0, None], "g": ["v", "u"], "y": ["0", "1"]}), schema)
    features = Preparation.fit(real, "y").features(other)
    # (5 - mean 1) / deviation 1; empty -> mean with indicator 1; category v never seen in real rows -> zeros.
    assert features.tolist() == [[4.0, 0.0, 0.0], [0.0, 1.0, 1.0]]


def test_a_numeric_target_is_refused() -> None:
    schema = Schema(columns={"x": Continuous(min=0, max=1), "y": Continuous(min=0, max=1)}, target="y")
    rows = pd.DataFrame({"x": [0.1], "y": [0.2]})
    with pytest.raises(InputError, match="categorical or boolean target"):
        utility(rows, rows, schema, 0)
