"""The membership game, end to end: was this row among those a synthetic table was made from?

Before every run each canary (an unusual row) is put among one party's rows by a fair coin. The attacker sees the
synthetic table alone and guesses the coins. It learns on shadow runs, whose coins it knows, what a canary does to the
counts of synthetic rows like it, in one column and in every pair of columns; then it scores the canaries of the other
runs, and guesses those it is surest of.

Many canaries share a run, so a few dozen runs give thousands of guesses; the bound on ε allows for that (see `bounds`).
It is a smoke test: an attack on the table sees far less than one on the released sums, which the white-box audit is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synth.audit.bounds import epsilon_of_guesses
from synth.encoding.cells import Cells
from synth.encoding.records import Records
from synth.interface import Arrays, Inquiry, Sum
from synth.plan import Plan
from synth.privacy.noise import NoiseSource
from synth.statistics.mixture_rounds import statistics_inquiry
from synth.synthesizers.registry import build

Floats = npt.NDArray[np.float64]
Coins = npt.NDArray[np.bool_]
NoiseOf = Callable[[str, int], NoiseSource]  # of a party and an ask's number
CELLS = 16  # per numeric column, to call rows alike
SURE_SHARE = 0.1  # of all canaries: so many are guessed to be in, and as many to be out
FALSE_POSITIVE_RATE = 0.01
RESAMPLES = 1000


@dataclass(frozen=True, eq=False)
class Trial:
    """One run: what the table shows about each canary, and which were in."""

    likeness: Floats  # (canaries, features)
    joined: Coins  # (canaries,)


@dataclass(frozen=True)
class Outcome:
    """What an attack achieved over all runs that were not shadows."""

    runs: int
    canaries: int  # in all those runs together
    guesses: int
    right: int
    epsilon: float  # proven, with 95 % confidence
    provable: float  # with every guess right
    true_positive_rate: float  # at 1 % false positives
    low: float  # of its 95 % interval, runs resampled
    high: float


def synthesized(plan: Plan, rows: dict[str, Records], noise_of: NoiseOf, seed: int) -> Records:
    """A run without messages: the parties' answers, added up, are all that the aggregator sees."""
    held: dict[str, Arrays] = {party: {} for party in rows}
    sequence = 0

    def drive(inquiry: Inquiry) -> None:
        nonlocal sequence
        number = 0
        while (ask := inquiry.ask(number)) is not None:
            answers = {}
            for party, records in rows.items():
                noise = noise_of(party, sequence)
                answers[party], held[party] = inquiry.answer(ask, party, records, held[party], noise)
            inquiry.absorb(Sum.of(answers, ask.combine))
            number, sequence = number + 1, sequence + 1

    statistics, synthesizer = statistics_inquiry(plan), build(plan)
    drive(statistics)
    synthesizer.begin(statistics.result(), seed)
    drive(synthesizer)
    return synthesizer.sample(plan.rows, seed)


def likeness(plan: Plan, synthetic: Records, canaries: Records) -> Floats:
    """log(1 + synthetic rows like the canary) in every column and every pair of columns, (canaries, features)."""
    cells = Cells(plan.modelled, CELLS)
    rows, planted = cells.index(synthetic), cells.index(canaries)
    upper = np.triu_indices(len(rows))
    found = np.empty((len(canaries), len(upper[0])))
    for number in range(len(canaries)):
        same = np.stack([rows[name] == planted[name][number] for name in rows]).astype(np.float64)  # (columns, rows)
        found[number] = np.log1p(same @ same.T)[upper]
    return found


def attacked(trials: Sequence[Trial], delta: float, seed: int) -> Outcome:
    """The first half of the runs are shadows, the canaries of the second half are guessed."""
    half = len(trials) // 2
    shadows, victims = trials[:half], trials[half:]
    scores = _scores(shadows, victims)  # (runs, canaries)
    joined = np.stack([trial.joined for trial in victims])
    sure = max(1, int(SURE_SHARE * scores.size))
    order = np.argsort(scores, axis=None, kind="stable")
    right = int(joined.ravel()[order[-sure:]].sum() + (~joined.ravel()[order[:sure]]).sum())
    rng = np.random.default_rng(seed)
    resampled = [rng.integers(0, len(victims), len(victims)) for _ in range(RESAMPLES)]
    rates = [true_positive_rate(scores[runs], joined[runs]) for runs in resampled]
    low, high = np.quantile(rates, [0.025, 0.975])
    return Outcome(
        runs=len(victims),
        canaries=scores.size,
        guesses=2 * sure,
        right=right,
        epsilon=epsilon_of_guesses(right, 2 * sure, scores.size, delta),
        provable=provable(len(trials), trials[0].joined.size, delta),
        true_positive_rate=true_positive_rate(scores, joined),
        low=float(low),
        high=float(high),
    )


def provable(trials: int, canaries: int, delta: float) -> float:
    """The largest ε that so many runs could prove, every guess being right."""
    count = (trials - trials // 2) * canaries
    sure = max(1, int(SURE_SHARE * count))
    return epsilon_of_guesses(2 * sure, 2 * sure, count, delta)


def true_positive_rate(scores: Floats, joined: Coins) -> float:
    """Members above a threshold that at most 1 % of the others pass."""
    members, others = scores[joined], np.sort(scores[~joined])[::-1]
    if not len(members) or not len(others):
        return 0.0
    return float((members > others[int(FALSE_POSITIVE_RATE * len(others))]).mean())


def _scores(shadows: Sequence[Trial], victims: Sequence[Trial]) -> Floats:
    """Each canary against its own usual likeness, features weighted by how well they told members in the shadows."""
    known = np.stack([trial.likeness for trial in shadows])  # (runs, canaries, features)
    joined = np.stack([trial.joined for trial in shadows])
    usual = known.mean(axis=0)
    centred = known - usual
    signal = centred[joined].mean(axis=0) - centred[~joined].mean(axis=0)
    weights = np.maximum(signal, 0.0) / (centred.var(axis=(0, 1)) + 1e-3)  # a planted row can only make likes likelier
    scores: Floats = (np.stack([trial.likeness for trial in victims]) - usual) @ weights
    return scores
