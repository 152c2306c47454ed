"""Split one table among pretend parties, to try a plan before anybody installs anything."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from synth.errors import InputError

Partition = Literal["iid", "label-skew", "quantity-skew"]
SKEW = 0.5  # Dirichlet concentration: small enough that some parties hardly see some labels


def partition(
    table: pd.DataFrame, parties: list[str], how: Partition, label: str | None, seed: int
) -> dict[str, pd.DataFrame]:
    """Disjoint, exhaustive parts, each of at least two rows.

    iid            equal random parts
    label-skew     every label's rows are spread by Dirichlet(0.5) shares
    quantity-skew  part sizes are Dirichlet(0.5) shares
    """
    if len(table) < 2 * len(parties):
        raise InputError(f"{len(table)} rows cannot be split among {len(parties)} parties; use fewer parties")
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(table))
    if how == "iid":
        owner = np.arange(len(table)) % len(parties)
    elif how == "quantity-skew":
        owner = rng.choice(len(parties), len(table), p=rng.dirichlet([SKEW] * len(parties)))
    else:
        owner = _by_label(table, order, len(parties), label, rng)
    _feed_the_small(owner, len(parties))
    return {name: table.iloc[np.sort(order[owner == index])] for index, name in enumerate(parties)}


def _by_label(
    table: pd.DataFrame, order: np.ndarray, parties: int, label: str | None, rng: np.random.Generator
) -> np.ndarray:
    if label is None:
        raise InputError("--partition label-skew needs a target column in the schema; declare one or use iid")
    if label not in table.columns:
        raise InputError(f"--partition label-skew: the table has no column '{label}', the schema's target")
    labels = table[label].astype(str).to_numpy()[order]
    owner = np.empty(len(table), dtype=np.int64)
    for value in np.unique(labels):
        rows = np.flatnonzero(labels == value)
        owner[rows] = rng.choice(parties, len(rows), p=rng.dirichlet([SKEW] * parties))
    return owner


def _feed_the_small(owner: np.ndarray, parties: int) -> None:
    """Move rows from the largest part to parts of fewer than two rows, in place."""
    for index in range(parties):
        while (owner == index).sum() < 2:
            largest = np.bincount(owner, minlength=parties).argmax()
            owner[np.flatnonzero(owner == largest)[0]] = index
