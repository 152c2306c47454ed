"""Networks and optimizers as named arrays, the only form in which they are sent or stored.

Parameters only: BatchNorm's running statistics are means over made-up rows that no noise covers, and whoever draws
rows can make them anew. Models of earlier versions hold them as well; they are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.optim import Adam

from synth.encoding.features import Features
from synth.errors import ProtocolError
from synth.interface import Arrays
from synth.synthesizers.ctgan.networks import Discriminator, Generator
from synth.synthesizers.ctgan.settings import CtganSettings

GENERATOR, DISCRIMINATOR = "generator/", "discriminator/"
MOMENTS = ("step", "exp_avg", "exp_avg_sq")


@dataclass
class Networks:
    """The pair that is trained, and its form as arrays."""

    generator: Generator
    discriminator: Discriminator

    @classmethod
    def of(cls, settings: CtganSettings, features: Features) -> Networks:
        """Fresh weights from torch's generator."""
        return cls.sized(settings, features.condition_width, features.width)

    @classmethod
    def sized(cls, settings: CtganSettings, condition_width: int, row_width: int) -> Networks:
        widths = {"condition_width": condition_width, "row_width": row_width}
        g, d = settings.generator, settings.discriminator
        return cls(
            Generator(noise_width=g.noise_width, width=g.width, **widths),
            Discriminator(width=d.width, dropout=d.dropout, pac=d.pac, **widths),
        )

    @classmethod
    def loaded(cls, settings: CtganSettings, features: Features, arrays: Arrays) -> Networks:
        """The networks with these weights; torch's generator is left as it was."""
        with torch.random.fork_rng(devices=[]):
            networks = cls.of(settings, features)
        networks.load(arrays)
        return networks

    def to_arrays(self) -> Arrays:
        return to_arrays(GENERATOR, self.generator) | to_arrays(DISCRIMINATOR, self.discriminator)

    def load(self, arrays: Arrays) -> None:
        load(self.generator, GENERATOR, arrays)
        load(self.discriminator, DISCRIMINATOR, arrays)


def to_arrays(prefix: str, module: nn.Module) -> Arrays:
    return {prefix + name: tensor.detach().numpy().copy() for name, tensor in module.named_parameters()}


def load(module: nn.Module, prefix: str, arrays: Arrays) -> None:
    """The inverse of `to_arrays`; refuses weights that are missing or of another shape."""
    for name, tensor in module.named_parameters():
        found = arrays.get(prefix + name)
        if found is None or found.shape != tuple(tensor.shape):
            raise ProtocolError(f"'{prefix + name}' is missing or has the wrong shape; both sides need the same plan.")
        tensor.data.copy_(torch.from_numpy(np.asarray(found, dtype=np.float32)))


def moments_to_arrays(prefix: str, adam: Adam) -> Arrays:
    state = adam.state_dict()["state"]
    return {f"{prefix}{i}/{key}": state[i][key].numpy().copy() for i in state for key in MOMENTS}


def load_moments(adam: Adam, prefix: str, arrays: Arrays) -> None:
    """Nothing stored means a first round: Adam starts from zero."""
    count = len(adam.param_groups[0]["params"])
    if f"{prefix}0/step" not in arrays:
        return
    state = {i: {key: torch.from_numpy(arrays[f"{prefix}{i}/{key}"].copy()) for key in MOMENTS} for i in range(count)}
    adam.load_state_dict({"state": state, "param_groups": adam.state_dict()["param_groups"]})
