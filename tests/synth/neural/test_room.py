"""What every neural family gets from the room, on a family of one Linear layer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from synth.encoding.features import Features
from synth.encoding.records import Codec
from synth.errors import PlanError
from synth.neural.drawing import Codes, drawn
from synth.neural.model import RowLossModel
from synth.neural.regime import Published, Regime
from synth.neural.released import Released
from synth.neural.schedule import Schedule
from synth.neural.server_settings import ServerSettings
from synth.neural.streams import Stream
from synth.neural.synthesizer import NeuralSynthesizer
from synth.plan import Plan
from tests.inline import Inline, statistics_of
from tests.small import plan_of, table

REGIME = Regime(rounds=2, steps_per_round=2, sample_rate=0.2, l2_clip_norm=1.0)


class Shares(nn.Module):
    """The same guess for every row."""

    def __init__(self, features: Features) -> None:
        super().__init__()
        self.guess = nn.Linear(1, features.width)


class Independent(RowLossModel[Shares]):
    learning_rate = 0.05

    def network(self, features: Features) -> Shares:
        return Shares(features)

    def losses(self, network: Shares, rows: Tensor, stream: Stream) -> Tensor:
        return (network.guess(rows.new_ones(len(rows), 1)) - rows).square().sum(1)

    def draw(
        self, network: Shares, released: Released, count: int, codes: Codes, stream: Stream
    ) -> tuple[Tensor, Tensor]:
        raw = network.guess(torch.ones(count, 1))
        return drawn(raw, released.features.spans, codes, stream), torch.zeros(count)


def plan() -> Plan:
    """Its own settings belong to another family; of them the room reads nothing but the name."""
    return plan_of({"name": "ctgan"})


def world(seed: int = 1) -> Inline:
    codec = Codec(plan().table)
    return Inline(plan(), {p.name: codec.encode(table(p.rows, n)) for n, p in enumerate(plan().parties)}, seed)


def test_the_state_of_the_server_optimiser_survives_a_restart() -> None:
    """Three synthesizers: unbroken, and stopped after the first round and restored."""

    class Adaptive(Independent):
        def __init__(self, plan: Plan, regime: Regime) -> None:
            super().__init__(plan, replace(regime, server=ServerSettings(optimizer="fedadam", learning_rate=0.1)))

    def begun(federation: Inline) -> NeuralSynthesizer:
        synthesizer = NeuralSynthesizer(Adaptive(plan(), REGIME))
        synthesizer.begin(statistics_of(federation), 1)
        return synthesizer

    first = world()
    unbroken = begun(first)
    first.drive(unbroken)
    second = world()
    stopped = begun(second)
    second.drive(stopped, most=1)
    resumed = NeuralSynthesizer(Adaptive(plan(), REGIME))
    resumed.restore(stopped.state())
    assert any(name.startswith("server/mean/") for name in stopped.state())
    ask = resumed.ask(1)
    assert ask is not None
    resumed.absorb(second.total(resumed, ask))
    np.testing.assert_equal(resumed.state(), unbroken.state())


def test_a_family_without_a_published_protocol_has_no_faithful_profile() -> None:
    with pytest.raises(PlanError, match="faithful"):
        Independent(plan_of({"name": "ctgan"}, profile="faithful"), REGIME)


def test_a_rate_that_hides_hardly_anybody_is_refused_under_privacy() -> None:
    with pytest.raises(PlanError, match=r"sample_rate 0\.6"):
        Schedule(plan(), replace(REGIME, sample_rate=0.6))
    Schedule(plan_of({"name": "ctgan"}, privacy="none"), replace(REGIME, sample_rate=0.6))


@pytest.mark.parametrize(
    ("changes", "faithful", "need"),
    [
        ({}, False, "histogram"),
        ({"weighting": "similarity"}, False, "gathered histograms"),
        ({"published": Published(2.0, "a gap", "mixture rounds")}, True, "mixture rounds"),
        ({"published": Published(2.0, "a gap", "mixture rounds")}, False, "histogram"),
    ],
)
def test_a_regime_declares_what_it_needs(changes: dict[str, Any], faithful: bool, need: str) -> None:
    declared = replace(REGIME, **changes).declared(faithful=faithful)
    assert (declared.asks, declared.answers, declared.statistics) == (2, "updates", need)
    assert declared.sampling.as_published == faithful
