"""`gswgan` as published: shards that stay apart, critics that stay at home, and an ε that says what it is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from synth.encoding.records import Codec
from synth.neural.streams import Stream
from synth.privacy.events import SampledGaussian, Unaccounted
from synth.synthesizers.gswgan.published import CLIP, PublishedGswgan, Wasserstein
from tests.inline import Inline, trained
from tests.small import plan_of, table

GAN = {"critics": 4, "steps": 3, "rows": 8, "critic_steps": 2, "warm_start_steps": 1}


def world() -> Inline:
    settings: dict[str, Any] = {"name": "gswgan", "published": GAN}
    plan = plan_of(settings, rows=60, profile="faithful", privacy={"epsilon": 50.0, "delta": 1e-5})
    codec = Codec(plan.table)
    return Inline(plan, {p.name: codec.encode(table(p.rows, n)) for n, p in enumerate(plan.parties)}, seed=1)


def test_a_run_as_published_keeps_its_critics_and_charges_what_is_nominal() -> None:
    federation = world()
    synthesizer = trained(federation)
    rows = Codec(federation.plan.table).decode(synthesizer.sample(20, 1, {"sex": "f"}))
    assert set(rows["sex"]) == {"f"}
    steps, gap = synthesizer.planned_costs("party-1")[0]
    assert isinstance(steps, SampledGaussian)
    assert (steps.sample_rate, steps.noise_multiplier, steps.steps) == (0.25, 1.07, 8)
    assert isinstance(gap, Unaccounted)
    assert "as run ε is" in gap.what
    for answers in federation.answers[1:]:
        assert all(set(answer.arrays) == {"slopes"} for answer in answers.values())
    kept = {name.split("/")[0] for name in federation.local["party-1"] if name.startswith("critic-")}
    assert 1 <= len(kept) <= 3  # one is drawn in a step, and no other one changes


def test_shards_are_disjoint_and_hold_everybody() -> None:
    federation = world()
    synthesizer = trained(federation)
    assert isinstance(synthesizer, PublishedGswgan)
    data, features = federation.data["party-1"], synthesizer.released.features
    seed = federation.local["party-1"]["shards"]
    sizes = [len(synthesizer._shard(data, features, seed, drawn)) for drawn in range(4)]
    assert sum(sizes) == len(data)


def test_slopes_are_those_of_the_critic_clipped_row_by_row() -> None:
    """A linear critic, whose slope is known."""
    network = nn.Sequential(nn.Linear(3, 1))
    with torch.no_grad():
        network[0].weight.copy_(torch.tensor([[3.0, 0.0, 4.0]]))
    step = Wasserstein(network, torch.optim.Adam(network.parameters()), Stream(0))
    slopes = step.slopes(torch.zeros(2, 3))
    np.testing.assert_allclose(slopes.numpy(), [[-0.6 * CLIP, 0.0, -0.8 * CLIP]] * 2, atol=1e-6)
