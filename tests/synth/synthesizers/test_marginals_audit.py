"""A membership-inference attack on everything `marginals` releases, run often enough to bound ε from below.

The strongest attacker: knows all rows but one and looks at the opened sums, of which the synthetic table is a function.
Whether a canary row was there changes one cell of every histogram and of every table by one, so the best test adds
those cells up, weighted by precision. With distributed noise near Gaussian, the attack's error rates bound μ of
Gaussian DP from below, and μ gives ε (Nasr et al., USENIX Security 2023). The bound must stay under the claim with the
noise as it is, and go beyond it with half the noise: an audit that could not fail would prove nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from scipy.stats import beta, norm

from synth.counting import party_side
from synth.encoding import contingency
from synth.encoding.records import Records
from synth.interface import Ask, Inquiry, Scalar
from synth.plan import Plan, parse_plan
from synth.privacy.events import CountNoise
from synth.privacy.noise import seeded_source
from synth.privacy.shares import share_of
from synth.statistics.histograms import StatisticsInquiry
from synth.synthesizers.marginals.synthesizer import Marginals

EPSILON, DELTA, TRIALS = 1.0, 1e-3, 2500  # per world; enough to notice half the noise, in a few seconds
SCHEMA = {"columns": {name: {"kind": "categorical", "categories": ["0", "1"]} for name in ("a", "b", "c")}}


def plan() -> Plan:
    parties = [{"name": "left", "rows": 10}, {"name": "right", "rows": 10}]
    content: dict[str, Any] = {
        "name": "audit",
        "schema": SCHEMA,
        "parties": parties,
        "synthesizer": {"name": "marginals"},
        "privacy": {"epsilon": EPSILON, "delta": DELTA},
        "secure_sum": {"colluders": 0},  # all shares count, so the claim is tight
    }
    return parse_plan(content)


class Attack:
    """Everything released by a run on a few ordinary rows, with or without the canary."""

    def __init__(self) -> None:
        agreed = plan()
        statistics, model = StatisticsInquiry(agreed), Marginals(agreed)
        cliques = contingency.pack_cliques(model.pairs)  # three pairs: every round counts them all
        # A histogram has two cells, a table of a pair four; the canary is in the last one of each.
        self.releases: list[tuple[Inquiry, Ask, int]] = [(statistics, Ask(options={"phase": "statistics"}), 2)]
        for number in range(model.asks):
            options: dict[str, Scalar] = {"phase": "training", "round": number}
            self.releases.append((model, Ask({"bins": np.tile([0, 1], 3), "cliques": cliques}, options), 4))
        ordinary = Records({name: np.zeros(4, dtype=np.int64) for name in "abc"})
        canary = Records({name: np.ones(1, dtype=np.int64) for name in "abc"})
        self.left = {False: ordinary, True: Records.concat([ordinary, canary])}
        self.right = ordinary

    def score(self, present: bool, seed: int) -> float:
        found = 0.0
        for number, (inquiry, ask, cells) in enumerate(self.releases):
            answers = [
                inquiry.answer(ask, name, rows, {}, seeded_source(seed, name, number))[0].arrays["counts"]
                for name, rows in (("left", self.left[present]), ("right", self.right))
            ]
            (event,) = inquiry.cost(ask, "left")
            assert isinstance(event, CountNoise)
            found += float(sum(counts[cells - 1 :: cells].sum() for counts in answers)) / event.variance
        return found


def epsilon_at_least(without: np.ndarray, present: np.ndarray) -> float:
    """The ε that the attack proves, with 95 % confidence: the false-alarm rate of this test is 2.5 % a side at most,
    and far less where the bound has room under the claim (here 0.2 of 1)."""
    threshold = (without.mean() + present.mean()) / 2
    errors = [(without > threshold).sum(), (present <= threshold).sum()]
    upper = [float(beta.ppf(0.975, count + 1, TRIALS - count)) for count in errors]
    mu = float(norm.ppf(1 - upper[0]) - norm.ppf(upper[1]))
    return float(get_epsilon_gaussian(1 / mu, DELTA)) if mu > 0 else 0.0


def audited() -> float:
    attack = Attack()
    without, present = (
        np.array([attack.score(there, 2 * trial + there) for trial in range(TRIALS)]) for there in (False, True)
    )
    return epsilon_at_least(without, present)


def test_the_attack_proves_less_than_is_claimed() -> None:
    assert 0.5 * EPSILON < audited() < EPSILON


def test_the_attack_would_notice_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(party_side, "share_of", lambda plan, event: share_of(plan, event) / 4)
    assert audited() > EPSILON
