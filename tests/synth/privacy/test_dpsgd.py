"""The noisy gradient against Opacus' optimizer, and the three ways DP-SGD is usually broken."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from opacus.grad_sample import GradSampleModule
from opacus.optimizers import DPOptimizer
from torch import Tensor, nn

from synth.errors import PrivacyError
from synth.neural.device import chosen
from synth.privacy.dpsgd import LATTICE, ClippedSum, PrivateGradient, StepPrivacy, lattice_sensitivity, poisson_batch
from synth.privacy.events import SampledGaussian
from synth.privacy.noise import NoiseSource, seeded_source

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing")  # Opacus' hooks, as intended
NOISELESS = 1e-12  # as little noise as an event allows: what remains is the clipped sum


def discriminator(dropout: float = 0.0, bias: bool = True) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(30, 64, bias=bias),
        nn.LeakyReLU(0.2),
        nn.Dropout(dropout),
        nn.Linear(64, 64),
        nn.LeakyReLU(0.2),
        nn.Dropout(dropout),
        nn.Linear(64, 1),
    )


def real_loss(module: nn.Module) -> Callable[..., Tensor]:
    """Cross-entropy against "real", optionally weighted per row."""

    def losses(rows: Tensor, weights: Tensor | None = None) -> Tensor:
        each = nn.functional.softplus(-module(rows)[:, 0])
        return each if weights is None else each * weights

    return losses


def step_privacy(clip: float = 0.5, noise: float = NOISELESS, expected_batch: float = 100.0) -> StepPrivacy:
    return StepPrivacy(clip, noise, sample_rate=0.05, expected_batch=expected_batch)


def clipped_sum_by_hooks(module: nn.Module, clip: float, rows: Tensor) -> list[Tensor]:
    hooked = GradSampleModule(module, loss_reduction="sum")
    optimizer = DPOptimizer(
        torch.optim.SGD(module.parameters(), lr=1.0),
        noise_multiplier=0.0,
        max_grad_norm=clip,
        expected_batch_size=1,
    )
    real_loss(hooked)(rows).sum().backward()  # type: ignore[no-untyped-call]
    optimizer.pre_step()
    hooked.remove_hooks()
    return [p.grad for p in module.parameters() if p.grad is not None]


@pytest.mark.parametrize("clip", [0.02, 0.5, 100.0])  # every row clipped, some, none
@pytest.mark.parametrize("bias", [True, False])
def test_gradients_equal_those_of_opacus_hooks(clip: float, bias: bool) -> None:
    rows = torch.randn(200, 30, generator=torch.Generator().manual_seed(1)) * torch.linspace(0.1, 3, 200)[:, None]
    module = discriminator(bias=bias)
    ours = PrivateGradient(module, step_privacy(clip), seeded_source(0))(real_loss(module), rows)
    theirs = clipped_sum_by_hooks(module, clip, rows)
    for a, b, parameter in zip(ours, theirs, module.parameters(), strict=True):
        assert a.shape == parameter.shape
        torch.testing.assert_close(a * 100, b, rtol=1e-5, atol=1e-5)


def test_dropout_masks_are_the_same_for_norm_and_gradient() -> None:
    rows = torch.randn(64, 30)
    module = discriminator(dropout=0.5)
    private = PrivateGradient(module, step_privacy(0.1), seeded_source(0))
    private(real_loss(module), rows)  # the first call also tries made-up rows, with masks of their own
    torch.manual_seed(5)
    ours = private(real_loss(module), rows)
    torch.manual_seed(5)
    theirs = clipped_sum_by_hooks(module, 0.1, rows)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a * 100, b, rtol=1e-5, atol=1e-5)


def test_no_row_moves_the_sum_by_more_than_the_clip_norm() -> None:
    rows = 50 * torch.randn(40, 30)
    module = discriminator()
    private = PrivateGradient(module, step_privacy(0.3, expected_batch=1.0), seeded_source(0))

    def flat(batch: Tensor) -> Tensor:
        return torch.cat([g.flatten() for g in private(real_loss(module), batch)])

    for left_out in range(0, 40, 8):
        without = torch.cat([rows[:left_out], rows[left_out + 1 :]])
        assert (flat(rows) - flat(without)).norm() <= 0.3 + 1e-4


def hostile() -> tuple[nn.Module, Callable[..., Tensor]]:
    """Hidden inputs of norm 10^19 and slopes near e^-52 at 256 units: each slope squared is 0 in float32."""
    module = nn.Sequential(nn.Linear(30, 256), nn.LeakyReLU(0.2), nn.Linear(256, 256), nn.LeakyReLU(0.2))
    module.append(nn.Linear(256, 1))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
        module[0].weight.fill_(1e18 / 30)
        module[2].bias.fill_(52.5 / 256)
        module[4].weight.fill_(1.0)
    return module, real_loss(module)


def test_no_row_escapes_clipping_by_underflow() -> None:
    """A row passed with 58 times the clip norm of 1e-4."""
    module, loss = hostile()
    rows = torch.ones(1, 30)
    slopes = torch.autograd.grad(loss(rows).sum(), list(module.parameters()))
    bare = torch.cat([slope.flatten() for slope in slopes]).double().norm().item()
    assert bare > 20 * 1e-4
    clipped = ClippedSum(module, 1e-4)(loss, rows)
    assert clipped.norm().item() == pytest.approx(1.0, rel=1e-6)  # in clip norms


@pytest.mark.parametrize("others", [0, 1, 5, 63, 64, 300])
def test_the_lattice_sum_moves_by_no_more_than_its_sensitivity(others: int) -> None:
    """Rounding and the other rows' floating-point error included; a loud row uses nearly all of it."""
    module = discriminator()
    rows = 50 * torch.randn(others + 1, 30, generator=torch.Generator().manual_seed(2))
    clipped = ClippedSum(module, 0.01)
    with_row, without = (np.rint(LATTICE * clipped(real_loss(module), part).numpy()) for part in (rows, rows[:-1]))
    moved = float(np.linalg.norm(with_row - without))
    assert 0.999 * LATTICE < moved <= lattice_sensitivity(with_row.size)


def test_a_row_counts_the_same_in_any_company() -> None:
    """A product of few rows takes another path through the processor than one of many; padding hides it."""
    module = discriminator().to(chosen())  # the processor, unless FEDSYNTH_DEVICE names a GPU to be tried
    rows = torch.randn(300, 30, generator=torch.Generator().manual_seed(3)).to(chosen())
    clipped = ClippedSum(module, 0.3)
    whole = clipped(real_loss(module), rows)
    for count in (1, 2, 3, 7):
        first, rest = clipped(real_loss(module), rows[:count]), clipped(real_loss(module), rows[count:])
        torch.testing.assert_close(first + rest, whole, rtol=0, atol=1e-12)


def test_what_is_released_lies_on_the_lattice() -> None:
    """No low bits are left to tell what the noise was added to."""
    module, rows = discriminator(), torch.randn(50, 30)
    privacy = StepPrivacy(0.5, 1e-3, sample_rate=0.05, expected_batch=0.5)
    gradients = PrivateGradient(module, privacy, NoiseSource())(real_loss(module), rows)
    steps = torch.cat([g.flatten() for g in gradients]).double() * LATTICE
    assert torch.equal(steps[steps.abs() < LATTICE], steps[steps.abs() < LATTICE].round())


def test_micro_batches_give_the_same_gradient() -> None:
    rows, weights = torch.randn(101, 30), torch.rand(101)
    module = discriminator()
    whole = PrivateGradient(module, step_privacy(noise=1.0), seeded_source(3))
    pieces = PrivateGradient(module, step_privacy(noise=1.0), seeded_source(3), micro_batch_rows=7)
    for a, b in zip(whole(real_loss(module), rows, weights), pieces(real_loss(module), rows, weights), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_noise_is_there_fresh_and_of_the_declared_size() -> None:
    """12,545 parameters × 20 steps of σ·C / b = 0.02. The relative standard error is 0.14 %; 1 % is 7 of them."""
    module, rows = discriminator(), torch.randn(50, 30)
    quiet = PrivateGradient(module, step_privacy(0.5), seeded_source(0))(real_loss(module), rows)
    noisy = PrivateGradient(module, step_privacy(0.5, noise=4.0), seeded_source(1))
    noise = torch.stack(
        [
            torch.cat([(a - b).flatten() for a, b in zip(noisy(real_loss(module), rows), quiet, strict=True)])
            for _ in range(20)
        ]
    )
    assert noise.std().item() == pytest.approx(4.0 * 0.5 / 100, rel=0.01)
    assert abs(noise.mean().item()) < 5 * 0.02 / noise.numel() ** 0.5
    assert abs(np.corrcoef(noise[0], noise[1])[0, 1]) < 5 / noise.shape[1] ** 0.5  # the same noise twice cancels


def test_an_empty_batch_is_noise_alone() -> None:
    module = discriminator()
    private = PrivateGradient(module, step_privacy(0.5, noise=4.0), seeded_source(2))
    gradients = private(real_loss(module), torch.empty(0, 30))
    parameters = sum(p.numel() for p in module.parameters())
    noise = seeded_source(2).rounded_gaussian(4.0 * lattice_sensitivity(parameters), parameters)
    np.testing.assert_allclose(torch.cat([g.flatten() for g in gradients]), noise * 2.0**-24 * 0.5 / 100, rtol=1e-6)


def test_the_divisor_is_public() -> None:
    """Twice the rows is twice the sum: dividing by the true batch size would hide it and leak the size."""
    module, rows = discriminator(), torch.randn(30, 30)
    private = PrivateGradient(module, step_privacy(), seeded_source(0))
    once, twice = private(real_loss(module), rows), private(real_loss(module), torch.cat([rows, rows]))
    for a, b in zip(once, twice, strict=True):
        torch.testing.assert_close(2 * a, b, rtol=1e-4, atol=1e-6)


def test_a_row_without_a_finite_gradient_is_left_out() -> None:
    module, rows = discriminator(), torch.randn(30, 30)
    broken = rows.clone()
    broken[3], broken[4, 0], broken[5] = torch.inf, torch.nan, 1e30
    private = PrivateGradient(module, step_privacy(), seeded_source(0))
    kept = torch.cat([rows[:3], rows[6:]])
    for a, b in zip(private(real_loss(module), broken), private(real_loss(module), kept), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_batches_are_poisson_samples() -> None:
    """Sizes of 3,000 batches of 1,000 rows at rate 0.01: binomial mean and variance (5 standard errors each: false
    alarm below one in 100,000), and at this rate some batches of a small table are empty."""
    source = seeded_source(8)
    batches = [poisson_batch(source, 1000, 0.01) for _ in range(3000)]
    sizes = np.array([len(batch) for batch in batches])
    assert sizes.mean() == pytest.approx(10, abs=5 * np.sqrt(9.9 / 3000))
    assert sizes.var() == pytest.approx(9.9, rel=5 * np.sqrt(2 / 3000))
    assert all(len(set(batch.tolist())) == len(batch) for batch in batches)
    assert any(len(poisson_batch(source, 20, 0.01)) == 0 for _ in range(20))


def test_a_step_is_the_event_it_charges() -> None:
    assert step_privacy(noise=2.0).event(steps=7) == SampledGaussian(0.05, 2.0, 7)


class Packed(nn.Module):
    """CTGAN's packing: two rows are one example."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(60, 1)

    def forward(self, rows: Tensor) -> Tensor:
        return self.layer(rows.view(-1, 60)).repeat_interleave(2, 0)  # type: ignore[no-any-return]


class Shared(nn.Module):
    """A weight in two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(30, 30), nn.Linear(30, 30)
        self.last.weight = self.first.weight


class Centred(nn.Module):
    """Batch statistics without a BatchNorm layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(30, 1)

    def forward(self, rows: Tensor) -> Tensor:
        scores: Tensor = self.layer(rows)
        return scores - scores.mean()


class Cumulated(Centred):
    """Row i sees rows before it; the first row sees nobody."""

    def forward(self, rows: Tensor) -> Tensor:
        return self.layer(rows).cumsum(0)  # type: ignore[no-any-return]


class Scaled(nn.Module):
    """A parameter outside any layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.scale = nn.Linear(30, 1), nn.Parameter(torch.ones(1))


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Linear(30, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)),
        nn.Sequential(nn.Linear(30, 8), nn.BatchNorm1d(8, affine=False, track_running_stats=False), nn.Linear(8, 1)),
        nn.Sequential(nn.Linear(30, 8), nn.BatchNorm1d(8), nn.LayerNorm(8), nn.Linear(8, 1)),
        nn.Sequential(nn.Linear(30, 8), nn.GRU(8, 8)),
        nn.Sequential(nn.Linear(30, 8), nn.Bilinear(8, 8, 1)),
        nn.Sequential(nn.Embedding(9, 8, max_norm=1.0), nn.Linear(8, 1)),
        nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(30, 1))),
        nn.Sequential(nn.ReLU()),
        Shared(),
        Scaled(),
        nn.Linear(30, 1).double(),
        nn.Linear(30, 1).requires_grad_(False),
    ],
    ids=lambda module: type(module).__name__,
)
def test_networks_that_cannot_be_clipped_are_refused_at_the_start(module: nn.Module) -> None:
    with pytest.raises(PrivacyError):
        PrivateGradient(module, step_privacy(), NoiseSource())


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Packed(), "packing"),
        (Centred(), "other rows"),
        (Cumulated(), "other rows"),
        (nn.Sequential(nn.Linear(30, 8), nn.ReLU(inplace=True), nn.Linear(8, 1)), "in-place"),
    ],
    ids=["packed", "centred", "cumulated", "in-place"],
)
def test_networks_that_couple_rows_are_refused_at_the_first_batch(module: nn.Module, message: str) -> None:
    private = PrivateGradient(module, step_privacy(), NoiseSource())
    with pytest.raises(PrivacyError, match=message):
        private(real_loss(module), torch.empty(0, 30))  # refused whatever the data


def test_a_mean_loss_and_an_unused_layer_are_refused() -> None:
    module = discriminator()
    private = PrivateGradient(module, step_privacy(), NoiseSource())
    with pytest.raises(PrivacyError, match="one loss per row"):
        private(lambda rows: real_loss(module)(rows).mean(), torch.randn(10, 30))
    with pytest.raises(PrivacyError, match="each must run"):
        private(lambda rows: module[0](rows)[:, 0], torch.randn(10, 30))


@pytest.mark.parametrize(
    "wrong",
    [(0.0, 1.0, 0.1, 10.0), (1.0, 0.0, 0.1, 10.0), (1.0, 1.0, 0.0, 10.0), (1.0, 1.0, 1.5, 10.0), (1.0, 1.0, 0.1, 0.0)],
)
def test_privacy_cannot_be_switched_off_by_a_parameter(wrong: tuple[float, float, float, float]) -> None:
    with pytest.raises(PrivacyError):
        StepPrivacy(*wrong)
