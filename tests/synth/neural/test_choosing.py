"""Rows that have the pairs of all candidates, which as many rows drawn one by one have not."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from torch import Tensor

from synth.neural.choosing import WIDEST, chosen_by_pairs
from synth.neural.fitting import chosen

SIZES = (6, 5, 7, 4)


def candidates(count: int, seed: int) -> tuple[np.ndarray, Tensor]:
    """Labels of four columns that all lean on the first, and the same as one-hot blocks."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, SIZES[0], count)
    others = [(first + rng.integers(0, 3, count)) % size for size in SIZES[1:]]
    labels = np.stack([first, *others])
    blocks = [
        torch.nn.functional.one_hot(torch.as_tensor(each), size) for each, size in zip(labels, SIZES, strict=True)
    ]
    return labels, torch.cat(blocks, dim=1).float()


def distance(labels: np.ndarray, weights: np.ndarray, kept: np.ndarray) -> float:
    """Mean over pairs of columns: total variation between the weighted candidates and the kept rows."""
    found = []
    for first, second in combinations(range(len(SIZES)), 2):
        cell = labels[first] * SIZES[second] + labels[second]
        wanted = np.bincount(cell, weights, minlength=SIZES[first] * SIZES[second]) / weights.sum()
        held = np.bincount(cell[kept], minlength=len(wanted)) / len(kept)
        found.append(np.abs(wanted - held).sum() / 2)
    return float(np.mean(found))


def test_pairs_of_the_chosen_rows_are_those_of_the_weighted_candidates() -> None:
    labels, blocks = candidates(20_000, 0)
    weights = np.random.default_rng(1).gamma(2.0, 1.0, 20_000) * (1 + labels[0])
    by_luck = chosen(weights, 4_000, np.random.default_rng(2))
    by_pairs = chosen_by_pairs(blocks, weights, 4_000, np.random.default_rng(2))
    assert distance(labels, weights, by_luck) > 0.01
    assert distance(labels, weights, by_pairs) < 0.2 * distance(labels, weights, by_luck)


def test_a_candidate_of_no_weight_is_never_chosen() -> None:
    labels, blocks = candidates(10_000, 3)
    weights = (labels[1] != 2).astype(float)
    assert (labels[1][chosen_by_pairs(blocks, weights, 2_000, np.random.default_rng(0))] != 2).all()


@pytest.mark.parametrize("count", [0, 1, 50])
def test_a_handful_is_left_to_luck(count: int) -> None:
    _, blocks = candidates(500, 4)
    weights = np.ones(500)
    found = chosen_by_pairs(blocks, weights, count, np.random.default_rng(5))
    np.testing.assert_array_equal(found, chosen(weights, count, np.random.default_rng(5)))


def test_rows_without_labels_and_very_wide_ones_are_left_to_luck_too() -> None:
    weights = np.ones(1_500)
    for width in (0, WIDEST + 1):
        found = chosen_by_pairs(torch.zeros(1_500, width), weights, 1_200, np.random.default_rng(6))
        np.testing.assert_array_equal(found, chosen(weights, 1_200, np.random.default_rng(6)))
