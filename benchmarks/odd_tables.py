"""Shapes that nobody tuned on: `python -m benchmarks.odd_tables`; the last line is one JSON object.

Each table is odd in one way. `marginals` with default settings, three parties, ε = 1, δ = 1e-5, one seed. Nothing is
demanded but that it runs; what an analyst would see at once is printed beside what the rows have: the share of the
largest heap, rows beyond the real 99.9 % point, empty cells, the most common label, and what the forecast said.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import stress_tables
from benchmarks.marginals import Bench
from benchmarks.tables import MARGINALS, PARTIES, drawn, peak_mb
from synth.encoding.records import Values
from synth.forecast import forecast
from synth.plan import parse_schema
from synth.schema import Schema

Case = tuple[str, Schema, pd.DataFrame, list[str]]  # with the columns to look at
YES_NO = stress_tables.YES_NO
PRESSURE = {"kind": "integer", "min": 40, "max": 260}


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(15)
    yield "800 × 40, heaps", *_heaps(rng, 800, 40), ["c0"]
    yield "8,000 × 40, heaps", *_heaps(rng, 8_000, 40), ["c0"]
    yield "2,000 × 60, yes-no", *_table({f"c{n}": (YES_NO, _yes_no(rng, 2_000, 0.3)) for n in range(60)}), ["c0"]
    amount = np.round(np.exp(rng.normal(5, 1.5, 5_000)), 2)
    bound = {"kind": "continuous", "min": 0, "max": 1e8, "decimals": 2}
    yield (
        "5,000 × 2, bound 1e8",
        *_table({"paid": (bound, amount), "sick": (YES_NO, _yes_no(rng, 5_000, 0.2))}),
        ["paid"],
    )
    yield "3,000 × 3, 500 labels", *stress_tables.labels(3_000, 3), ["code"]
    empty = np.where(rng.random(4_000) < 0.9, "", np.round(rng.normal(7, 2, 4_000), 1).clip(0, 40).astype(str))
    lab = {"kind": "continuous", "min": 0, "max": 40, "decimals": 1, "missing": True}
    one = {"kind": "categorical", "categories": ["only", "never"]}
    rows = {"lab": (lab, empty), "site": (one, np.full(4_000, "only")), "zero": (PRESSURE, np.full(4_000, 40))}
    yield (
        "4,000 × 4, empty and constant",
        *_table(rows | {"sick": (YES_NO, _yes_no(rng, 4_000, 0.3))}),
        ["lab", "site", "zero"],
    )
    yield "150 × 10, tiny", *_heaps(rng, 150, 10), ["c0"]
    days = np.datetime64("2019-01-01") + rng.integers(0, 1_500, 6_000).astype("timedelta64[D]")
    date = {"kind": "datetime", "min": "2000-01-01", "max": "2049-12-31"}
    yield (
        "6,000 × 2, dates of fifty years",
        *_table({"day": (date, days.astype(str)), "sick": (YES_NO, _yes_no(rng, 6_000, 0.3))}),
        ["day"],
    )
    yield "3,000 × 5, one number from others", *stress_tables.numbers(3_000, 4), ["last"]


def _heaps(rng: np.random.Generator, rows: int, columns: int) -> tuple[Schema, pd.DataFrame]:
    """Blood pressures of which 38 % are exactly 120, and a target."""

    def pressures() -> Any:
        return np.where(rng.random(rows) < 0.38, 120, rng.normal(125, 18, rows)).clip(40, 260).astype(int)

    found = {f"c{n}": (PRESSURE, pressures()) for n in range(columns - 1)}
    return _table(found | {"sick": (YES_NO, _yes_no(rng, rows, 0.4))})


def _yes_no(rng: np.random.Generator, rows: int, share: float) -> Any:
    return np.where(rng.random(rows) < share, "yes", "no")


def _table(columns: dict[str, tuple[dict[str, Any], Any]]) -> tuple[Schema, pd.DataFrame]:
    target = "sick" if "sick" in columns else "c0"
    schema = parse_schema({"columns": {name: column for name, (column, _) in columns.items()}, "target": target})
    return schema, pd.DataFrame({name: cells.astype(str) for name, (_, cells) in columns.items()})


def seen(real: Values, made: Values) -> str:
    """What somebody sees who looks at one column, real beside synthetic."""
    known = real[~np.isnan(real)]
    values, counts = np.unique(known, return_counts=True)
    top, far = values[np.argmax(counts)], np.quantile(known, 0.999)
    told = [f"largest heap {(real == top).mean():.3f}, {(made == top).mean():.3f}"]
    told += [f"median {np.median(known):g}, {np.nanmedian(made) if (~np.isnan(made)).any() else float('nan'):g}"]
    told += [f"beyond 99.9 % {(real > far).sum()}, {(made > far).sum()}"]
    told += [f"empty {np.isnan(real).mean():.3f}, {np.isnan(made).mean():.3f}"] if np.isnan(real).any() else []
    return "; ".join(told)


def main() -> None:
    found: dict[str, float] = {}
    for name, schema, table, columns in cases():
        bench, start = Bench(schema, table, table.head(100), quick=True), time.process_time()
        sizes = [len(part) for part in np.array_split(np.arange(len(table)), PARTIES)]
        told = forecast(bench.plan(1.0, sizes, MARGINALS))
        made = drawn(bench, 1.0, 0)
        found[name] = round(time.process_time() - start, 1)
        print(
            f"{name}: forecast '{told.verdict if told else '-'}', {found[name]} CPU s, {peak_mb():.0f} MB", flush=True
        )
        for column in columns:
            pair = (each.columns[column].astype(np.float64) for each in (bench.records, made))
            print(f"    {column}: {seen(*pair)}", flush=True)
    print(json.dumps({"odd_ok": len(found), "odd_seconds": max(found.values()), "odd_peak_mb": round(peak_mb())}))


if __name__ == "__main__":
    main()
