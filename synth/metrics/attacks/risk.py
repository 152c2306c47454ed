"""From counted successes to a risk with an interval, as Anonymeter defines it (PoPETs 2023).

Guesses that succeed just as often about people who were never in the data teach nothing about those who were. So every
attack is also run against a control set of such people, and the risk is what remains:

    risk = (attack rate - control rate) / (1 - control rate)

Rates are Wilson scores; the interval of the risk is propagated from both. A risk is *flagged* only when the attack
beats its control by three standard errors, so an honest table is flagged about once in a thousand attacks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Z_DISPLAYED = 1.959964  # 95 % two-sided
Z_FLAGGED = 3.0  # one-sided false alarm about 0.00135


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float


def wilson(successes: int, trials: int, z: float = Z_DISPLAYED) -> Interval:
    """Wilson score of a rate: centre and interval. Always inside 0..1, also for 0 successes."""
    centre = (successes + z * z / 2.0) / (trials + z * z)
    half = z / (trials + z * z) * np.sqrt(successes * (trials - successes) / trials + z * z / 4.0)
    return Interval(float(centre), float(max(0.0, centre - half)), float(min(1.0, centre + half)))


def exceeds(successes: int, trials: int, null_successes: int, null_trials: int) -> bool:
    """Whether the first rate is above the second by three pooled standard errors and more than one success."""
    difference = successes / trials - null_successes / null_trials
    pooled = (successes + null_successes) / (trials + null_trials)
    error = np.sqrt(pooled * (1.0 - pooled) * (1.0 / trials + 1.0 / null_trials))
    return bool(successes > 1 and difference > Z_FLAGGED * error)


@dataclass(frozen=True)
class Attempts:
    """Counts of one attack. `baseline` guesses blindly; `control` attacks people who were not in the data."""

    attacks: int
    successes: int
    baseline_successes: int
    control_attacks: int | None = None
    control_successes: int | None = None

    @property
    def rate(self) -> Interval:
        return wilson(self.successes, self.attacks)

    @property
    def baseline_rate(self) -> Interval:
        return wilson(self.baseline_successes, self.attacks)

    @property
    def control_rate(self) -> Interval | None:
        if self.control_attacks is None or self.control_successes is None:
            return None
        return wilson(self.control_successes, self.control_attacks)

    @property
    def risk(self) -> Interval:
        """Bounded to 0..1. Without a control set this is the plain attack rate, an overestimate."""
        control = self.control_rate
        return self.rate if control is None else _residual(self.rate, control)

    @property
    def flagged(self) -> bool:
        """Better than the control set; without one, better than blind guessing cannot tell harm from utility."""
        if self.control_attacks is None or self.control_successes is None:
            return False
        return exceeds(self.successes, self.attacks, self.control_successes, self.control_attacks)


def _residual(attack: Interval, control: Interval) -> Interval:
    left = 1.0 - control.value
    value = (attack.value - control.value) / left
    # First-order propagation: d risk / d attack = 1 / (1 - c), d risk / d control = (a - 1) / (1 - c)^2.
    by_attack = (attack.high - attack.low) / 2.0 / left
    by_control = (control.high - control.low) / 2.0 * (attack.value - 1.0) / left**2
    error = float(np.hypot(by_attack, by_control))
    return Interval(*(float(np.clip(bound, 0.0, 1.0)) for bound in (value, value - error, value + error)))
