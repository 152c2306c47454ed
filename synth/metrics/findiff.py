"""The FinDiff paper's three composites: fidelity Ω (higher is better), utility Φ (higher), privacy Π (lower).

Ω = (Ω_col + Ω_row) / 2 with Ω_col the mean of 1 - Wasserstein (numeric) and 1 - Jensen-Shannon *divergence* (discrete)
over columns, and Ω_row the mean over pairs of 1 - |Δ Pearson| (numeric) and 1 - |Δ Theil's U| (discrete, both orders);
mixed pairs are not defined there and skipped. Φ, the mean accuracy of five classifiers, is in `utility.mean_scores`.
Π is the mean of Anonymeter's three risks, inference averaged over all secrets; the paper does not say whether against
a control set, so it is given with and without.
"""

from __future__ import annotations

import numpy as np

from synth.metrics.attacks.risk import Attempts, Interval
from synth.metrics.fidelity import jsd_by_column, mean_of, wd_by_column
from synth.metrics.fidelity_pairs import Associations
from synth.metrics.tables import Rows
from synth.schema import Schema


def omega(real: Rows, synthetic: Rows, schema: Schema, left: Associations, right: Associations) -> float | None:
    """0..1, 1 is best. `left` and `right` are the associations of the real and the synthetic table."""
    return mean_of([omega_columns(real, synthetic, schema), omega_rows(left, right)])


def omega_columns(real: Rows, synthetic: Rows, schema: Schema) -> float | None:
    divergences = [1.0 - distance**2 for distance in jsd_by_column(real, synthetic, schema).values()]
    distances = [None if w is None else max(0.0, 1.0 - w) for w in wd_by_column(real, synthetic, schema).values()]
    return mean_of([*divergences, *distances])


def omega_rows(left: Associations, right: Associations) -> float | None:
    """None: there is neither a pair of numeric nor a pair of discrete columns."""
    numeric = np.abs(left.pearson - right.pearson)[np.triu_indices(len(left.numeric), 1)]
    ordered = ~np.eye(len(left.discrete), dtype=bool)
    discrete = np.abs(left.theils_u - right.theils_u)[ordered]
    return mean_of(np.clip(1.0 - np.concatenate([numeric, discrete]), 0.0, 1.0).tolist())


def pi(singling_out: Attempts, linkability: Attempts, inference: dict[str, Attempts]) -> Interval:
    """0..1, 0 is best. The interval is the mean of the parts' intervals: they share their targets, so their errors need
    not cancel."""
    return _mean_risk(singling_out.risk, linkability.risk, [attempts.risk for attempts in inference.values()])


def pi_without_control(singling_out: Attempts, linkability: Attempts, inference: dict[str, Attempts]) -> Interval:
    """The same of plain success rates: an overestimate."""
    return _mean_risk(singling_out.rate, linkability.rate, [attempts.rate for attempts in inference.values()])


def _mean_risk(isolated: Interval, linked: Interval, inferred: list[Interval]) -> Interval:
    def mean(bound: str) -> float:
        secrets = float(np.mean([getattr(secret, bound) for secret in inferred]))
        return float(getattr(isolated, bound) + getattr(linked, bound) + secrets) / 3.0

    return Interval(mean("value"), mean("low"), mean("high"))
