"""Networks and optimizers as named arrays, the only form in which they are sent or stored.

A parameter's array is called after the network's part that holds it: `generator/first.linear.weight`. Parameters only:
BatchNorm's running statistics are means over made-up rows that no noise covers, and whoever draws rows can make them
anew. Models of earlier versions hold them as well; they are passed over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Adam

from synth.errors import ProtocolError
from synth.interface import Arrays
from synth.messages.asked import Form, checked

LARGEST_WEIGHT = 2.0**10  # no training comes near; far larger ones push a network to the edges of float32
MOMENTS = ("step", "exp_avg", "exp_avg_sq")


def _named(network: nn.Module) -> dict[str, nn.Parameter]:
    return {name.replace(".", "/", 1): parameter for name, parameter in network.named_parameters()}


def to_arrays(network: nn.Module) -> Arrays:
    return {name: parameter.detach().cpu().numpy().copy() for name, parameter in _named(network).items()}


def forms(network: nn.Module) -> dict[str, Form]:
    """What the array of every parameter must be."""
    return {name: Form(tuple(parameter.shape), np.float32) for name, parameter in _named(network).items()}


def load(network: nn.Module, arrays: Arrays) -> None:
    """The inverse of `to_arrays`; refuses weights that are missing or of another shape."""
    for name, parameter in _named(network).items():
        found = arrays.get(name)
        if found is None or found.shape != tuple(parameter.shape):
            raise ProtocolError(f"'{name}' is missing or has the wrong shape; both sides need the same plan.")
        parameter.data.copy_(torch.from_numpy(np.asarray(found, dtype=np.float32)))


def require_in_range(arrays: Arrays, expected: Mapping[str, Form]) -> None:
    """Refuse an ask's weights that no training makes."""
    for name, form in expected.items():
        if np.abs(checked(arrays, name, form)).max(initial=0.0) > LARGEST_WEIGHT:
            raise ProtocolError(f"array '{name}' of an ask holds a weight beyond ±{LARGEST_WEIGHT:g}")


def set_gradient(module: nn.Module, gradient: Sequence[Tensor]) -> None:
    """Hand the optimizer a gradient, by parameter."""
    for parameter, slope in zip(module.parameters(), gradient, strict=True):
        parameter.grad = slope


def moments_to_arrays(name: str, adam: Adam) -> Arrays:
    state = adam.state_dict()["state"]
    return {f"{name}/{i}/{key}": state[i][key].cpu().numpy().copy() for i in state for key in MOMENTS}


def load_moments(adam: Adam, name: str, arrays: Arrays) -> None:
    """Nothing stored means a first round: Adam starts from zero."""
    count = len(adam.param_groups[0]["params"])
    if f"{name}/0/step" not in arrays:
        return
    state = {i: {key: torch.from_numpy(arrays[f"{name}/{i}/{key}"].copy()) for key in MOMENTS} for i in range(count)}
    adam.load_state_dict({"state": state, "param_groups": adam.state_dict()["param_groups"]})
