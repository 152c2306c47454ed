"""Teach the generator the released one-way histograms before anybody is asked, so that private steps are spent on
dependencies only.

Pure post-processing at the aggregator. Per step, the mean of each softmax over a batch is pulled to the released
frequencies (KL divergence), conditions are to be obeyed, and each α starts near the spread it has in a Gaussian mode.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim import Adam

from synth.encoding.features import Features
from synth.neural.streams import Stream
from synth.neural.weights import set_gradient
from synth.synthesizers.ctgan.conditions import Conditions
from synth.synthesizers.ctgan.networks import Generator

LEARNING_RATE = 2e-3
BATCH = 500
ALPHA_SPREAD = 0.3  # before tanh; α = (value - mean) / (4 std) has spread 0.25


def warm_start(
    generator: Generator,
    features: Features,
    conditions: Conditions,
    block_shares: Mapping[int, Tensor],
    steps: int,
    stream: Stream,
) -> None:
    """`block_shares` are the released frequencies of each one-hot block, by the block's start."""
    adam = Adam(generator.parameters(), LEARNING_RATE, betas=(0.9, 0.99))
    for _ in range(steps):
        asked = conditions.draw(BATCH, stream)
        raw = generator(asked, stream)
        loss = conditions.penalty(raw, asked)
        for span in features.spans:
            block = raw[:, span.slice]
            if span.kind == "alpha":
                loss = loss + block.mean().square() + (block.std() - ALPHA_SPREAD).square()
            else:
                shares = block.softmax(1).mean(0)
                loss = loss + (shares * (shares.clamp_min(1e-9) / block_shares[span.start]).log()).sum()
        set_gradient(generator, torch.autograd.grad(loss, list(generator.parameters())))
        adam.step()


def settle_batch_norm(generator: Generator, conditions: Conditions, batches: int = 20) -> None:
    """No party sends the statistics of its made-up rows, so they are estimated here on fresh ones."""
    norms = [part for part in generator.modules() if isinstance(part, torch.nn.BatchNorm1d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean over the batches below
    generator.train()
    stream = Stream(0)
    with torch.no_grad():
        for _ in range(batches):
            generator(conditions.draw(1000, stream), stream)
    generator.eval()
