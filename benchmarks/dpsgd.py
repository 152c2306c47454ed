"""What privacy costs per step: `python -m benchmarks.dpsgd`.

The real-batch step of a discriminator as wide as Adult needs (274 → 256 → 256 → 1, batch 500, one thread): forward,
backward and Adam, plainly; then with our clipping and noise; then with Opacus' hooks and with its ghost clipping.
All four alternate in one process on the same batch, and the figures are ratios of least and of median times: a shared
machine changes speed by the minute, hardly between two neighbouring steps, and other work only ever adds time.
"""

import json
import statistics
import time
import warnings
from collections.abc import Callable

import torch
from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
from torch import Tensor, nn

from synth.privacy.dpsgd import PrivateGradient, StepPrivacy
from synth.privacy.noise import NoiseSource

ROWS, INPUTS, WIDTH = 500, 170 + 104, 256
PRIVACY = StepPrivacy(l2_clip_norm=1.0, noise_multiplier=1.0, sample_rate=0.05, expected_batch=float(ROWS))
REPEATS, SLOW_EVERY = 300, 10  # the hooks take as long as ten rounds of everything else

Step = Callable[[Tensor], None]


def discriminator() -> nn.Sequential:
    torch.manual_seed(0)
    hidden = [nn.Linear(INPUTS, WIDTH), nn.LeakyReLU(0.2), nn.Dropout(0.5)]
    hidden += [nn.Linear(WIDTH, WIDTH), nn.LeakyReLU(0.2), nn.Dropout(0.5)]
    return nn.Sequential(*hidden, nn.Linear(WIDTH, 1))


def adam(module: nn.Module) -> torch.optim.Adam:
    return torch.optim.Adam(module.parameters(), lr=2e-4, betas=(0.5, 0.9))


def real_losses(logits: Tensor) -> Tensor:
    return nn.functional.softplus(-logits[:, 0])  # cross-entropy against "real"


def plain_step() -> Step:
    module = discriminator()
    optimizer = adam(module)

    def step(batch: Tensor) -> None:
        optimizer.zero_grad()
        real_losses(module(batch)).mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


def our_step() -> Step:
    module = discriminator()
    optimizer = adam(module)
    private = PrivateGradient(module, PRIVACY, NoiseSource())

    def step(batch: Tensor) -> None:
        gradients = private(lambda rows: real_losses(module(rows)), batch)
        for parameter, gradient in zip(module.parameters(), gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()

    return step


def opacus_hooks_step() -> Step:
    module = GradSampleModule(discriminator())
    optimizer = DPOptimizer(
        adam(module),
        noise_multiplier=PRIVACY.noise_multiplier,
        max_grad_norm=PRIVACY.l2_clip_norm,
        expected_batch_size=ROWS,
    )

    def step(batch: Tensor) -> None:
        optimizer.zero_grad()
        real_losses(module(batch)).mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


def opacus_ghost_step() -> Step:
    module = GradSampleModuleFastGradientClipping(
        discriminator(), max_grad_norm=PRIVACY.l2_clip_norm, use_ghost_clipping=True
    )
    optimizer = DPOptimizerFastGradientClipping(
        adam(module),
        noise_multiplier=PRIVACY.noise_multiplier,
        max_grad_norm=PRIVACY.l2_clip_norm,
        expected_batch_size=ROWS,
    )
    criterion = DPLossFastGradientClipping(module, optimizer, nn.BCEWithLogitsLoss(reduction="mean"))
    ones = torch.ones(ROWS, 1)

    def step(batch: Tensor) -> None:
        optimizer.zero_grad()
        criterion(module(batch), ones).backward()
        optimizer.step()

    return step


def measure() -> dict[str, list[float]]:
    """Milliseconds per step of each kind."""
    batch = torch.randn(ROWS, INPUTS)
    steps = {"plain": plain_step(), "dp": our_step(), "ghost": opacus_ghost_step(), "hooks": opacus_hooks_step()}
    milliseconds: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        step(batch)
    for turn in range(REPEATS):
        for name, step in steps.items():
            if name == "hooks" and turn % SLOW_EVERY:
                continue
            start = time.perf_counter()
            step(batch)
            milliseconds[name].append(1e3 * (time.perf_counter() - start))
    return milliseconds


def main() -> None:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="Full backward hook is firing")
    times = measure()
    ratios = {}
    for name, milliseconds in times.items():
        least, median = min(milliseconds), statistics.median(milliseconds)
        print(f"{name:6s} {least:8.2f} ms per step at best, {median:8.2f} in the median")
        if name != "plain":
            ratios[f"{name}_over_plain"] = round(median / statistics.median(times["plain"]), 3)
            ratios[f"{name}_over_plain_at_best"] = round(least / min(times["plain"]), 3)
    print(json.dumps(ratios))


if __name__ == "__main__":
    main()
