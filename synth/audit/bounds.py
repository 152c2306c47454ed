"""From how often an attack errs to the least ε that can explain it.

Each error rate is replaced by its exact (Clopper–Pearson) upper bound, so that with the stated confidence the true
rates are no higher. What they then say about ε depends on what is assumed of the mechanism:

    epsilon_of_rates    nothing: (ε, δ)-DP implies 1 - FNR ≤ e^ε FPR + δ, for both sides       (Kairouz et al. 2015)
    mu_of_rates         the noise is Gaussian: Φ⁻¹(1 - FPR) - Φ⁻¹(FNR) = μ, and μ gives ε           (Nasr et al. 2023)
    epsilon_of_guesses  nothing, and many canaries share a run: right guesses are at most binomial (Steinke et al. 2023)

The second is several times sharper, and right for white-box audits of one mechanism whose noise is known to be
(nearly) Gaussian. Thresholds must be chosen without looking at the trials that are counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from scipy.stats import beta, binom, norm

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Errors:
    """An attack's mistakes: `false_positives` of `without` trials without the row, `false_negatives` of `present`."""

    false_positives: int
    without: int
    false_negatives: int
    present: int

    def upper(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Bounds that both rates are below, together with this confidence."""
        each = (1 + confidence) / 2
        return (
            rate_at_most(self.false_positives, self.without, each),
            rate_at_most(self.false_negatives, self.present, each),
        )


def rate_at_most(successes: int, trials: int, confidence: float) -> float:
    """The one-sided Clopper–Pearson bound of a rate."""
    return 1.0 if successes >= trials else float(beta.ppf(confidence, successes + 1, trials - successes))


def rate_at_least(successes: int, trials: int, confidence: float) -> float:
    return 1.0 - rate_at_most(trials - successes, trials, confidence)


def epsilon_of_rates(errors: Errors, delta: float, confidence: float = CONFIDENCE) -> float:
    """The least ε at δ that any mechanism with these error rates can have; 0 if they show nothing."""
    false_positive, false_negative = errors.upper(confidence)
    sides = [(1 - delta - false_negative, false_positive), (1 - delta - false_positive, false_negative)]
    return max(0.0, *(math.log(hit / miss) if hit > 0 else 0.0 for hit, miss in sides))


def mu_of_rates(errors: Errors, sample_rate: float = 1.0, confidence: float = CONFIDENCE) -> float:
    """The least μ = sensitivity / standard deviation of Gaussian noise; 0 if the errors show nothing.

    Where a row joins only with probability `sample_rate`, an attack hits at (1 - q) FPR + q Φ(μ - Φ⁻¹(1 - FPR)).
    """
    false_positive, false_negative = errors.upper(confidence)
    hit = (1 - false_negative - (1 - sample_rate) * false_positive) / sample_rate
    if hit >= 1:
        return math.inf  # no noise explains it: the row joined more often than it should
    return max(0.0, float(norm.ppf(1 - false_positive) + norm.ppf(max(hit, 0.0)))) if hit > 0 else 0.0


def epsilon_of_mu(mu: float, delta: float) -> float:
    """ε at δ of Gaussian noise with standard deviation sensitivity / μ."""
    if mu <= 0:
        return 0.0
    return math.inf if math.isinf(mu) else float(get_epsilon_gaussian(1 / mu, delta))


def epsilon_of_guesses(right: int, guesses: int, canaries: int, delta: float, confidence: float = CONFIDENCE) -> float:
    """The least ε with which `right` of `guesses` about canaries could come true, each canary in or out by a fair coin.

    Holds for canaries that share a run, and for pooled independent runs (Steinke, Nasr and Jagielski, theorem 1.1, with
    its δ-term bounded by the number of canaries): a bound on ε needs no independence between the canaries' scores.
    """
    if guesses == 0:
        return 0.0
    low, high = 0.0, 50.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if _unlikely(right, guesses, canaries, middle, delta, confidence) else (low, middle)
    return low


def _unlikely(right: int, guesses: int, canaries: int, epsilon: float, delta: float, confidence: float) -> bool:
    """Whether a mechanism of (ε, δ) gets that many right less often than once in 1 / (1 - confidence) audits."""
    chance = 1 / (1 + math.exp(-epsilon))
    tail = float(binom.sf(right - 1, guesses, chance))
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, chance))  # just below `right`, step by step
    alpha = float((below / np.arange(1, right + 1)).max()) if right else 0.0
    return tail + alpha * 2 * canaries * delta < 1 - confidence


def detectable(trials: int, delta: float, confidence: float = CONFIDENCE) -> float:
    """The largest ε that an attack without any error could prove with this many trials a side."""
    return epsilon_of_rates(Errors(0, trials, 0, trials), delta, confidence)
