"""One cell that a database can hold, in one row: every other row must be read as before, and nothing refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest

from fed_node.source import read_records
from fed_node.source.places import ParquetSource
from synth.encoding.records import Codec
from synth.plan import parse_schema

SCHEMA = parse_schema(
    {
        "columns": {
            "age": {"kind": "integer", "min": 0, "max": 100},
            "sex": {"kind": "categorical", "categories": ["f", "m"]},
            "seen": {"kind": "datetime", "min": "2020-01-01", "max": "2021-01-01", "format": "%Y-%m-%d"},
        }
    }
)
ROW: dict[str, Any] = {"age": "30", "sex": "f", "seen": "2020-05-05"}


def _nested(depth: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    return nested


def test_a_time_outside_the_day_spoils_no_other_row(tmp_path: Path) -> None:
    """Parquet does not forbid it; pyarrow made no object of it, and the run was refused."""
    hour = 3_600_000_000
    ticks = pyarrow.array([hour, 2**62, -1, hour, None], pyarrow.int64()).view(pyarrow.time64("us"))
    rows = {"age": [30] * 5, "sex": ticks, "seen": ["2020-05-05"] * 5}
    pyarrow.parquet.write_table(pyarrow.table(rows), tmp_path / "rows.parquet")
    content = SCHEMA.model_dump(mode="json", by_alias=True)
    content["columns"]["sex"] |= {"categories": ["01:00:00"], "missing": True}
    source = ParquetSource(kind="parquet", path=tmp_path / "rows.parquet")
    assert read_records(source, parse_schema(content)).columns["sex"].tolist() == [0, 1, 1, 0, 1]


@pytest.mark.parametrize("column", list(ROW))
@pytest.mark.parametrize(
    "cell", ["\ud800", "f\udfff", ["\ud800"], [10**5000], {"n": 10**5000}, _nested(100_000)], ids=range(6)
)
def test_a_cell_of_json_spoils_no_other_row(column: str, cell: Any) -> None:
    """A lone surrogate, a number of 5,000 digits in a list, lists within lists: each refused the run ('internal')."""
    rows = [ROW, {**ROW, column: cell}, ROW]
    found, _ = Codec(SCHEMA).fit(pd.DataFrame(rows, dtype=object))
    alone, _ = Codec(SCHEMA).fit(pd.DataFrame([ROW, ROW], dtype=object))
    assert all(np.array_equal(found.columns[name], alone.columns[name]) for name in ROW)
