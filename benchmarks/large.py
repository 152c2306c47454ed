"""A table that does not fit into memory: 100 million rows × 15 columns in Parquet, counted as a party counts them.

The file is made first, row group by row group, from a fixed seed. A process of its own then answers, as a party with
DuckDB does, the statistics and all 105 pairs of the default family, noise included; the asks in between are the
aggregator's, from what was answered. Figures:

large_seconds   CPU seconds of that process, from its start to the last answer (asks included)
large_peak_mb   its largest memory

`python -m benchmarks.large --rows 10000000` for fewer rows; `--keep FILE` keeps the file, and takes one that is there.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fed_node.source import ParquetSource, open_rows
from synth.interface import Ask, Inquiry, Sum
from synth.plan import Plan, parse_plan
from synth.privacy.noise import seeded_source
from synth.statistics.histograms import StatisticsInquiry
from synth.synthesizers.registry import build

ROWS, GROUP, SEED = 100_000_000, 1_000_000, 15
WARDS = [f"ward {number}" for number in range(40)]
JOBS = [f"occupation {number}" for number in range(14)]
PARTY = "party-1"
COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"kind": "integer", "min": 0, "max": 120},
    "sex": {"kind": "categorical", "categories": ["female", "male"]},
    "ward": {"kind": "categorical", "categories": WARDS, "other": "elsewhere"},
    "occupation": {"kind": "categorical", "categories": JOBS, "missing": True},
    "income": {"kind": "continuous", "min": 0, "max": 1e7},
    "paid": {"kind": "continuous", "min": -1e4, "max": 1e8},
    "glucose": {"kind": "continuous", "min": 0, "max": 50, "missing": True},
    "pressure": {"kind": "integer", "min": 40, "max": 260},
    "weight": {"kind": "continuous", "min": 1, "max": 300, "decimals": 1},
    "visits": {"kind": "integer", "min": 0, "max": 1000},
    "days": {"kind": "integer", "min": 0, "max": 365},
    "admitted": {"kind": "datetime", "min": "2015-01-01", "max": "2025-12-31"},
    "smoker": {"kind": "boolean", "missing": True},
    "emergency": {"kind": "boolean"},
    "died": {"kind": "categorical", "categories": ["no", "yes"]},
}


def plan_for(rows: int) -> Plan:
    return parse_plan(
        {
            "name": "large",
            "schema": {"columns": COLUMNS, "target": "died"},
            "parties": [{"name": PARTY, "rows": rows}, {"name": "party-2", "rows": rows}],
            "synthesizer": {"name": "marginals"},
            "privacy": {"epsilon": 1.0, "delta": 1e-9, "noise": "local"},
            "secure_sum": {"statistics": "plain", "updates": "plain"},
        }
    )


def piece(rng: np.random.Generator, rows: int) -> pa.Table:
    """Heaps, tails, empty cells and some that do not fit, with dependencies on age."""
    age = np.clip(rng.gamma(6.0, 8.0, rows), 0, 119).astype(np.int16)
    paid = np.where(rng.random(rows) < 0.4, 0.0, rng.lognormal(5, 2, rows) - 50)
    return pa.table(
        {
            "age": age,
            "sex": pa.DictionaryArray.from_arrays(rng.integers(0, 2, rows, dtype=np.int8), ["female", "male"]),
            "ward": pa.DictionaryArray.from_arrays(
                rng.integers(0, 42, rows, dtype=np.int8), [*WARDS, "closed", "abroad"]
            ),
            "occupation": pa.DictionaryArray.from_arrays(
                pa.array(rng.integers(0, 14, rows, dtype=np.int8), mask=rng.random(rows) < 0.05), JOBS
            ),
            "income": rng.lognormal(10 + age / 100, 1, rows),
            "paid": paid,
            "glucose": pa.array(rng.normal(5 + age / 50, 1.5, rows), mask=rng.random(rows) < 0.1),
            "pressure": np.where(rng.random(rows) < 0.3, 120, rng.normal(110 + age / 4, 15, rows)).astype(np.int16),
            "weight": rng.normal(75, 15, rows).astype(np.float32),
            "visits": rng.geometric(0.1, rows).astype(np.int32) - 1,
            "days": np.minimum(rng.geometric(0.2, rows), 400).astype(np.int16),
            "admitted": (np.datetime64("2015-01-01") + rng.integers(0, 4018, rows)).astype("datetime64[ms]"),
            "smoker": pa.array(rng.random(rows) < 0.2, mask=rng.random(rows) < 0.02),
            "emergency": rng.random(rows) < 0.3,
            "died": pa.DictionaryArray.from_arrays((rng.random(rows) < age / 600).astype(np.int8), ["no", "yes"]),
        }
    )


def write_rows(path: Path, rows: int) -> None:
    rng, writer = np.random.default_rng(SEED), None
    for start in range(0, rows, GROUP):
        group = piece(rng, min(GROUP, rows - start))
        writer = writer or pq.ParquetWriter(path, group.schema)
        writer.write_table(group)
    assert writer is not None
    writer.close()


def answered(inquiry: Inquiry, ask: Ask, rows: Any) -> Sum:
    answer, _ = inquiry.answer(ask, PARTY, rows, {}, seeded_source(SEED, ask.options["phase"]))
    return Sum.of({PARTY: answer})


def count(path: Path, rows: int) -> dict[str, float]:
    """What a party does: this process's CPU seconds, and its largest memory."""
    plan, began = plan_for(rows), time.monotonic()
    data = open_rows(ParquetSource(path=path, engine="duckdb"), plan.table, path.parent / "scratch")
    statistics = StatisticsInquiry(plan)
    ask = statistics.ask(0)
    assert ask is not None
    statistics.absorb(answered(statistics, ask, data))
    print(f"statistics after {time.monotonic() - began:.0f} s, {_cpu():.0f} CPU s", file=sys.stderr, flush=True)
    training = build(plan)
    training.begin(statistics.result(), seed=SEED)
    ask = training.ask(0)
    assert ask is not None
    tables = len(ask.arrays["cliques"])
    total = answered(training, ask, data).arrays["counts"]
    print(f"{tables} tables of {len(total)} cells after {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"large_seconds": round(_cpu(), 1), "large_peak_mb": round(peak), "large_tables": tables}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def figures(rows: int = ROWS, kept: Path | None = None) -> dict[str, float]:
    """The two numbers, for this many rows; the file is gone afterwards unless it is to be kept."""
    with tempfile.TemporaryDirectory() as folder:
        path = kept or Path(folder) / "rows.parquet"
        if not path.exists():
            write_rows(path, rows)
        print(f"{rows:,} rows, {path.stat().st_size / 1e9:.1f} GB", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "benchmarks.large", "--rows", str(rows), "--count", str(path)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--keep", type=Path, help="where the file is kept")
    parser.add_argument("--count", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    found = count(asked.count, asked.rows) if asked.count else figures(asked.rows, asked.keep)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
