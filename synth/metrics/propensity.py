"""Can a classifier tell real rows from synthetic ones?

`pmse` is the thesis's propensity score: in-sample probabilities of a decision tree of depth 5 on label codes (an
unlimited tree always reaches the maximum of 0.25 and says nothing). `detection_auroc` asks the sharper question with
gradient boosting on rows it was not trained on; 0.5 means it cannot tell.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from synth.metrics.spaces import LabelCodes
from synth.metrics.tables import FloatArray, IntArray, Rows, Table, table_of
from synth.schema import Schema

TREE_DEPTH = 5
FOLDS = 3


def pmse(real: Rows, synthetic: Rows, schema: Schema, *, seed: int = 0) -> float:
    """Mean squared gap between propensity and the share of synthetic rows, 0..0.25; 0 is best."""
    points, is_synthetic = _pooled(table_of(real, schema), table_of(synthetic, schema))
    tree = DecisionTreeClassifier(max_depth=TREE_DEPTH, random_state=seed).fit(points, is_synthetic)
    propensity = tree.predict_proba(points)[:, 1]
    return float(np.mean(np.square(propensity - is_synthetic.mean())))


def detection_auroc(real: Rows, synthetic: Rows, schema: Schema, *, seed: int = 0) -> float | None:
    """Cross-validated AUROC of real against synthetic, 0.5 is best. None: a table has fewer rows than folds."""
    left, right = table_of(real, schema), table_of(synthetic, schema)
    if min(left.rows, right.rows) < FOLDS:
        return None
    points, is_synthetic = _pooled(left, right)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    model = HistGradientBoostingClassifier(random_state=seed)
    score = cross_val_predict(model, points, is_synthetic, cv=folds, method="predict_proba")[:, 1]
    return float(roc_auc_score(is_synthetic, score))


def _pooled(real: Table, synthetic: Table) -> tuple[FloatArray, IntArray]:
    space = LabelCodes.fit(real)
    points = np.vstack([space.points(real), space.points(synthetic)])
    return points, np.repeat(np.array([0, 1]), [real.rows, synthetic.rows])
