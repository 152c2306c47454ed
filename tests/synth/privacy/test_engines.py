"""Both engines against autograd, one row at a time: whatever a network is made of, the sum is that of DP-SGD."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from synth.errors import PrivacyError
from synth.neural.device import chosen
from synth.privacy import dpsgd
from synth.privacy.bookkeeping import MOST_CANCELLING, Bookkeeping
from synth.privacy.dpsgd import LATTICE, ClippedSum, PrivateGradient, StepPrivacy, lattice_sensitivity
from synth.privacy.noise import NoiseSource, seeded_source
from synth.privacy.per_row import PerRowGradients
from tests.synth.privacy.engine_networks import CASES, STEPS, WIDTH, Case, Plain, Recurrent

everything = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def network(case: Case) -> nn.Module:
    torch.manual_seed(0)
    return case.module()


def rows_of(case: Case, count: int, size: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    if case.whole_numbers:
        return torch.randint(0, 9, (count, STEPS, WIDTH), generator=generator)
    return size * torch.randn(count, STEPS, WIDTH, generator=generator)


def losses(module: nn.Module) -> Callable[..., Tensor]:
    return lambda rows: F.softplus(module(rows))


def by_autograd(module: nn.Module, rows: Tensor) -> Tensor:
    """[rows, parameters], each row alone."""
    found = []
    for row in rows:
        slopes = torch.autograd.grad(losses(module)(row[None])[0], list(module.parameters()))
        found.append(torch.cat([slope.flatten() for slope in slopes]))
    return torch.stack(found).double()


def clipped(gradients: Tensor, clip: float) -> Tensor:
    return (gradients / gradients.norm(dim=1, keepdim=True).clamp(min=clip)).sum(0)


@everything
def test_the_module_chooses_the_engine(case: Case) -> None:
    assert type(ClippedSum(network(case), 1.0)._engine) is case.engine


@everything
@pytest.mark.parametrize("share", [0.1, 1.0, 10.0])  # of the median norm: nearly all rows clipped, some, hardly any
def test_the_clipped_sum_is_that_of_single_gradients(case: Case, share: float) -> None:
    module, rows = network(case), rows_of(case, 70)
    gradients = by_autograd(module, rows)
    clip = share * float(gradients.norm(dim=1).median())
    ours = ClippedSum(module, clip)(losses(module), rows)
    torch.testing.assert_close(ours, clipped(gradients, clip), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "case", [c for c in CASES.values() if c.engine is Bookkeeping], ids=lambda c: c.module.__name__
)
def test_book_keeping_equals_opacus_hooks(case: Case) -> None:
    """A state that reaches no loss is nothing to book-keeping; with Opacus it is refused, for its hooks wait for it."""
    module, rows = network(case), rows_of(case, 70)
    ours = ClippedSum(module, 0.5)
    by_hooks = ClippedSum(module, 0.5)
    by_hooks._engine = PerRowGradients(module, list(ours._engine.layers), 4096)
    if isinstance(module, Recurrent):
        with pytest.raises(PrivacyError, match="does not reach the loss"):
            by_hooks(losses(module), rows)
        return
    torch.testing.assert_close(by_hooks(losses(module), rows), ours(losses(module), rows), rtol=1e-4, atol=1e-6)


@everything
def test_noise_and_divisor_are_the_same_for_both(case: Case) -> None:
    module, rows = network(case), rows_of(case, 20)
    privacy = StepPrivacy(0.5, 2.0, sample_rate=0.1, expected_batch=10.0)
    noisy = PrivateGradient(module, privacy, seeded_source(3))(losses(module), rows)
    total = ClippedSum(module, 0.5)(losses(module), rows)
    deviation = 2.0 * lattice_sensitivity(len(total))
    released = seeded_source(3).rounded_gaussian(deviation, len(total)) + np.rint(LATTICE * total.numpy())
    flat = torch.cat([part.flatten() for part in noisy]).numpy()
    np.testing.assert_allclose(flat, released * 0.5 / LATTICE / 10.0, rtol=1e-6)
    assert [part.shape for part in noisy] == [parameter.shape for parameter in module.parameters()]


@everything
@pytest.mark.parametrize("others", [0, 1, 63, 150])
def test_the_lattice_sum_moves_by_no_more_than_its_sensitivity(case: Case, others: int) -> None:
    """Rounding and the other rows' floating-point error included; a clipped row uses nearly all of it."""
    module, rows = network(case), rows_of(case, others + 1)
    engine = ClippedSum(module, 1e-4)
    with_row, without = (np.rint(LATTICE * engine(losses(module), part).numpy()) for part in (rows, rows[:-1]))
    moved = float(np.linalg.norm(with_row - without))
    assert 0.999 * LATTICE < moved <= lattice_sensitivity(with_row.size)


@everything
def test_a_row_counts_the_same_in_any_company(case: Case) -> None:
    """Narrow layers: of 2 to 11 outputs, a row's last bit depended on where it stood."""
    module, rows = network(case).to(chosen()), rows_of(case, 200).to(chosen())
    engine = ClippedSum(module, 0.3)
    whole = engine(losses(module), rows)
    for count in (1, 3, 70):
        parts = [engine(losses(module), part) for part in (rows[:count], rows[count:])]
        torch.testing.assert_close(parts[0] + parts[1], whole, rtol=0, atol=1e-12)


@everything
def test_pieces_give_the_same_sum(case: Case) -> None:
    module, rows = network(case), rows_of(case, 40)
    whole, pieces = (ClippedSum(module, 0.3, most)(losses(module), rows) for most in (4096, 7))
    torch.testing.assert_close(pieces, whole, rtol=1e-9, atol=1e-9)


@everything
def test_a_row_without_a_finite_gradient_is_left_out(case: Case) -> None:
    if case.whole_numbers:
        pytest.skip("codes are finite")
    module, rows = network(case), rows_of(case, 20)
    broken = rows.clone()
    broken[3], broken[4] = torch.inf, torch.nan
    engine = ClippedSum(module, 0.3)
    kept = torch.cat([rows[:3], rows[5:]])
    torch.testing.assert_close(engine(losses(module), broken), engine(losses(module), kept), rtol=0, atol=1e-12)


def attributes(module: nn.Module) -> dict[str, set[str]]:
    return {name: set(vars(part)) for name, part in module.named_modules()}


@everything
def test_nothing_is_left_on_the_module(case: Case) -> None:
    module, rows = network(case), rows_of(case, 20)
    before = attributes(module)
    ClippedSum(module, 0.3)(losses(module), rows)
    assert attributes(module) == before
    assert all(not vars(parameter) and parameter.grad is None for parameter in module.parameters())
    assert not any(part._forward_hooks or part._backward_hooks for part in module.modules())


@pytest.mark.parametrize("norm", [False, True], ids=["bookkeeping", "per row"])
@pytest.mark.parametrize("mixed", ["centred", "cumulated", "packed"])
def test_coupled_rows_are_refused_by_both(norm: bool, mixed: str) -> None:
    module = Plain(norm)

    def coupled(rows: Tensor) -> Tensor:
        if mixed == "packed":
            return F.softplus(module(rows.view(len(rows) // 2, 2, STEPS, WIDTH)[:, 0]).repeat_interleave(2))
        scores = module(rows)
        return scores - scores.mean() if mixed == "centred" else scores.cumsum(0)

    private = PrivateGradient(module, StepPrivacy(0.5, 1.0, 0.1, 10.0), NoiseSource())
    with pytest.raises(PrivacyError, match="packing" if mixed == "packed" else "other rows"):
        private(coupled, torch.empty(0, STEPS, WIDTH))  # refused whatever the data


def test_a_module_that_does_not_train_is_refused() -> None:
    """Opacus' hooks are silent then."""
    module = Plain(norm=True).eval()
    with pytest.raises(PrivacyError, match="training mode"):
        ClippedSum(module, 0.5)(losses(module), torch.zeros(0, STEPS, WIDTH))


class Cancelling(nn.Module):
    """One layer, twice, whose gradients cancel but for a millionth."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, 1)

    def forward(self, rows: Tensor) -> Tensor:
        first, again = self.layer(rows), self.layer(rows * (1 + 2.0**-20))
        return 1e6 * (first - again)[:, 0]  # type: ignore[no-any-return]


def test_passes_that_cancel_never_pass_the_clip_norm() -> None:
    """The Gram formula alone would lose half of its digits; the norm is taken for a 16th of the passes' sum."""
    module, rows = Cancelling(), torch.randn(5, WIDTH, generator=torch.Generator().manual_seed(4))
    one = ClippedSum(module, 1e-9)
    for row in rows:
        norm = float(one(module, row[None]).norm())
        assert 0 < norm <= 1.0
        assert norm == pytest.approx(MOST_CANCELLING * 2.0**-20 / 2, rel=0.5)  # clipped by more than its own norm asks


def test_a_loss_that_runs_its_layers_more_often_than_tried_is_refused() -> None:
    module, often = Recurrent(), [1, 2]

    def growing(rows: Tensor) -> Tensor:
        return torch.stack([module(rows) for _ in range(often.pop(0))]).sum(0)

    with pytest.raises(PrivacyError, match="equally often"):
        ClippedSum(module, 0.5)(growing, torch.zeros(3, STEPS, WIDTH))


def test_batches_beyond_the_bound_of_large_products_are_summed_in_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal above so many rows would tell how many there are, also where layers see a row again."""
    module, rows = Recurrent(), torch.randn(300, STEPS, WIDTH, generator=torch.Generator().manual_seed(1))
    total = ClippedSum(module, 0.5)
    before = total(losses(module), rows)
    monkeypatch.setattr(dpsgd, "LARGE_BATCH_SEEN_AGAIN", 8)
    seen = list[int]()
    kept = dpsgd.added
    monkeypatch.setattr(dpsgd, "added", lambda pieces, nothing: kept(_counted(pieces, seen), nothing))
    assert float((total(losses(module), rows) - before).norm()) < 1e-12 * float(before.norm())
    assert len(seen) >= 300 * STEPS / 64


def _counted(pieces: Iterator[Tensor], seen: list[int]) -> Iterator[Tensor]:
    for piece in pieces:
        seen.append(piece.numel())
        yield piece
