"""A training ask, read strictly: the encoding first, for it decides how large the networks must be; then all the rest.

The number of modes of a numeric column was chosen by the aggregator from the released histogram, so it is the one size
that does not follow from the plan. It is bounded by the plan's most modes, or bins where numbers are in bins, and
everything else follows from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from synth.encoding.features import CUTS, PREFIX, Features
from synth.encoding.mixtures import COMPONENTS
from synth.encoding.scales import Floats
from synth.errors import ProtocolError
from synth.interface import Arrays, Ask
from synth.messages.asked import Form, checked, distribution, require_names
from synth.neural.regime import Weighting
from synth.neural.weights import require_in_range
from synth.plan import Plan
from synth.statistics.similarity import share_limits

FREQUENCIES, SHARES = "frequencies/", "shares"
ROUNDING = 1e-9  # of a share at its limit

FormsOf = Callable[[Features], dict[str, Form]]  # of every weight, under an encoding


@dataclass(frozen=True, eq=False)
class Question:
    """What a party needs of an ask besides the weights, which are in the ask."""

    features: Features
    frequencies: dict[str, Floats]  # released shares of each discrete column's labels
    share: float  # this party's weight in the average


def read(plan: Plan, weighting: Weighting, bins: int | None, forms_of: FormsOf, ask: Ask, party: str) -> Question:
    """The whole ask but its options; refuses anything that training could not start from."""
    features = asked_features(plan, bins, ask.arrays)
    forms = forms_of(features)
    discrete = {FREQUENCIES + span.column: span for span in features.discrete_spans}
    shares = [SHARES] if weighting == "similarity" else []
    require_names(ask.arrays, [*features.to_arrays(), *discrete, *forms, *shares])
    require_in_range(ask.arrays, forms)
    frequencies = {span.column: distribution(ask.arrays, name, span.width) for name, span in discrete.items()}
    return Question(features, frequencies, _share(plan, weighting, ask, party))


def asked_features(plan: Plan, bins: int | None, arrays: Arrays) -> Features:
    """The encoding of an ask, with no more bins or modes than the plan allows."""
    for name in plan.modelled.numeric:
        if bins is None:
            _check_mixture(arrays, PREFIX + name)
        else:
            _check_cuts(arrays, CUTS + name, bins)
    kinds = PREFIX if bins is None else CUTS
    return Features.from_arrays(
        plan.modelled, {name: array for name, array in arrays.items() if name.startswith(kinds)}
    )


def _check_cuts(arrays: Arrays, name: str, bins: int) -> None:
    found = arrays.get(name)
    if found is None or found.ndim != 1 or len(found) >= bins:
        raise ProtocolError(f"array '{name}' of an ask should hold the cuts of at most {bins} bins")
    if (np.diff(checked(arrays, name, Form(found.shape))) <= 0).any():
        raise ProtocolError(f"array '{name}' of an ask holds cuts that do not rise")


def _check_mixture(arrays: Arrays, name: str) -> None:
    found = arrays.get(name)
    modes = found.shape[1] if found is not None and found.ndim == 2 else 0
    if not 1 <= modes <= COMPONENTS:
        raise ProtocolError(f"array '{name}' of an ask should hold a mixture of 1 to {COMPONENTS} modes")
    weights, _, stds = checked(arrays, name, Form((3, modes)))
    if weights.min() <= 0 or stds.min() <= 0:
        raise ProtocolError(f"array '{name}' of an ask holds a mode without weight or width")


def _share(plan: Plan, weighting: Weighting, ask: Ask, party: str) -> float:
    """This party's weight, if no party's is so large or so small that the sum would be one party's update."""
    if weighting == "rows":
        return plan.share(party)
    names = [member.name for member in plan.parties]
    shares, (low, high) = distribution(ask.arrays, SHARES, len(names)), share_limits(plan)
    if (shares < low * (1 - ROUNDING)).any() or (shares > high * (1 + ROUNDING)).any():
        raise ProtocolError("weighting 'similarity' gives a party more or less weight than the plan's profile allows")
    return float(shares[names.index(party)])
