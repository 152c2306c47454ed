"""The engines that count for us, and the few things in which they differ.

An engine is here if the tests hold its counts against ours, to the unit. Others that Ibis speaks hand over their rows
piece by piece, and we count: slower, but the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fed_node.source.engines.expressions import Expression, array_of, exactly, function, tree
from synth.encoding.contingency import Ints

BLOCK = 64  # thresholds


@dataclass(frozen=True)
class Dialect:
    """`nanoseconds`: whether moments can be read to the nanosecond. `far_years`: what a day before year 1 or after 9999
    is, which Python cannot hold: a day like others, no day at all, or empty."""

    name: str
    has_histogram: bool = False
    finds_buckets: bool = False  # width_bucket over an array
    wide_decimals: bool = False  # beyond what a float64 holds, converted to the nearest one
    nanoseconds: bool = False
    sha256: str = "SHA256({})"  # of a text, in a form that is ordered as its bytes are: digits, or bytes
    far_years: str = "fit"

    def reached(self, value: Expression, dtype: str, bounds: Sequence[str]) -> Expression:
        """How many of the bounds, in their order, are not above the value."""
        if self.finds_buckets:
            width_bucket = function("width_bucket", (dtype, f"array<{dtype}>"), "int64")
            return width_bucket(value, array_of(bounds, dtype))
        blocks = [bounds[start : start + BLOCK] for start in range(0, len(bounds), BLOCK)]
        leaves = [
            number * BLOCK + array_of(block, dtype).filter(lambda bound: bound <= value).length()
            for number, block in enumerate(blocks)
        ]
        return tree(value, [exactly(block[0], dtype) for block in blocks[1:]], leaves)


DIALECTS = {
    "duckdb": Dialect("duckdb", has_histogram=True, nanoseconds=True),
    "postgres": Dialect(
        "postgres",
        finds_buckets=True,
        wide_decimals=True,
        sha256="SHA256(CONVERT_TO({}, 'UTF8'))",
        far_years="unreadable",
    ),
}


def fetched(engine: Any, query: str, width: int) -> Ints:
    """What a query for so many columns of whole numbers says, line by line."""
    match engine.name:
        case "duckdb":
            found = engine.con.sql(query).to_arrow_table()
            return np.stack([column.to_numpy() for column in found.columns], axis=1).astype(np.int64)
        case "postgres":
            with engine.con.cursor() as cursor:
                lines = cursor.execute(query).fetchall()
        case _:
            lines = engine.raw_sql(query).collect()
    return np.array([tuple(line) for line in lines], dtype=np.int64).reshape(len(lines), width)
