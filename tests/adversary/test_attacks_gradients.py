"""An aggregator that chooses weights so that a row's gradient is decided by rounding: one row must still move one.

Matrix products add a row's terms in an order that depends on its place in the batch. With scores of nothing but
rounding error, 200 of 400 rows changed sides when one row was put in front of them: the sum moved by 200 clip
norms where 1 was promised. Nothing here is random but weights from fixed seeds.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from synth.privacy import dpsgd
from synth.privacy.dpsgd import LATTICE, ClippedSum, lattice_sensitivity
from synth.privacy.row_by_row import linear
from synth.synthesizers.ctgan.networks import Discriminator

ROW, CONDITION = 20, 10


@pytest.mark.parametrize("width", [3, 5, 7, 32, 33])
def test_one_row_in_front_moves_the_sum_by_one_clip_norm(width: int) -> None:
    for seed in range(30):
        critic, row = _undecided(width, seed)
        rows = torch.stack([row, torch.zeros(ROW + CONDITION)]).repeat(200, 1)
        with_one_more = torch.cat([torch.zeros(1, ROW + CONDITION), rows])
        moved = (_clipped(critic, rows) - _clipped(critic, with_one_more)).norm()
        assert LATTICE * float(moved) <= lattice_sensitivity(0)


@pytest.mark.parametrize(("inputs", "outputs"), [(30, 7), (7, 7), (30, 3), (201, 2), (33, 1), (64, 32)])
def test_a_row_has_the_same_output_and_slope_wherever_it_stands(inputs: int, outputs: int) -> None:
    """Exact equality over 64 places, 63 of which a library's product may treat otherwise."""
    generator = torch.Generator().manual_seed(0)
    weight = 1000 * torch.randn(outputs, inputs, generator=generator)
    alike = torch.randn(1, inputs, generator=generator).repeat(64, 1).requires_grad_()
    found = linear(alike, weight, torch.zeros(outputs))
    (slopes,) = torch.autograd.grad(found.square().sum(), alike)
    assert bool((found == found[0]).all())
    assert bool((slopes == slopes[0]).all())
    assert torch.allclose(found, F.linear(alike, weight), rtol=1e-3, atol=1.0)


@pytest.mark.parametrize("inputs", [1, 5, 300, 5000])
def test_a_product_has_one_value_in_any_order_of_its_terms(inputs: int) -> None:
    """The reason for it: sums are of integers that float64 holds exactly, of huge and of tiny numbers alike."""
    generator = torch.Generator().manual_seed(inputs)
    spread = torch.randint(-100, 60, (inputs,), generator=generator).float().exp2()
    rows, weight = (torch.randn(9, inputs, generator=generator) for _ in range(2))
    order = torch.randperm(inputs, generator=generator)
    for scale in (torch.ones(inputs), spread):
        found = linear(rows * scale, weight / scale, None)
        assert bool((found == linear((rows * scale)[:, order], (weight / scale)[:, order], None)).all())


def test_a_row_without_a_number_spoils_no_other() -> None:
    rows = torch.ones(64, 5)
    alone = linear(rows, torch.ones(3, 5), None)
    rows[7] = torch.tensor([torch.nan, torch.inf, 1.0, 0.0, -torch.inf])
    assert bool((linear(rows, torch.ones(3, 5), None)[8:] == alone[8:]).all())
    assert not bool(linear(rows, torch.ones(3, 5), None)[7].isfinite().any())


def test_a_batch_beyond_the_bound_of_large_pieces_is_summed_in_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal above so many rows would depend on the number of rows, which is data."""
    critic, _ = _undecided(8, 0)
    rows = torch.rand(1000, ROW + CONDITION, generator=torch.Generator().manual_seed(1))
    before = _clipped(critic, rows)
    monkeypatch.setattr(dpsgd, "LARGE_BATCH", 500)
    assert float((_clipped(critic, rows) - before).norm()) < 1e-9


def _clipped(critic: Discriminator, rows: Tensor) -> Tensor:
    total = ClippedSum(critic, l2_clip_norm=0.1)
    return total(lambda row, condition: F.softplus(-critic(row, condition)), rows[:, :ROW], rows[:, ROW:])


def _undecided(width: int, seed: int) -> tuple[Discriminator, Tensor]:
    """Weights within the range that parties accept, and a row whose score cancels to rounding error."""
    generator = torch.Generator().manual_seed(seed)
    critic = Discriminator(row_width=ROW, condition_width=CONDITION, width=width, dropout=0.0, pac=1)
    with torch.no_grad():
        for parameter in critic.parameters():
            parameter.copy_((torch.rand(parameter.shape, generator=generator) - 0.5) * 2000)
        row = torch.rand(ROW + CONDITION, generator=generator)
        hidden = F.leaky_relu(critic.first(row.repeat(64, 1)), 0.2)
        places = F.leaky_relu(critic.second(hidden), 0.2).double()
        middle, head = (places[0] + places[1]) / 2, critic.head.weight[0].double()
        for _ in range(50):
            head = (head - (head @ middle) / (middle @ middle) * middle).float().double()
        critic.head.weight[0] = head.float()
        critic.head.bias.zero_()
    return critic, row
