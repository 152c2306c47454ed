"""Does a model trained on the synthetic table work on real rows (train-synthetic-test-real)?

The papers name classifiers but not how rows become numbers. Here: one-hot for discrete columns and standard scaling
for numeric ones, *fitted on the real training rows once* and used for every table, so that two methods never differ
by their scaler. A synthetic table whose target has one class trains nothing: that is an omission with a reason, not
a number. Multi-class scores are one-vs-rest, weighted by class prevalence (what the papers' figures imply), with the
plain class mean (`macro`) beside it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import FiniteFloat
from sklearn.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from synth.errors import InputError
from synth.metrics.spaces import frequent_codes, one_hot
from synth.metrics.tables import IntArray, Rows, Table, table_of
from synth.schema import Schema

CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "knn": lambda seed: KNeighborsClassifier(n_neighbors=10),  # noqa: ARG005
    "mlp": lambda seed: MLPClassifier(hidden_layer_sizes=(100,), random_state=seed),
    "random_forest": lambda seed: RandomForestClassifier(n_estimators=100, random_state=seed),
    "adaboost": lambda seed: AdaBoostClassifier(n_estimators=50, random_state=seed),
    "decision_tree": lambda seed: DecisionTreeClassifier(random_state=seed),
    "logistic_regression": lambda seed: LogisticRegression(max_iter=1000, random_state=seed),
    "gradient_boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}
"""Name to a maker that takes a seed; settings not shown are scikit-learn's defaults."""

CTGAN_FOUR = ("knn", "mlp", "random_forest", "adaboost")
FINDIFF_FIVE = ("random_forest", "decision_tree", "logistic_regression", "adaboost", "mlp")
STANDARD_SIX = (*CTGAN_FOUR, "logistic_regression", "gradient_boosting")
ALL_CLASSIFIERS = tuple(CLASSIFIERS)


@dataclass(frozen=True)
class Scores:
    """All in 0..1, higher is better. Two classes: the second declared label is the positive one and `macro` is None."""

    accuracy: FiniteFloat
    auroc: FiniteFloat
    auprc: FiniteFloat
    f1: FiniteFloat
    auroc_macro: FiniteFloat | None = None
    auprc_macro: FiniteFloat | None = None
    f1_macro: FiniteFloat | None = None


@dataclass(frozen=True)
class Omission:
    """A figure that does not exist here, and why."""

    reason: str


@dataclass(frozen=True)
class Preparation:
    """Turns rows into features: standard-scaled numbers, then one-hot codes, fitted on the real training rows."""

    target: str
    numeric: dict[str, tuple[float, float]]  # column to (mean, standard deviation)
    discrete: dict[str, IntArray]  # column to the codes of the real training rows (the 500 most frequent)

    @staticmethod
    def fit(real_train: Table, target: str) -> Preparation:
        numeric = {}
        for name, values in real_train.numbers.items():
            filled = values[~np.isnan(values)]
            mean, deviation = (float(filled.mean()), float(filled.std())) if len(filled) else (0.0, 1.0)
            numeric[name] = (mean, deviation or 1.0)
        discrete = {name: frequent_codes(codes) for name, codes in real_train.codes.items()}
        return Preparation(target, numeric, discrete)

    def features(self, table: Table) -> NDArray[np.float32]:
        """Shape (rows, features). An empty number becomes the mean, with an indicator where empty cells are allowed;
        a category that no real training row has becomes zeros."""
        parts: list[NDArray[np.float32]] = []
        for name, (mean, deviation) in self.numeric.items():
            if name != self.target:
                values = table.numbers[name]
                parts.append(np.nan_to_num((values - mean) / deviation).astype(np.float32)[:, None])
                if table.schema.numeric[name].missing:
                    parts.append(np.isnan(values).astype(np.float32)[:, None])
        for name, known in self.discrete.items():
            if name != self.target:
                parts.append(one_hot(table.codes[name], known)[:, :-1].astype(np.float32))
        if not parts:
            raise InputError("the target is the only released column, so nothing can predict it; add columns")
        return np.hstack(parts)


def utility(
    train: Rows,
    test: Rows,
    schema: Schema,
    seed: int,
    classifiers: Sequence[str] = STANDARD_SIX,
    *,
    fitted_on: Rows | None = None,
) -> dict[str, Scores | Omission]:
    """Train each classifier on `train`, score it on the real `test` rows. `fitted_on` are the real training rows the
    preparation is fitted on (default: `train`, which is right only when `train` is real)."""
    trained_on = table_of(train, schema, "the training table")
    tested_on = table_of(test, schema, "the test table")
    real_train = trained_on if fitted_on is None else table_of(fitted_on, schema, "the real training table")
    target = discrete_target(schema)
    preparation = Preparation.fit(real_train, target)
    omission = _untrainable(trained_on.codes[target], tested_on.codes[target])
    if omission is not None:
        return dict.fromkeys(classifiers, omission)
    x_train, x_test = preparation.features(trained_on), preparation.features(tested_on)
    y_train, y_test = trained_on.codes[target], tested_on.codes[target]
    return {name: _fit_and_score(name, seed, x_train, y_train, x_test, y_test) for name in classifiers}


def mean_scores(scores: dict[str, Scores | Omission], names: Sequence[str]) -> Scores | Omission:
    """Plain mean over the named classifiers, as the papers print it."""
    chosen: list[Scores] = []
    for name in names:
        entry = scores[name]
        if isinstance(entry, Omission):
            return entry
        chosen.append(entry)

    def mean(values: list[float | None]) -> float | None:
        present = [value for value in values if value is not None]
        return float(np.mean(present)) if len(present) == len(values) else None

    return Scores(
        accuracy=float(np.mean([entry.accuracy for entry in chosen])),
        auroc=float(np.mean([entry.auroc for entry in chosen])),
        auprc=float(np.mean([entry.auprc for entry in chosen])),
        f1=float(np.mean([entry.f1 for entry in chosen])),
        auroc_macro=mean([entry.auroc_macro for entry in chosen]),
        auprc_macro=mean([entry.auprc_macro for entry in chosen]),
        f1_macro=mean([entry.f1_macro for entry in chosen]),
    )


def discrete_target(schema: Schema) -> str:
    if schema.target is None or schema.target not in schema.discrete:
        raise InputError(
            "utility needs a categorical or boolean target; name one under 'target' in the schema, or leave utility out"
        )
    return schema.target


def _untrainable(y_train: IntArray, y_test: IntArray) -> Omission | None:
    for labels, what in ((y_train, "training"), (y_test, "test")):
        if len(np.unique(labels)) < 2:
            return Omission(f"the target has only one class in the {what} table, so there is nothing to predict")
    return None


def _fit_and_score(
    name: str,
    seed: int,
    x_train: NDArray[np.float32],
    y_train: IntArray,
    x_test: NDArray[np.float32],
    y_test: IntArray,
) -> Scores | Omission:
    model = CLASSIFIERS[name](seed)
    if name == "knn" and len(x_train) < model.n_neighbors:
        return Omission(f"{len(x_train)} training rows are fewer than the {model.n_neighbors} neighbours k-NN asks for")
    # One thread: the matrices are small, and threads that wait for each other cost ten times what they save.
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # the papers' fixed number of iterations is the definition
        model.fit(x_train, y_train)
    classes = np.unique(np.concatenate([y_train, y_test]))
    probabilities = np.zeros((len(x_test), len(classes)))
    probabilities[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(x_test)
    return scores_of(y_test, probabilities, classes)


def scores_of(truth: IntArray, probabilities: NDArray[np.float64], classes: IntArray) -> Scores:
    """`probabilities` has one column per class. Classes without a test row have no curve and no weight."""
    guess = classes[probabilities.argmax(axis=1)]
    accuracy = float(accuracy_score(truth, guess))
    if len(classes) == 2:
        positive = truth == classes[1]
        score = probabilities[:, 1]
        return Scores(
            accuracy,
            float(roc_auc_score(positive, score)),
            float(average_precision_score(positive, score)),
            float(f1_score(positive, guess == classes[1], zero_division=0.0)),
        )
    tested = [k for k, code in enumerate(classes) if np.any(truth == code)]
    one_vs_rest = [(truth == classes[k], probabilities[:, k], guess == classes[k]) for k in tested]
    weights = np.array([is_class.mean() for is_class, _, _ in one_vs_rest])
    rocs = np.array([roc_auc_score(is_class, score) for is_class, score, _ in one_vs_rest])
    precisions = np.array([average_precision_score(is_class, score) for is_class, score, _ in one_vs_rest])
    f1s = np.array([f1_score(is_class, said, zero_division=0.0) for is_class, _, said in one_vs_rest])
    return Scores(
        accuracy,
        *(float(weights @ values) for values in (rocs, precisions, f1s)),
        *(float(values.mean()) for values in (rocs, precisions, f1s)),
    )
