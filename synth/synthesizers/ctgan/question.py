"""A training ask, read strictly: the encoding first, for it decides how large the networks must be; then all the rest.

The number of modes of a numeric column was chosen by the aggregator from the released histogram, so it is the one size
that does not follow from the plan. It is bounded by the plan's most modes, and everything else follows from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch

from synth.encoding.features import PREFIX, Features
from synth.encoding.mixtures import COMPONENTS
from synth.encoding.scales import Floats
from synth.errors import ProtocolError
from synth.interface import Arrays, Ask
from synth.messages.asked import Form, checked, distribution, require_names
from synth.plan import Plan
from synth.statistics.similarity import share_limits
from synth.synthesizers.ctgan.settings import CtganSettings
from synth.synthesizers.ctgan.weights import Networks

FREQUENCIES, SHARES = "frequencies/", "shares"
LARGEST_WEIGHT = 2.0**10  # no training comes near; far larger ones push a network to the edges of float32
ROUNDING = 1e-9  # of a share at its limit


@dataclass(frozen=True, eq=False)
class Question:
    """What a party needs of an ask besides the weights, which are in the ask."""

    features: Features
    frequencies: dict[str, Floats]  # released shares of each discrete column's labels
    share: float  # this party's weight in the average


def read(plan: Plan, settings: CtganSettings, ask: Ask, party: str) -> Question:
    """The whole ask but its options; refuses anything that training could not start from."""
    features = _features(plan, ask.arrays)
    forms = weights(settings, features)
    discrete = {FREQUENCIES + span.column: span for span in features.discrete_spans}
    shares = [SHARES] if settings.weighting == "similarity" else []
    require_names(ask.arrays, [*(PREFIX + name for name in plan.table.numeric), *discrete, *forms, *shares])
    for name, form in forms.items():
        if np.abs(checked(ask.arrays, name, form)).max() > LARGEST_WEIGHT:
            raise ProtocolError(f"array '{name}' of an ask holds a weight beyond ±{LARGEST_WEIGHT:g}")
    frequencies = {span.column: distribution(ask.arrays, name, span.width) for name, span in discrete.items()}
    return Question(features, frequencies, _share(plan, settings, ask, party))


def _features(plan: Plan, arrays: Arrays) -> Features:
    for name in plan.table.numeric:
        _check_mixture(arrays, PREFIX + name)
    return Features.from_arrays(plan.table, arrays)


def _check_mixture(arrays: Arrays, name: str) -> None:
    found = arrays.get(name)
    modes = found.shape[1] if found is not None and found.ndim == 2 else 0
    if not 1 <= modes <= COMPONENTS:
        raise ProtocolError(f"array '{name}' of an ask should hold a mixture of 1 to {COMPONENTS} modes")
    weights, _, stds = checked(arrays, name, Form((3, modes)))
    if weights.min() <= 0 or stds.min() <= 0:
        raise ProtocolError(f"array '{name}' of an ask holds a mode without weight or width")


def weights(settings: CtganSettings, features: Features) -> dict[str, Form]:
    """The form of every weight."""
    return _weights(settings, features.condition_width, features.width)


@lru_cache(maxsize=8)
def _weights(settings: CtganSettings, condition_width: int, row_width: int) -> dict[str, Form]:
    with torch.random.fork_rng(devices=[]):  # fresh weights are drawn, and their values forgotten
        networks = Networks.sized(settings, condition_width, row_width)
    return {name: Form(array.shape, np.float32) for name, array in networks.to_arrays().items()}


def _share(plan: Plan, settings: CtganSettings, ask: Ask, party: str) -> float:
    """This party's weight, if no party's is so large or so small that the sum would be one party's update."""
    if settings.weighting == "rows":
        return plan.share(party)
    names = [member.name for member in plan.parties]
    shares, (low, high) = distribution(ask.arrays, SHARES, len(names)), share_limits(plan)
    if (shares < low * (1 - ROUNDING)).any() or (shares > high * (1 + ROUNDING)).any():
        raise ProtocolError("weighting 'similarity' gives a party more or less weight than the plan's profile allows")
    return float(shares[names.index(party)])
