"""How long a party takes to read five million rows, and how much memory at most.

The file is made first, piece by piece; it is then read in a process of its own, whose largest memory beyond what it
had after its imports is held against the size of the table in memory. `python -m benchmarks.party` runs this.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fed_node.source import read_records_from
from synth.plan import parse_schema

ROWS, PIECE = 5_000_000, 250_000
JOBS = [f"occupation {number}" for number in range(14)]
SCHEMA = {
    "columns": {
        "age": {"kind": "integer", "min": 0, "max": 120},
        "income": {"kind": "continuous", "min": 0, "max": 1e6},
        "glucose": {"kind": "continuous", "min": 0, "max": 50, "missing": True},
        "pressure": {"kind": "continuous", "min": 0, "max": 300},
        "sex": {"kind": "categorical", "categories": ["female", "male"]},
        "occupation": {"kind": "categorical", "categories": JOBS},
        "seen": {"kind": "datetime", "min": "2020-01-01", "max": "2026-01-01"},
        "died": {"kind": "boolean", "false": "no", "true": "yes"},
    }
}
Figures = dict[str, float]


def write_rows(path: Path) -> None:
    rng = np.random.default_rng(1)
    writer = None
    for _ in range(ROWS // PIECE):
        glucose = rng.normal(6, 2, PIECE).clip(0, 50)
        piece = pa.table(
            {
                "age": rng.integers(0, 120, PIECE),
                "income": rng.lognormal(10, 1, PIECE).clip(0, 1e6),
                "glucose": pa.array(glucose, mask=rng.random(PIECE) < 0.05),
                "pressure": rng.normal(120, 20, PIECE).clip(0, 300),
                "sex": np.array(["female", "male"])[rng.integers(0, 2, PIECE)],
                "occupation": np.array(JOBS)[rng.integers(0, len(JOBS), PIECE)],
                "seen": (np.datetime64("2020-01-01") + rng.integers(0, 2190, PIECE)).astype("datetime64[ms]"),
                "died": np.array(["no", "yes"])[rng.integers(0, 2, PIECE)],
            }
        )
        writer = writer or pq.ParquetWriter(path, piece.schema)
        writer.write_table(piece)
    assert writer is not None
    writer.close()


def measure_loading(folder: Path) -> Figures:
    path = folder / "rows.parquet"
    write_rows(path)
    printed = subprocess.run([sys.executable, "-m", __name__, str(path)], check=True, capture_output=True, text=True)
    figures: Figures = json.loads(printed.stdout.splitlines()[-1])
    return figures | {"file_megabytes": path.stat().st_size / 1e6}


def load(path: Path) -> Figures:
    """In a process of its own, as its largest memory is asked for."""
    schema = parse_schema(SCHEMA)
    before_bytes = _largest_memory_bytes()
    began = time.perf_counter()
    records = read_records_from(path, schema)
    seconds = time.perf_counter() - began
    table_bytes = sum(values.nbytes for values in records.columns.values())
    extra_bytes = _largest_memory_bytes() - before_bytes
    return {
        "load_seconds": seconds,
        "load_ratio": extra_bytes / table_bytes,
        "table_megabytes": table_bytes / 1e6,
        "rows": len(records),
    }


def _largest_memory_bytes() -> int:
    """Of this program since it began; the system's usual figure would count the process that started it, too."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


if __name__ == "__main__":
    print(json.dumps(load(Path(sys.argv[1]))))
