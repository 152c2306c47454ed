"""`vertigan` as published: gradients of pairs with their penalty, and a run by columns whose ε is nominal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from synth.certificate.linkage import linkage_record
from synth.encoding.records import Codec
from synth.errors import PlanError
from synth.privacy.events import SampledGaussian, Unaccounted
from synth.synthesizers.registry import build
from synth.synthesizers.vertigan.published import PENALTY, critic, pair_gradients
from tests.linkage.consortium import Consortium, carried_out
from tests.small import plan_of
from tests.vertical import COLUMNS, plan_by_columns, tables_by_columns, whole_table

SMALL: dict[str, Any] = {"name": "vertigan", "published": {"rounds": 2, "critic_steps": 2, "batch": 10}}


def test_gradients_of_pairs_are_those_of_a_loop() -> None:
    torch.manual_seed(0)
    network, real, fake, mixed = critic(6), torch.rand(4, 6), torch.rand(4, 6), torch.rand(4)
    found = pair_gradients(network, real, fake, mixed)
    for pair in range(4):
        between = (mixed[pair] * real[pair] + (1 - mixed[pair]) * fake[pair])[None].requires_grad_()
        (steep,) = torch.autograd.grad(network(between).sum(), between, create_graph=True)
        penalty = PENALTY * (steep.norm() - 1).square()
        loss = network(real[pair][None]).sum() - network(fake[pair][None]).sum() + penalty
        by_hand = torch.autograd.grad(loss, list(network.parameters()))
        for one, other in zip(found, by_hand, strict=True):
            torch.testing.assert_close(one[pair], other, rtol=1e-4, atol=1e-5)


def test_a_run_as_published_and_its_nominal_charge(tmp_path: Path) -> None:
    plan = plan_by_columns(COLUMNS, 80, synthesizer=SMALL, profile="faithful")
    outcome = carried_out(Consortium(plan, tables_by_columns(whole_table(80), COLUMNS), tmp_path))
    rows = Codec(plan.table).decode(outcome.model.sample(10, 1))
    assert len(rows) == 10
    steps, gap = outcome.model.planned_costs("hospital")[0]
    assert isinstance(steps, SampledGaussian)
    assert (steps.sample_rate, steps.steps) == (10 / 80, 2)
    assert isinstance(gap, Unaccounted)
    record = linkage_record(plan)
    assert record is not None
    assert record.substitution_epsilon is None


def test_it_was_published_for_columns_only() -> None:
    with pytest.raises(PlanError):
        build(plan_of(SMALL, profile="faithful"))
