"""The networks and their arrays: sizes of the specification, what comes out, what is stored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import Adam

from synth.encoding.features import Span
from synth.errors import ProtocolError
from synth.neural.drawing import drawn
from synth.neural.streams import Stream
from synth.neural.weights import load, load_moments, moments_to_arrays, to_arrays
from synth.synthesizers.ctgan.networks import Discriminator, Generator, Residual, activate

SPANS = [Span("x", "alpha", 0, 1), Span("x", "mode", 1, 3), Span("c", "label", 4, 2)]


def parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_parameter_counts_of_the_published_sizes_on_adult() -> None:
    """Specification, section 5.1: n_cond = 104, d = 170."""
    widths = {"condition_width": 104, "row_width": 170}
    assert parameters(Generator(noise_width=128, width=256, **widths)) == 312_506
    assert parameters(Discriminator(width=256, dropout=0.5, pac=1, **widths)) == 136_449


def test_skip_connections_concatenate() -> None:
    block, x = Residual(inputs=5, width=7), torch.randn(4, 5)
    out = block(x)
    assert out.shape == (4, 12)
    assert torch.equal(out[:, 7:], x)
    assert Generator(noise_width=3, condition_width=2, width=8, row_width=6)(torch.zeros(4, 2), Stream(0)).shape == (
        4,
        6,
    )


def test_packing_judges_rows_together() -> None:
    critic = Discriminator(row_width=6, condition_width=2, width=8, dropout=0.0, pac=5)
    rows, conditions = torch.randn(20, 6), torch.randn(20, 2)
    score = critic(rows, conditions)
    assert score.shape == (4,)
    rows[0] += 1.0
    changed = critic(rows, conditions) != score
    assert changed.tolist() == [True, False, False, False]


def test_units_are_dropped_by_their_own_stream_alone() -> None:
    """A quarter kept of 10,000 × 2 × 8 units: the mean of a kept unit stays 1 within 5 standard errors."""
    critic = Discriminator(row_width=6, condition_width=2, width=8, dropout=0.75, pac=1)
    first, second = critic._kept(10_000, Stream(1))
    for kept in (first, second):
        assert set(kept.unique().tolist()) == {0.0, 4.0}
        assert abs(kept.mean().item() - 1) < 5 * (3 / kept.numel()) ** 0.5
    assert not torch.equal(first, second)
    rows, conditions = torch.randn(20, 6), torch.randn(20, 2)
    assert torch.equal(critic(rows, conditions), critic(rows, conditions))
    once, again = (critic(rows, conditions, Stream(2)) for _ in range(2))
    assert torch.equal(once, again)
    assert torch.equal(once[:7], critic(rows[:7], conditions[:7], Stream(2)))  # one row more changes no other row's


def test_no_rows_have_no_scores() -> None:
    critic = Discriminator(row_width=6, condition_width=2, width=8, dropout=0.0, pac=1)
    assert critic(torch.zeros(0, 6), torch.zeros(0, 2)).shape == (0,)


def test_activated_blocks_are_distributions_and_drawn_blocks_one_hot() -> None:
    raw = 3 * torch.randn(200, 6)
    for rows in (activate(raw, SPANS, Stream(0)), drawn(raw, SPANS, {}, Stream(0))):
        assert rows[:, 0].abs().max() <= 1
        torch.testing.assert_close(rows[:, 1:4].sum(1), torch.ones(200))
        torch.testing.assert_close(rows[:, 4:].sum(1), torch.ones(200))
    assert set(np.unique(drawn(raw, SPANS, {}, Stream(0))[:, 1:].numpy()).tolist()) == {0.0, 1.0}


def test_drawn_labels_follow_the_softmax() -> None:
    raw = torch.tensor([[0.0, 1.0, 0.0, -1.0, 0.5, -0.5]]).repeat(20_000, 1)
    shares = drawn(raw, SPANS, {}, Stream(0))[:, 1:4].mean(0)
    # Four standard errors of a share are at most 0.0142: false alarms 1 in 5000 for each of 3 shares.
    torch.testing.assert_close(shares, raw[0, 1:4].softmax(0), atol=0.0142, rtol=0)


def test_extreme_outputs_stay_finite() -> None:
    raw = torch.tensor([[1e4, -1e4, 1e4, 0.0, -1e4, -1e4]]).requires_grad_()
    rows = activate(raw, SPANS, Stream(0))
    (slope,) = torch.autograd.grad(rows.sum(), raw)
    assert rows.isfinite().all()
    assert slope.isfinite().all()


def test_weights_survive_the_round_trip_and_wrong_ones_are_refused() -> None:
    sizes = {"noise_width": 3, "condition_width": 2, "width": 4, "row_width": 6}
    first, second = Generator(**sizes), Generator(**sizes)
    first(torch.randn(8, 2), Stream(0))  # BatchNorm statistics move, and stay where they are
    arrays = to_arrays(first)
    assert set(arrays) == {name.replace(".", "/", 1) for name, _ in first.named_parameters()}
    load(second, arrays)
    for name, array in to_arrays(second).items():
        np.testing.assert_array_equal(array, arrays[name])
    with pytest.raises(ProtocolError, match="head/weight"):
        load(second, {k: v for k, v in arrays.items() if k != "head/weight"})
    with pytest.raises(ProtocolError, match="wrong shape"):
        load(second, arrays | {"head/weight": arrays["head/weight"][:-1]})


@dataclass
class Trainee:
    module: nn.Linear
    adam: Adam

    @classmethod
    def new(cls) -> Trainee:
        torch.manual_seed(1)
        module = nn.Linear(3, 2)
        return cls(module, Adam(module.parameters(), 0.1))

    def step(self) -> None:
        for parameter in self.module.parameters():
            parameter.grad = parameter.detach() + 1.0
        self.adam.step()


def test_adam_continues_from_stored_moments() -> None:
    unbroken, stopped, resumed = Trainee.new(), Trainee.new(), Trainee.new()
    for _ in range(4):
        unbroken.step()
    for _ in range(2):
        stopped.step()
    load(resumed.module, to_arrays(stopped.module))
    load_moments(resumed.adam, "d", moments_to_arrays("d", stopped.adam))
    for _ in range(2):
        resumed.step()
    torch.testing.assert_close(resumed.module.weight, unbroken.module.weight)
