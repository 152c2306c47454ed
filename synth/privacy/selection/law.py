"""What a vote can tell, exactly: the law of a choice, the pair of neighbours it tells apart best, and secret sampling.

A client would vote for a set S of k among d coordinates. It names h of them, J, with probability e^(ε [|S ∩ J| ≥ t])
/ Ω (Ω is the same for every S), so under two sets S and S' the log ratio of J is ε, 0 or -ε. It is ε where J holds t
of S and fewer of S': in proportion to how many such J there are. These are most where S and S' share least: moving
one element of S' out of S into S adds (A' - A)(B' - B) ≥ 0 sets that hold t of both, where A ≤ A' and B ≤ B' say
whether the rest of J, without and with one more, holds t of S and of S'. So the pair with the least overlap dominates
every other, at every level of the hockey stick, and it is one that occurs. MagRR's bit is randomised response and
multiplies the law.

Sampling: m of n clients, without replacement, secretly, and only the sum of their votes is seen. Adding or removing
what belongs to one unit changes one client (an empty one votes too): a substitution. For these δ'(1 + q (e^l - 1)) ≤
q δ(e^l) with q = m / n (Balle, Barthe and Gaboardi, NeurIPS 2018, sampling without replacement). The hockey stick of
the law above is Σ c_l (e^l - α)₊ for α ≥ 1, c_l the smaller neighbour's probability of loss l; so that of the sample
is at most Σ c_l (1 + q (e^l - 1) - α)₊: the same probabilities c_l at the losses log(1 + q (e^l - 1)). The relation
is symmetric, which gives α < 1.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

if TYPE_CHECKING:
    from synth.privacy.losses import Floats
    from synth.privacy.selection.event import Votes

DRAW_BITS = 1024
DRAWING_ERROR = 2.0**-900  # total variation: a draw's bounds are off by less than 2^-990, and there are few
DIGITS = 320  # of e^ε in them


def whole_law(event: Votes) -> tuple[Floats, Floats]:
    """Losses and their probabilities under the first of two neighbours, of one client's vote and bit after sampling;
    the second's are those of the losses' negatives, since the law is its own mirror."""
    losses, smaller = _positive(event)
    sampled = np.log1p(event.sample_rate * np.expm1(losses))
    either = smaller * (1 + np.exp(sampled))
    found = np.concatenate([-sampled, [0.0], sampled])
    return found, np.concatenate([smaller, [max(1 - either.sum(), 0.0)], smaller * np.exp(sampled)])


@lru_cache(maxsize=256)
def _positive(event: Votes) -> tuple[Floats, Floats]:
    """The losses above 0 of one client's vote and bit, and the smaller neighbour's probability of each."""
    apart, holding = apart_and_holding(event.dimensions, event.top, event.chosen, event.threshold)
    less = apart / (1 + math.expm1(event.epsilon) * holding)
    choice = {event.epsilon: less, 0.0: 1 - less * (1 + math.exp(event.epsilon))}
    choice[-event.epsilon] = less * math.exp(event.epsilon)
    bit = {0.0: 1.0}
    if event.bit_epsilon:
        flipped = 1 / (1 + math.exp(event.bit_epsilon))
        bit = {event.bit_epsilon: flipped, -event.bit_epsilon: 1 - flipped}
    both = [(one + other, p * q) for one, p in choice.items() for other, q in bit.items()]
    found = np.array([each for each in both if each[0] > 0])
    return found[:, 0], found[:, 1]


@lru_cache(maxsize=1024)
def apart_and_holding(dimensions: int, top: int, chosen: int, threshold: int) -> tuple[float, float]:
    """Shares of all sets J: that hold `threshold` of S and fewer of the S' that shares least with it; that hold
    `threshold` of S."""
    shared = max(0, 2 * top - dimensions)
    own, rest = top - shared, dimensions - 2 * top + shared
    common, mine, others = ([math.comb(size, n) for n in range(chosen + 1)] for size in (shared, own, rest))
    apart = sum(
        common[c] * mine[a] * mine[b] * others[chosen - a - b - c]
        for c in range(min(shared, chosen) + 1)
        for a in range(max(0, threshold - c), chosen - c + 1)
        for b in range(min(threshold - c, chosen - a - c + 1))
    )
    overlaps = _overlaps(dimensions, top, chosen)
    every = sum(overlaps)
    return float(Fraction(apart, every)), float(Fraction(sum(overlaps[threshold:]), every))


def _overlaps(dimensions: int, top: int, chosen: int) -> list[int]:
    """How many sets hold 0, 1, … of the `top`."""
    return [math.comb(top, n) * math.comb(dimensions - top, chosen - n) for n in range(chosen + 1)]


@lru_cache(maxsize=64)
def overlap_bounds(dimensions: int, top: int, chosen: int, threshold: int, epsilon: float) -> tuple[int, ...]:
    """Upper ends of 0, 1, … on a line of 2^DRAW_BITS: where a uniform draw falls, so many of the `top` a vote holds."""
    with localcontext() as precise:
        precise.prec = DIGITS
        likelier = Fraction(Decimal(epsilon).exp())
    weights = [
        count * (likelier if held >= threshold else 1) for held, count in enumerate(_overlaps(dimensions, top, chosen))
    ]
    whole, upto, ends = sum(weights), Fraction(0), []
    for weight in weights:
        upto += weight
        ends.append(int((upto * 2**DRAW_BITS) / whole))
    return tuple(ends)


def held_in(draw: int, bounds: tuple[int, ...]) -> int:
    return min(bisect_right(bounds, draw), len(bounds) - 1)


def expected_held(dimensions: int, top: int, chosen: int, threshold: int, epsilon: float) -> float:
    """How many of a vote's coordinates are the client's own, on average (SignDS-FL's 3.12)."""
    held = np.arange(chosen + 1)
    logs = _log_choose(top, held) + _log_choose(dimensions - top, chosen - held) + epsilon * (held >= threshold)
    return float((held * np.exp(logs - logsumexp(logs))).sum())


def best_threshold(dimensions: int, top: int, chosen: int, epsilon: float) -> int:
    """The threshold with which most of a vote are the client's own (3.13)."""
    return max(range(1, chosen + 1), key=lambda threshold: expected_held(dimensions, top, chosen, threshold, epsilon))


@lru_cache(maxsize=1024)
def most_chosen(dimensions: int, top: int, epsilon: float, precision: float) -> int:
    """The most coordinates of which on average more than that share are the client's own (FedSTDG's 5.6), before one
    more would make it less; 1 where even a single one is not."""
    chosen, most = 1, min(top, dimensions - top)
    while chosen < most and _precision(dimensions, top, chosen + 1, epsilon) > precision:
        chosen += 1
    return chosen


def _precision(dimensions: int, top: int, chosen: int, epsilon: float) -> float:
    threshold = best_threshold(dimensions, top, chosen, epsilon)
    return expected_held(dimensions, top, chosen, threshold, epsilon) / chosen


def _log_choose(size: int, count: NDArray[np.int64]) -> Floats:
    found: Floats = gammaln(size + 1) - gammaln(count + 1) - gammaln(size - count + 1)
    return found
