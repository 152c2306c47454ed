"""White-box audits: the strongest attacker against one mechanism, often enough to measure ε from below.

The attacker knows everything but the noise and whether one row was there: all other rows, the colluding parties' noise,
and what the row does to each released value. Then the best test is a weighted sum of the released values, and the best
threshold is known beforehand: half-way, or higher where sampling hides the row in most runs. The mechanism that runs is
the real one with the real noise source; only the source hands out many runs' noise at once, which NumPy adds to the
same counts.

A bound from n trials a side lies a little below the truth (see `bounds`): above the claim it shows a violation (but
for one honest mechanism in twenty at most, at 95 %); far below it, that noise is wasted or the audit blunt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import norm
from torch import nn

from synth.audit.bounds import CONFIDENCE, Errors, epsilon_of_mu, mu_of_rates
from synth.audit.replay import Neighbours, Subject
from synth.audit.tape import Silent
from synth.encoding.records import Records
from synth.interface import Arrays
from synth.privacy.accounting import compose
from synth.privacy.dpsgd import PrivateGradient, StepPrivacy, poisson_batch
from synth.privacy.events import SampledGaussian
from synth.privacy.noise import NoiseSource
from synth.privacy.shares import count_variances

Floats = npt.NDArray[np.float64]
MakeSource = Callable[[], NoiseSource]
RUNS_AT_ONCE = 10_000
LOUD = 100.0  # a gradient this many times the clip norm: only clipping bounds it


class ManyRuns(NoiseSource):
    """The noise of many runs at once: arrays of shape (runs, count), from a real source."""

    def __init__(self, source: NoiseSource, runs: int) -> None:
        super().__init__(bytes(32))
        self.source, self.runs = source, runs

    def child(self, *labels: str | int) -> ManyRuns:
        return ManyRuns(self.source.child(*labels), self.runs)

    def skellam(self, variance: float, count: int) -> npt.NDArray[np.int64]:
        return self.source.skellam(variance, self.runs * count).reshape(self.runs, count)


def audit_counts(
    subjects: Sequence[Subject], neighbours: Neighbours, runs: int, make_source: MakeSource = NoiseSource
) -> Errors:
    """How often the best attacker errs who sees the opened sums of every ask, in `runs` runs with and without the row.

    The honest parties are the subject's own and `noisy_parties` - 1 others, whose rows are known: only their noise is
    secret, so they answer on the common rows. Colluders' noise is known and so is left out.
    """
    directions = [_direction(subject, neighbours) for subject in subjects]
    middle = sum(float(direction @ change) for direction, change, _ in directions) / 2
    wrong = [0, 0]
    for there, rows in enumerate((neighbours.rows, neighbours.larger)):
        for start in range(0, runs, RUNS_AT_ONCE):
            count = min(RUNS_AT_ONCE, runs - start)
            scores = np.zeros(count)
            for subject, (direction, _, before) in zip(subjects, directions, strict=True):
                opened = _opened(subject, rows, neighbours.rows, count, make_source)
                scores += (opened - before) @ direction
            wrong[there] += int(((scores > middle) != there).sum())
    return Errors(wrong[0], runs, wrong[1], runs)


def _direction(subject: Subject, neighbours: Neighbours) -> tuple[Floats, Floats, Floats]:
    """Weights of the best test, what the row changes, and the sums of the common rows without noise."""
    before, after = (_bare(subject, rows) for rows in (neighbours.rows, neighbours.larger))
    change = after - before
    events = [event for ask in subject.asks for event in subject.make().cost(ask, subject.party)]
    sizes = [len(part) for part in _parts(subject, neighbours.rows, Silent())]
    variances = count_variances(events)
    weights = np.repeat(1 / np.array(variances), sizes)
    return weights * change, change, before * subject.noisy_parties


def _bare(subject: Subject, rows: Records) -> Floats:
    return np.concatenate(_parts(subject, rows, Silent()))


def _opened(subject: Subject, rows: Records, others: Records, runs: int, make_source: MakeSource) -> Floats:
    """The sum of the honest parties' answers, (runs, values)."""
    total = np.hstack(_parts(subject, rows, ManyRuns(make_source(), runs)))
    for _ in range(subject.noisy_parties - 1):
        total = total + np.hstack(_parts(subject, others, ManyRuns(make_source(), runs)))
    return total


def _parts(subject: Subject, rows: Records, source: NoiseSource) -> list[Floats]:
    """The arrays of every answer, one after the other."""
    inquiry, parts = subject.make(), []
    local: Arrays = {}
    for number, ask in enumerate(subject.asks):
        answer, local = inquiry.answer(ask, subject.party, rows, local, source.child("ask", number))
        parts += [array.astype(np.float64) for array in answer.arrays.values()]  # one for each event, in order
    return parts


def audit_steps(privacy: StepPrivacy, runs: int, make_source: MakeSource = NoiseSource) -> Errors:
    """How often the best attacker errs about a row whose gradient points where no other does, `runs` steps a side.

    Its gradient is far longer than the clip norm. It joins by the real sampler, and the step is the real one.
    """
    canary, wrong = torch.eye(1, 2), [0, 0]
    threshold = best_threshold(privacy, runs) * privacy.l2_clip_norm
    for there in (0, 1):
        source, module = make_source(), nn.Linear(2, 1, bias=False)
        gradient = PrivateGradient(module, privacy, source.child("gradient"))
        batches = source.child("batches")

        def loss(rows: torch.Tensor, module: nn.Linear = module) -> torch.Tensor:
            scores: torch.Tensor = module(rows)
            return LOUD * privacy.l2_clip_norm * scores[:, 0]

        for _ in range(runs):
            (sums,) = gradient(loss, canary[poisson_batch(batches, there, privacy.sample_rate)])
            wrong[there] += (float(sums[0, 0]) * privacy.expected_batch > threshold) != there
    return Errors(wrong[0], runs, wrong[1], runs)


def best_threshold(privacy: StepPrivacy, runs: int) -> float:
    """In clip norms: where the errors that an honest mechanism should show would prove most."""

    def proven(threshold: float) -> float:
        without = float(norm.sf(threshold / privacy.noise_multiplier))
        joined = float(norm.sf((threshold - 1) / privacy.noise_multiplier))
        missed = 1 - (1 - privacy.sample_rate) * without - privacy.sample_rate * joined
        return mu_of_rates(Errors(round(without * runs), runs, round(missed * runs), runs), privacy.sample_rate)

    steps = range(round(60 * privacy.noise_multiplier) + 1)
    return max((0.5 + 0.05 * step for step in steps), key=proven)


@dataclass(frozen=True)
class Verdict:
    """A lower bound beside a claim, both ε at the same δ."""

    proven: float
    claimed: float

    @property
    def violated(self) -> bool:
        return self.proven > self.claimed

    @property
    def tightness(self) -> float:
        return self.proven / self.claimed


def judged_counts(errors: Errors, claimed: float, delta: float, confidence: float = CONFIDENCE) -> Verdict:
    """Skellam noise of many counts, or of a large variance, is Gaussian as far as an audit can see."""
    return Verdict(epsilon_of_mu(mu_of_rates(errors, confidence=confidence), delta), claimed)


def judged_steps(errors: Errors, event: SampledGaussian, delta: float, confidence: float = CONFIDENCE) -> Verdict:
    """One step of `event`, beside the same with the least noise multiplier that explains the errors."""
    mu = mu_of_rates(errors, event.sample_rate, confidence)
    claimed = compose([SampledGaussian(event.sample_rate, event.noise_multiplier, 1)], delta).epsilon
    if mu in (0.0, math.inf):
        return Verdict(mu, claimed)
    return Verdict(compose([SampledGaussian(event.sample_rate, 1 / mu, 1)], delta).epsilon, claimed)


def repeats(make_source: MakeSource, words: int = 64) -> bool:
    """Whether two sources started one after the other give the same noise: then whoever can start one knows it."""
    first, second = (make_source() for _ in range(2))
    pairs = [(first, second), (first.child("counts"), second.child("counts"))]
    return any(bool((one.uint64(words) == other.uint64(words)).any()) for one, other in pairs)
