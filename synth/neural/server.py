"""Server optimisers: what the aggregator makes of the parties' average change. Pure functions of released numbers.

`(weights, change, state) → (weights, state)`: the state is arrays like the weights, {} at first, and is stored with
the model, so that a resumed run continues bit by bit. The adaptive ones are Reddi et al., "Adaptive Federated
Optimization" (ICLR 2021), Algorithm 2: the change is a negative gradient, without bias correction.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from synth.interface import Array, Arrays

ServerOptimizer = Callable[[Arrays, Arrays, Arrays], tuple[Arrays, Arrays]]
MEAN, SPREAD = "mean/", "spread/"


def fed_avg(weights: Arrays, change: Arrays, state: Arrays) -> tuple[Arrays, Arrays]:
    """The average of the parties' weights (McMahan et al. 2017)."""
    return {name: (value + change[name]).astype(np.float32) for name, value in weights.items()}, state


def fed_adam(learning_rate: float, beta: float = 0.9, beta2: float = 0.99, floor: float = 1e-3) -> ServerOptimizer:
    """`floor` is the paper's τ: how small a change is still told from none."""

    def spread(before: Array, squared: Array) -> Array:
        return beta2 * before + (1 - beta2) * squared

    return partial(_adaptive, spread, learning_rate, beta, floor)


def fed_yogi(learning_rate: float, beta: float = 0.9, beta2: float = 0.99, floor: float = 1e-3) -> ServerOptimizer:
    """Like FedAdam, but the spread moves by the newest square alone, whatever it was before: it forgets slowly."""

    def spread(before: Array, squared: Array) -> Array:
        moved: Array = before - (1 - beta2) * squared * np.sign(before - squared)
        return moved

    return partial(_adaptive, spread, learning_rate, beta, floor)


def running_average(average: Arrays, weights: Arrays, memory: float) -> Arrays:
    """The mean over rounds that rows are drawn from, each older round counting `memory` times the next."""
    return {name: (memory * old + (1 - memory) * weights[name]).astype(np.float32) for name, old in average.items()}


def _adaptive(
    spread_of: Callable[[Array, Array], Array],
    learning_rate: float,
    beta: float,
    floor: float,
    weights: Arrays,
    change: Arrays,
    state: Arrays,
) -> tuple[Arrays, Arrays]:
    moved: Arrays = {}
    kept: Arrays = {}
    for name, value in weights.items():
        mean = beta * state.get(MEAN + name, np.zeros_like(change[name])) + (1 - beta) * change[name]
        spread = spread_of(state.get(SPREAD + name, np.full_like(change[name], floor**2)), change[name] ** 2)
        moved[name] = (value + learning_rate * mean / (np.sqrt(spread) + floor)).astype(np.float32)
        kept |= {MEAN + name: mean, SPREAD + name: spread}
    return moved, kept
