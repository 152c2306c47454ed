"""Distributions from noisy counts. Pure post-processing: nothing here touches a row.

Setting negative counts to zero keeps the positive half of the noise, which in a sparse histogram adds up to a large
share of the mass, much of it far from any row. Labels are instead shrunk by what all of them say together
(synth/encoding/rare_labels.py). Along an ordered axis more is known: neighbouring cells
belong together, so a halving tree asks at every level whether a half, or any window in it, holds more than its noise
explains. A tail is kept when it is significant as a whole, although none of its cells is, and an empty stretch is
emptied, its noise with it.

Fine cells within groups are asked less: a cell that stands far out of its group is a heap and keeps its count; the rest
of the group is spread evenly, and otherwise only where a half holds more or less than its noise explains.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from synth.encoding.rare_labels import shrunk_counts
from synth.encoding.round_numbers import Flags, with_round_numbers
from synth.encoding.scales import Floats
from synth.encoding.smoothing import smoothed

SIGNIFICANT = 3.0  # standard deviations of the noise in a half, below which it is empty; chosen on generated columns
OUTSTANDING = 4.5  # the same for any window of neighbouring cells, of which there are many
DIFFERENT = 2.0  # standard deviations of the difference between two halves, below which they are alike
SPIKE, BESIDE = 5.0, 3  # standard deviations, and times the median of so many cells on either side
SLOPE, FALL = 12, 0.8  # groups beyond the last dense one in which a tail may go on, and how fast it falls at least
HEAP = 1.0  # standard deviations above the largest that noise alone would show in so many cells


def denoise(counts: Floats, sigma: float, ordered: bool, total: float | None = None) -> Floats:
    """Probabilities behind counts with independent noise of standard deviation `sigma` per cell. `total` is what they
    should add up to, if that is known better than by adding them up."""
    total = float(counts.sum()) if total is None else total
    if total <= 0:
        return np.full(len(counts), 1 / len(counts))
    if ordered and sigma > 0:
        spikes = _spikes(counts, sigma)
        left = max(total - float(spikes.sum()), 0.0)
        found = np.zeros(len(counts))
        _keep(counts - spikes, sigma, left, found)
        filled = np.flatnonzero(found > 0)
        found = _with_slopes(found, counts - spikes, sigma)
        found = _with_slopes(found[::-1], (counts - spikes)[::-1], sigma)[::-1]
        found = _with_curves(found, counts - spikes, filled, sigma)
        found = found * (left / found.sum() if found.sum() > 0 else 0.0) + spikes  # a spike's count is known
        return found / found.sum() if found.sum() > 0 else np.full(len(counts), 1 / len(counts))
    found = shrunk_counts(counts, sigma) if sigma > 0 else np.maximum(counts, 0.0)
    return found / found.sum() if found.sum() > 0 else np.full(len(counts), 1 / len(counts))


def denoise_groups(
    counts: Floats, group: npt.NDArray[np.int64], widths: Floats, sigma: float, total: float, units: list[Flags]
) -> Floats:
    """The same for cells that were also counted in groups (numbered from 0, neighbours together, counts consistent).
    `widths` says how a group spreads over its cells where the counts do not say; `units` are cells of round numbers,
    which may say something together."""
    if total <= 0:
        even: Floats = widths / widths.sum()
        return even
    heaps = _heaps(counts, group, widths, sigma)
    rest = counts - heaps
    sums = np.bincount(group, weights=rest).astype(np.float64)
    left = max(total - float(heaps.sum()), 0.0)
    mass = denoise(sums, sigma, ordered=True, total=left) * left
    widths = with_round_numbers(rest, group, widths, mass, sigma, units)
    found: Floats = np.zeros(len(counts))
    bounds = np.flatnonzero(np.diff(group, prepend=-1, append=group[-1] + 1))
    for number, (start, stop) in enumerate(pairwise(bounds)):
        if mass[number] > 0:
            inside = widths[start:stop] / widths[start:stop].sum()
            found[start:stop] = mass[number] * inside
            if stop - start > 1 and mass[number] > SIGNIFICANT * sigma:
                _spread(rest[start:stop], widths[start:stop], sigma, mass[number], found[start:stop])
    found = found + heaps
    whole: Floats = found / found.sum()
    return whole


def _with_slopes(mass: Floats, sums: Floats, sigma: float) -> Floats:
    """The end of a tail, falling: a few groups before the last that is not empty, and a few beyond. Halves that are
    emptied cut a tail off where it is still dense, and halves that are not spread it where nothing is."""
    if not mass.any():
        return mass
    last = int(np.flatnonzero(mass)[-1])
    level = float(np.median(mass[max(last - SLOPE // 3, 0) : last + 1]))  # 0 where a value stands alone
    if level == 0:
        return mass
    first = max(last + 1 - SLOPE // 2, 0)
    slope = np.maximum(_falling(sums[first : last + 1 + SLOPE]), 0.0)
    inside = last + 1 - first
    if np.abs(slope - sums[first : first + len(slope)])[:inside].max() > OUTSTANDING * sigma:  # it is no slope
        slope, first, inside = slope[inside:], last + 1, 0
    beyond = len(slope) - inside
    slope[inside:] = np.minimum(slope[inside:], level * FALL ** np.arange(1, beyond + 1))
    return np.concatenate([mass[:first], slope, mass[last + 1 + beyond :]])


def _with_curves(mass: Floats, counts: Floats, filled: npt.NDArray[np.int64], sigma: float) -> Floats:
    """On every stretch of cells that are not empty, the mean of what the tree says and of a smooth curve. The end of a
    tail, beyond them, is left as it falls."""
    found = mass.copy()
    for stretch in np.split(filled, np.flatnonzero(np.diff(filled) > 1) + 1):
        found[stretch] = (mass[stretch] + smoothed(counts[stretch], sigma)) / 2
    return found


def _falling(values: Floats) -> Floats:
    """The nearest sequence that never rises (pool adjacent violators)."""
    pools: list[tuple[float, int]] = []
    for value in values.tolist():
        sum_, size = value, 1
        while pools and sum_ / size > pools[-1][0] / pools[-1][1]:
            before, more = pools.pop()
            sum_, size = sum_ + before, size + more
        pools.append((sum_, size))
    return np.repeat([sum_ / size for sum_, size in pools], [size for _, size in pools])


def _heaps(counts: Floats, group: npt.NDArray[np.int64], widths: Floats, sigma: float) -> Floats:
    """What single cells hold beyond their share of their group, where noise alone would not."""
    limit = (np.sqrt(2 * np.log(len(counts))) + HEAP) * sigma
    share = widths / np.bincount(group, weights=widths)[group]
    heaps = np.zeros(len(counts))
    for _ in range(3):  # a group without its heaps has less to share
        expected = np.maximum(np.bincount(group, weights=counts - heaps), 0.0)[group] * share
        found = np.where(counts - expected > limit, counts - expected, 0.0)
        heaps = np.where(np.bincount(group)[group] > 1, found, 0.0)
    return heaps


def _spread(counts: Floats, widths: Floats, sigma: float, mass: float, found: Floats) -> None:
    """Divide `mass` among cells by their widths, halving, and otherwise where counts speak against it."""
    half = len(counts) // 2
    if half == 0:
        found[:] = mass
        return
    part = widths[:half].sum() / widths.sum()
    surplus = (mass - counts.sum()) / len(counts)
    left = float(counts[:half].sum() + surplus * half)
    doubt = sigma * np.sqrt(half * (len(counts) - half) / len(counts))
    if abs(left - mass * part) > OUTSTANDING * doubt:
        part = min(max(left / mass, 0.0), 1.0)
    for cells, share in ((slice(None, half), part), (slice(half, None), 1 - part)):
        if mass * share > SIGNIFICANT * sigma:
            _spread(counts[cells], widths[cells], sigma, mass * share, found[cells])
        else:
            found[cells] = mass * share * widths[cells] / widths[cells].sum()


def _keep(counts: Floats, sigma: float, mass: float, found: Floats) -> None:
    """Divide `mass` over `found`, halving: a half that holds nothing gets nothing, and the other all; halves between
    which noise is the only difference get the same. No mass is lost: a column's rows are known better than where they
    are, and what was lost here would be made up for where they are not (a spike at zero took half of a tail)."""
    half = len(counts) // 2
    if half == 0:
        found[:] = max(mass, 0.0)
        return
    surplus = (mass - counts.sum()) / len(counts)  # levels above know the mass better than these cells alone
    halves = (slice(None, half), slice(half, None))
    held = [float(counts[part].sum() + surplus * len(counts[part])) for part in halves]
    even = mass * half / len(counts)
    empty = [_is_noise(counts[part] + surplus, sigma) for part in halves]
    alike = abs(held[0] - even) < DIFFERENT * sigma * np.sqrt(half * (len(counts) - half) / len(counts))
    if alike and (all(empty) or not any(empty) or mass > sigma * len(counts)):
        held = [even, mass - even]
    elif all(empty) or not any(empty):
        held[0] = min(max(held[0], 0.0), mass)
        held[1] = mass - held[0]
    else:
        held = [0.0 if none else mass for none in empty]
    for part, share in zip(halves, held, strict=True):
        if share > 0:
            _keep(counts[part], sigma, share, found[part])


def _spikes(counts: Floats, sigma: float) -> Floats:
    """What single cells hold beyond their neighbours, where it is many times as much."""
    around = np.lib.stride_tricks.sliding_window_view(np.pad(counts, BESIDE, mode="reflect"), 2 * BESIDE + 1)
    usual = np.maximum(np.median(around, axis=1), 0.0)
    beyond = counts - usual
    return np.where((beyond > SPIKE * sigma) & (beyond > SPIKE * usual), beyond, 0.0)


def _is_noise(counts: Floats, sigma: float) -> bool:
    """Whether neither the stretch nor any window in it holds more than noise would."""
    if counts.sum() >= SIGNIFICANT * sigma * np.sqrt(len(counts)):
        return False
    sums, width = np.append(0.0, np.cumsum(counts)), 1
    while width <= len(counts):
        if (sums[width:] - sums[:-width]).max() >= OUTSTANDING * sigma * np.sqrt(width):
            return False
        width *= 2
    return True
