"""What a peer is asked, and what it must leave behind: a table, and what it says about itself.

Domains are public: a peer that can be told bounds, labels and cells is told them, so that it need not read them off
the rows. Cells cut a number's range at one cell for its lowest value (zero dollars, one hour) and 31 equal ones.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

CELLS = 32
AIM_MODEL_MB = 8
"""AIM keeps choosing pairs while its model stays below this; with the packages' 80 it runs for many hours."""


@dataclass(frozen=True)
class Job:
    method: str
    epsilon: float
    delta: float
    seed: int
    train: Path
    out: Path
    columns: dict[str, dict[str, Any]]  # name to {"min", "max"} or {"categories"}

    @property
    def numeric(self) -> dict[str, tuple[int, int]]:
        return {name: (c["min"], c["max"]) for name, c in self.columns.items() if "categories" not in c}

    @property
    def discrete(self) -> dict[str, list[str]]:
        return {name: c["categories"] for name, c in self.columns.items() if "categories" in c}

    def rows(self) -> pd.DataFrame:
        """Whole numbers and text."""
        kinds = {name: "int64" if name in self.numeric else "str" for name in self.columns}
        return pd.read_csv(self.train, dtype=kinds, keep_default_na=False)

    def finish(self, rows: pd.DataFrame, package: str, **said: Any) -> None:
        """Numbers are rounded and kept in bounds. A label that is none (some peers add one for empty cells, which Adult
        does not have) becomes the most frequent one."""
        tidy = pd.DataFrame(index=rows.index)
        for name in self.columns:
            if name in self.numeric:
                tidy[name] = np.round(rows[name].astype(float)).clip(*self.numeric[name]).astype("int64")
            else:
                known = rows[name].astype("str").where(rows[name].astype("str").isin(self.discrete[name]))
                tidy[name] = known.fillna(known.mode()[0])
        tidy.to_csv(self.out, index=False)
        self.out.with_suffix(".said.json").write_text(json.dumps({"version": f"{package} {version(package)}", **said}))


def read_job() -> Job:
    content = json.loads(Path(sys.argv[1]).read_text())
    return Job(**content | {"train": Path(content["train"]), "out": Path(content["out"])})


def cuts(low: int, high: int) -> list[int]:
    """Upper ends of the cells, the last one excepted: cell 0 is the lowest value alone."""
    ends: list[int] = np.unique(np.floor(np.linspace(low, high, CELLS)).astype(int))[:-1].tolist()
    return ends


def to_cells(values: pd.Series, low: int, high: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.searchsorted(cuts(low, high), values.to_numpy(), side="left")


def from_cells(
    cells: np.ndarray[Any, Any], low: int, high: int, rng: np.random.Generator
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A whole number drawn evenly from each cell."""
    ends = np.array([low - 1, *cuts(low, high), high])
    which = cells.astype(int)
    drawn: np.ndarray[Any, np.dtype[np.int64]] = rng.integers(ends[which] + 1, ends[which + 1] + 1)
    return drawn
