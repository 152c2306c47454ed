"""Attribute disclosure: knowing a few quasi-identifiers, how well does a model trained on the synthetic table guess a
secret column of real people?

The Bayesian network thesis's attack: five classifiers and their majority vote, trained on the synthetic table for every
combination of `known` quasi-identifiers, tested on the real records. High accuracy alone is not a breach (smoking
predicts cancer in people who were never in the data), so the same models also guess about holdout rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from synth.errors import InputError
from synth.metrics.attacks.risk import exceeds
from synth.metrics.tables import FloatArray, IntArray, Rows, Table, table_of
from synth.schema import Schema

TRAINING_ROWS = 5_000
TARGETS = 2_000
"""The support vector machine is quadratic in training rows and linear in targets times training rows."""


@dataclass(frozen=True)
class Accuracy:
    """Mean and population standard deviation over the combinations of known columns."""

    mean: float
    deviation: float


@dataclass(frozen=True)
class AttributeDisclosure:
    secret: str
    keys: tuple[str, ...]
    known: int  # how many of the keys the attacker knows
    targets: int
    accuracy: dict[str, Accuracy]  # classifier, plus "ensemble", "dummy" and "mean" (of all but dummy)
    control_targets: int | None
    control_accuracy: dict[str, Accuracy] | None  # the same about holdout rows
    flagged: bool


def attribute_disclosure(
    real: Rows,
    synthetic: Rows,
    schema: Schema,
    *,
    keys: Sequence[str],
    secret: str,
    known: int = 3,
    holdout: Rows | None = None,
    seed: int = 0,
) -> AttributeDisclosure | None:
    """None: the secret has one value in the synthetic table, so nothing can be learnt."""
    members, made = table_of(real, schema, "the real table"), table_of(synthetic, schema, "the synthetic table")
    check(schema, keys, secret, known)
    rng = np.random.default_rng(seed)
    training, targets = made.sample(TRAINING_ROWS, rng), members.sample(TARGETS, rng)
    if len(np.unique(training.codes[secret])) < 2:
        return None
    controls = None if holdout is None else table_of(holdout, schema, "the holdout table").sample(TARGETS, rng)
    chosen = list(combinations(keys, known))
    tested = [targets] if controls is None else [targets, controls]
    rounds = [_accuracies(training, tested, names, secret, seed) for names in chosen]
    accuracy = _summary([each[0] for each in rounds])
    control = None if controls is None else _summary([each[1] for each in rounds])
    flagged = (
        controls is not None
        and control is not None
        and exceeds(
            round(accuracy["ensemble"].mean * targets.rows),
            targets.rows,
            round(control["ensemble"].mean * controls.rows),
            controls.rows,
        )
    )
    strangers = None if controls is None else controls.rows
    return AttributeDisclosure(secret, tuple(keys), known, targets.rows, accuracy, strangers, control, flagged)


def _accuracies(
    training: Table, tested: list[Table], names: tuple[str, ...], secret: str, seed: int
) -> list[dict[str, float]]:
    """One dictionary per tested table."""
    labels = training.codes[secret]
    features = [_features(table, training, names) for table in (training, *tested)]
    models = {
        "random_forest": RandomForestClassifier(random_state=seed),
        "svm": SVC(random_state=seed),
        "naive_bayes": GaussianNB(),
        "knn": KNeighborsClassifier(n_neighbors=min(5, len(labels))),
        "logistic_regression": LogisticRegression(max_iter=1000, random_state=seed),
    }
    fitted = {name: model.fit(features[0], labels) for name, model in models.items()}
    dummy = DummyClassifier(strategy="most_frequent").fit(features[0], labels)
    results = []
    for table, points in zip(tested, features[1:], strict=True):
        truth = table.codes[secret]
        guesses = {name: model.predict(points) for name, model in fitted.items()}
        guesses["ensemble"] = _majority(np.stack(list(guesses.values())))
        scores = {name: float((guess == truth).mean()) for name, guess in guesses.items()}
        scores["mean"] = float(np.mean(list(scores.values())))
        scores["dummy"] = float((dummy.predict(points) == truth).mean())
        results.append(scores)
    return results


def _features(table: Table, training: Table, names: tuple[str, ...]) -> FloatArray:
    """Numbers standardised on the training rows (an empty one is their mean), label codes for categories."""
    parts = []
    for name in names:
        if name in table.codes:
            parts.append(table.codes[name].astype(np.float64))
        else:
            own = training.filled(name)
            mean, deviation = (own.mean(), own.std() or 1.0) if len(own) else (0.0, 1.0)
            parts.append(np.nan_to_num((table.numbers[name] - mean) / deviation))
    return np.column_stack(parts)


def _majority(votes: IntArray) -> IntArray:
    """Most frequent code per column of (models, rows); the smallest of equals."""
    classes = np.unique(votes)
    winners: IntArray = classes[np.stack([(votes == code).sum(axis=0) for code in classes]).argmax(axis=0)]
    return winners


def _summary(rounds: list[dict[str, float]]) -> dict[str, Accuracy]:
    by_name = {name: np.array([scores[name] for scores in rounds]) for name in rounds[0]}
    return {name: Accuracy(float(values.mean()), float(values.std())) for name, values in by_name.items()}


def check(schema: Schema, keys: Sequence[str], secret: str, known: int) -> None:
    """Refuses an attacker that cannot be."""
    if secret not in schema.discrete:
        raise InputError(f"the secret '{secret}' is not a categorical or boolean column; choose one that is")
    if unknown := [name for name in keys if name not in schema.released]:
        raise InputError(f"quasi-identifier '{unknown[0]}' is not a released column; choose among the released ones")
    if secret in keys:
        raise InputError(f"the secret '{secret}' is also listed as known; remove it from the quasi-identifiers")
    if not 1 <= known <= len(keys):
        raise InputError(f"the attacker cannot know {known} of {len(keys)} quasi-identifiers; choose 1..{len(keys)}")
