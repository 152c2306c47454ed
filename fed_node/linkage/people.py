"""A party's people: one row each, found by the key column, and pseudonyms that only key holders can make.

Whatever the rows are, something is made of them: a row without a key is left out, of several rows of one person the
first counts, and a row that does not fit the schema keeps its person's place and counts nowhere. All of it is told in
the party's own log and by `fedsynth node check-data`, where people decide; nothing is refused because of a row.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fed_node.source import DataReport, Source, check_data, keyed_pieces
from fed_node.source.growing import Growing
from synth.encoding.contingency import Ints
from synth.encoding.records import FIRST_ROW, SHOWN_ROWS, Codec, Problem, Records
from synth.linkage.linked import Tokens
from synth.linkage.own import own_table
from synth.plan import Plan
from synth.schema import Schema

log = logging.getLogger("fed_node")

NOBODY = -1
TOKEN_BYTES = 8


@dataclass(frozen=True)
class People:
    """Everybody once. `record` is where a person's cells are; NOBODY where they did not fit the schema."""

    keys: list[str]
    record: Ints
    records: Records

    @classmethod
    def read(cls, source: Source, schema: Schema, key: str) -> People:
        codec, seen, places, used = Codec(schema), dict[str, int](), list[int](), 0
        columns = {name: Growing() for name in schema.released}
        without, again = 0, 0
        for frame in _with_an_empty_one(source, schema, key):
            records, _, left_out = codec.fit_rows(frame)
            for name, values in records.columns.items():
                columns[name].extend(values)
            place = np.where(left_out, NOBODY, used + np.cumsum(~left_out) - 1)
            used += len(records)
            for text, where in zip(key_texts(frame[key], schema), place.tolist(), strict=True):
                if not text or text in seen:
                    without, again = without + (not text), again + bool(text)
                    continue
                seen[text] = len(places)
                places.append(where)
        if without or again:
            log.warning("left out: %d row(s) without a key, %d further row(s) of the same person", without, again)
        gathered = Records({name: column.values for name, column in columns.items()})
        return cls(list(seen), np.array(places, dtype=np.int64), gathered)

    def tokens(self, secret: bytes) -> Tokens:
        """Everybody's pseudonym, in the order of `keys`."""
        return pseudonyms(secret, "person", self.keys)


def pseudonyms(secret: bytes, kind: str, texts: list[str]) -> Tokens:
    """Keyed hashes: the same at every party with the secret, uniform to whoever lacks it."""
    start = hmac.new(secret, f"fedsynth {kind}\0".encode(), hashlib.sha256)
    found = bytearray()
    for text in texts:
        one = start.copy()
        one.update(text.encode())
        found += one.digest()[:TOKEN_BYTES]
    return np.frombuffer(bytes(found), dtype="<u8").astype(np.uint64)


def key_texts(cells: pd.Series, schema: Schema) -> list[str]:
    """Keys as text, without blanks around them; "" where there is none."""
    texts = cells.astype("str").where(cells.notna(), "").str.strip()
    return ["" if text in schema.missing_values else str(text) for text in texts]


def check_people(source: Source, schema: Schema, key: str) -> DataReport:
    """`check_data`, and whether everybody has a key and one row: more than one is for people to mend, not for rules."""
    report = check_data(source, schema)
    if not report.fits and not report.usable:
        return report
    seen: set[str] = set()
    without: list[int] = []
    again: list[int] = []
    row = FIRST_ROW
    for frame in keyed_pieces(source, schema, key):
        for text in key_texts(frame[key], schema):
            if not text or text in seen:
                (again if text else without).append(row)
            seen.add(text)
            row += 1
    empty = Problem(key, "is empty", "give every row its person's key", outcome="is left out with its row")
    double = Problem(key, "is another row's key too", "keep one row a person")
    found = {empty: without, double: again}
    more = tuple(replace(each, cells=len(rows), rows=tuple(rows[:SHOWN_ROWS])) for each, rows in found.items() if rows)
    return DataReport(report.place, report.rows, report.left_out + len(without), (*report.problems, *more))


def check_source(plan: Plan, party: str, source: Source) -> DataReport:
    """How a party's rows fit: the whole schema, or its own columns and the key."""
    if plan.linkage is None:
        return check_data(source, plan.table)
    return check_people(source, own_table(plan, party), plan.linkage.key)


def _with_an_empty_one(source: Source, schema: Schema, key: str) -> Iterator[pd.DataFrame]:
    """A table without rows still has columns of a type."""
    yield pd.DataFrame(columns=[key, *schema.released], dtype="str")
    yield from keyed_pieces(source, schema, key)
