"""From counted successes to a risk with an interval, as Anonymeter defines it (PoPETs 2023).

Guesses that succeed just as often about people who were never in the data teach nothing about those who were. So every
attack is also run against a control set of such people, and the risk is what remains:

    risk = (attack rate - control rate) / (1 - control rate)

Rates in it are Wilson scores (centres); its interval is propagated from theirs. A risk is *flagged* only when an exact
test says that the attack beats its control, at a level that flags an honest table at most 1.35 times in a thousand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydantic import FiniteFloat
from scipy.stats import binom, hypergeom

Z_DISPLAYED = 1.959964  # 95 % two-sided
Z_FLAGGED = 3.0
FALSE_ALARM = 0.00135  # one-sided, of three standard errors


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval."""

    value: FiniteFloat
    low: FiniteFloat
    high: FiniteFloat


def wilson(successes: int, trials: int, z: float = Z_DISPLAYED) -> Interval:
    """A share with its Wilson interval."""
    share, score = successes / trials, wilson_score(successes, trials, z)
    return Interval(share, min(share, score.low), max(share, score.high))


def wilson_score(successes: int, trials: int, z: float = Z_DISPLAYED) -> Interval:
    """The interval and its centre, which Anonymeter takes for the rate: above 0 also for 0 successes."""
    centre = (successes + z * z / 2.0) / (trials + z * z)
    half = z / (trials + z * z) * np.sqrt(successes * (trials - successes) / trials + z * z / 4.0)
    return Interval(float(centre), float(max(0.0, centre - half)), float(min(1.0, centre + half)))


def exceeds(successes: int, trials: int, null_successes: int, null_trials: int, among: int = 1) -> bool:
    """Whether the first rate is above the second, by Fisher's exact test and more than one success. `among` so many
    tests of one kind each gets its part of the false alarms."""
    everybody, all_successes = trials + null_trials, successes + null_successes
    return successes > 1 and bool(hypergeom.sf(successes - 1, everybody, all_successes, trials) < FALSE_ALARM / among)


def outnumbers(here: int, there: int) -> bool:
    """Whether so many of `here` + `there` coins cannot all be fair: the sign test, McNemar's for paired counts."""
    return bool(binom.sf(here - 1, here + there, 0.5) < FALSE_ALARM)


@dataclass(frozen=True)
class Attempts:
    """Counts of one attack. `baseline` guesses blindly; `control` attacks people who were not in the data."""

    attacks: int
    successes: int
    baseline_successes: int
    control_attacks: int | None = None
    control_successes: int | None = None
    among: int = 1  # attacks of one kind that are judged beside it

    @property
    def rate(self) -> Interval:
        return wilson_score(self.successes, self.attacks)

    @property
    def control_rate(self) -> Interval | None:
        if self.control_attacks is None or self.control_successes is None:
            return None
        return wilson_score(self.control_successes, self.control_attacks)

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
        return exceeds(self.successes, self.attacks, self.control_successes, self.control_attacks, self.among)


def _residual(attack: Interval, control: Interval) -> Interval:
    left = 1.0 - control.value
    value = (attack.value - control.value) / left
    # First-order propagation: d risk / d attack = 1 / (1 - c), d risk / d control = (a - 1) / (1 - c)^2.
    by_attack = (attack.high - attack.low) / 2.0 / left
    by_control = (control.high - control.low) / 2.0 * (attack.value - 1.0) / left**2
    error = float(np.hypot(by_attack, by_control))
    return Interval(*(float(np.clip(bound, 0.0, 1.0)) for bound in (value, value - error, value + error)))
