"""Membership inference: can an attacker tell who was in the training data?

Scores are higher for likelier members. Two attacks:

    by distance        the nearer the nearest synthetic row, the likelier a member (and Hilprecht's ball count, whose
                       accuracy the VertiGAN and FedSTDG papers print)
    by density ratio   distance alone also favours people who are merely typical. Divide by how dense an independent
                       reference population is there (DOMIAS, van Breugel 2023), with nearest-neighbour densities:
                       log(distance to the nearest reference row) - log(distance to the nearest synthetic row)

Both need rows the synthesizer never saw; the second keeps half of them as its reference. Scales of columns come from
such rows, too: synthetic ones may be absurd, and an attacker knows the population. The figure that matters is the
true positive rate at 1 % false positives: an attack that is sure about a few people is a breach, even when its AUROC is
0.5. Equal scores are ordered by lot, or a table in which many strangers have twins would hide all of its members.
Passing these attacks proves nothing; failing one does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from synth.errors import InputError
from synth.metrics.attacks.risk import Z_DISPLAYED, Z_FLAGGED, Interval, exceeds, wilson
from synth.metrics.spaces import Mixed
from synth.metrics.tables import FloatArray, Rows, Table, table_of
from synth.schema import Schema

TARGETS_PER_SIDE = 5_000
FALSE_POSITIVE_RATE = 0.01
FEWEST_TARGETS = 100
NEARLY_EQUAL = 1e-6  # rounding error of the distance between equal rows


@dataclass(frozen=True)
class Membership:
    members: int
    non_members: int
    auroc: Interval  # 0.5: cannot tell
    true_positive_rate: Interval  # at the threshold that `false_positive_rate` of non-members pass
    false_positive_rate: float  # at most FALSE_POSITIVE_RATE
    ball_accuracy: float | None  # Hilprecht's attack, by distance only; 0.5: cannot tell
    flagged: bool  # by the true positive rate, or by an AUROC three standard errors above 0.5


def membership_by_distance(
    real: Rows, synthetic: Rows, schema: Schema, holdout: Rows, *, seed: int = 0, targets: int = TARGETS_PER_SIDE
) -> Membership:
    rng = np.random.default_rng(seed)
    inside, outside = table_of(real, schema, "the real table"), table_of(holdout, schema, "the holdout table")
    known = table_of(synthetic, schema, "the synthetic table")
    size = min(inside.rows, outside.rows, targets)
    _enough(size)
    space = _ruler(outside, known)
    points = space.points(known)
    members, strangers = (space.points(table.take(rng.permutation(table.rows)[:size])) for table in (inside, outside))
    distances = [nearest_distance(members, points), nearest_distance(strangers, points)]
    accuracy = ball_accuracy(members[:100], strangers[:100], points, rng)
    return judged(-distances[0], -distances[1], accuracy, rng)


def membership_by_density_ratio(
    real: Rows, synthetic: Rows, schema: Schema, holdout: Rows, *, seed: int = 0, targets: int = TARGETS_PER_SIDE
) -> Membership:
    """Half of `holdout` is the attacker's reference population, the other half are the non-members."""
    rng = np.random.default_rng(seed)
    inside, unseen = table_of(real, schema, "the real table"), table_of(holdout, schema, "the holdout table")
    known = table_of(synthetic, schema, "the synthetic table")
    order = rng.permutation(unseen.rows)
    reference, outside = unseen.take(order[: unseen.rows // 2]), unseen.take(order[unseen.rows // 2 :])
    size = min(inside.rows, outside.rows, targets)
    _enough(size)
    space = _ruler(reference, known)
    # Densities k / (n r^d) of tables of different size differ by a constant factor, which no threshold notices.
    of_synthetic, of_reference = space.points(known), space.points(reference)
    scores = []
    for table in (inside, outside):
        points = space.points(table.sample(size, rng))
        near, far = nearest_distance(points, of_synthetic), nearest_distance(points, of_reference)
        scores.append(np.log(far) - np.log(near))
    return judged(scores[0], scores[1], None, rng)


def judged(members: FloatArray, strangers: FloatArray, accuracy: float | None, rng: np.random.Generator) -> Membership:
    """Scores of members and non-members to the figures of one attack."""
    scores, inside = np.concatenate([members, strangers]), np.arange(len(members) + len(strangers)) < len(members)
    auroc = float(roc_auc_score(inside, scores))
    ranked = inside[np.lexsort((rng.random(len(scores)), -scores))]  # likeliest members first, equals by lot
    alarms = int(FALSE_POSITIVE_RATE * len(strangers))
    hits = int(np.flatnonzero(~ranked)[alarms]) - alarms  # members before the first stranger that is one too many
    error = _auroc_error(auroc, len(members), len(strangers))
    half = Z_DISPLAYED * error
    return Membership(
        members=len(members),
        non_members=len(strangers),
        auroc=Interval(auroc, max(0.0, auroc - half), min(1.0, auroc + half)),
        true_positive_rate=wilson(hits, len(members)),
        false_positive_rate=alarms / len(strangers),
        ball_accuracy=accuracy,
        flagged=exceeds(hits, len(members), alarms, len(strangers)) or auroc - 0.5 > Z_FLAGGED * error,
    )


def ball_accuracy(members: FloatArray, strangers: FloatArray, synthetic: FloatArray, rng: np.random.Generator) -> float:
    """Hilprecht: count synthetic rows within the median nearest distance; the half with most are called members."""
    targets = np.vstack([members, strangers])
    radius = float(np.median(nearest_distance(targets, synthetic))) + NEARLY_EQUAL
    counts = np.array(
        [len(near) for near in _index(synthetic).radius_neighbors(targets, radius, return_distance=False)]
    )
    order = np.lexsort((rng.random(len(targets)), -counts))  # ties at random
    called = np.zeros(len(targets), dtype=bool)
    called[order[: len(members)]] = True
    return float((called == (np.arange(len(targets)) < len(members))).mean())


def nearest_distance(points: FloatArray, others: FloatArray) -> FloatArray:
    """Euclidean; never below the rounding error of equal rows, so its logarithm exists."""
    distances: FloatArray = _index(others).kneighbors(points, n_neighbors=1)[0][:, 0]
    return np.maximum(distances, NEARLY_EQUAL)


def _ruler(population: Table, synthetic: Table) -> Mixed:
    """Without the columns that are constant in the synthetic table: they are as far from members as from strangers, and
    only drown the others."""
    space, columns = Mixed.fit(population), synthetic.codes | synthetic.numbers
    constant = {name for name, cells in columns.items() if len(np.unique(cells)) == 1}
    if len(constant) == len(columns):
        return space
    return Mixed(
        {name: value for name, value in space.ranges.items() if name not in constant},
        {name: value for name, value in space.labels.items() if name not in constant},
    )


def _index(points: FloatArray) -> NearestNeighbors:
    return NearestNeighbors(algorithm="brute").fit(points)


def _auroc_error(auroc: float, members: int, strangers: int) -> float:
    """Standard error by Hanley and McNeil (1982)."""
    q1, q2 = auroc / (2.0 - auroc), 2.0 * auroc**2 / (1.0 + auroc)
    spread = auroc * (1 - auroc) + (members - 1) * (q1 - auroc**2) + (strangers - 1) * (q2 - auroc**2)
    return float(np.sqrt(max(0.0, spread) / (members * strangers)))


def _enough(size: int) -> None:
    if size < FEWEST_TARGETS:
        raise InputError(
            f"membership inference at 1 % false positives needs at least {FEWEST_TARGETS} members and as many "
            f"non-members, and there are {size}; give more holdout rows"
        )
