"""Whatever one row of a file holds, the records of the others are the same: in CSV and Parquet, wherever pieces end."""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import gzip
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from fed_node.source import CsvSource, ParquetSource, SqlSource, check_data, read_records
from synth.encoding.records import Records
from synth.plan import parse_schema
from synth.schema import Schema
from tests.synth.encoding.random_schemas import same

SCHEMA = parse_schema(
    {
        "columns": {
            "name": {"kind": "identifier"},
            "age": {"kind": "integer", "min": 0, "max": 9},
            "ward": {"kind": "categorical", "categories": ["1", "b"], "other": "rest"},
            "smokes": {"kind": "boolean", "false": "no", "true": "yes", "missing": True},
            "seen": {"kind": "datetime", "min": "2020-01-01", "max": "2020-12-31", "missing": True},
            "dose": {"kind": "continuous", "min": 0, "max": 1, "missing": True},
        }
    }
)
HEADER = b"name,age,ward,smokes,seen,dose\n"
QUICK = settings(max_examples=75, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
CELLS = [
    st.text(max_size=4),
    st.sampled_from(["3", "12", "", "x", "2.5", "inf"]),
    st.sampled_from(["1", "1.0", "b", "zz", ""]),
    st.sampled_from(["yes", "no", "maybe", ""]),
    st.sampled_from(["2020-02-01", "1999-01-01", "today", "2020-02-01 00:00:00+01:00", ""]),
    st.sampled_from(["0.25", "7", "1e999", "NA", "nan"]),
]
# Text inside a cell may contain anything but what a stray quote before it could take for the end of its cell.
LINES = st.one_of(
    st.text(max_size=4).filter(lambda text: not text.startswith((",", "\n", "\r"))),
    st.sampled_from(["two\nlines", 'say "so"\n, he said', "a\r\nb", "a\rb"]),
)


def written(cells: Sequence[str], quoting: int = csv.QUOTE_MINIMAL) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n", quoting=quoting).writerow(cells)
    return line.getvalue().encode("utf-8", errors="replace")


good_rows = st.builds(
    lambda name, cells, quoting: written([name, *cells], quoting),
    LINES,
    st.tuples(*CELLS[1:]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
any_bytes = st.lists(
    st.sampled_from([b'"', b",", b"\r", b" ", b"a", b"1", b"\xff", b"\xc3", b"\x00", b'""', b'",'])
).map(b"".join)
any_rows = st.one_of(
    any_bytes.map(lambda row: row + b"\n"),
    st.binary(max_size=20).map(lambda row: row.replace(b"\n", b"") + b"\n"),
    st.tuples(*CELLS).map(lambda cells: ",".join(cells).replace("\n", "").encode(errors="replace") + b"\n"),
    good_rows,
)


def csv_records(folder: Path, rows: Sequence[bytes], schema: Schema = SCHEMA, header: bytes = HEADER) -> Records:
    path = folder / "rows.csv"
    path.write_bytes(header + b"".join(rows))
    return read_records(CsvSource(path=path, separator=","), schema)


@QUICK
@given(
    before=st.lists(good_rows, max_size=4),
    row=any_rows,
    after=st.lists(good_rows, max_size=4),
    block=st.sampled_from([1, 2, 7, 33, 1 << 20]),
)
@example(before=[], row=b'"\n', after=[b"n,3,1,yes,,\n"] * 3, block=7)
@example(before=[], row=b'"\n', after=[b'",","3","1","yes","2020-02-01","0.25"\n'], block=1)
@example(before=[], row=b'n,3,1,yes,,"\n', after=[written(["two\nlines", "3", "1", "yes", "", ""])], block=1 << 20)
def test_one_row_of_a_csv_file_moves_no_other(
    tmp_path: Path, before: list[bytes], row: bytes, after: list[bytes], block: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fed_node.source.csv_file.BLOCK_CHARACTERS", block)
        with_it = csv_records(tmp_path, [*before, row, *after])
        without = csv_records(tmp_path, [*before, *after])
        parts = [csv_records(tmp_path, part) for part in (before, [row], after)]
    assert len(parts[1]) <= 1
    assert same(with_it, Records.concat(parts))
    assert same(without, Records.concat([parts[0], parts[2]]))


@QUICK
@given(rows=st.lists(any_rows, max_size=8), block=st.integers(1, 40))
def test_where_pieces_end_changes_nothing(tmp_path: Path, rows: list[bytes], block: int) -> None:
    """Even among several broken rows, which may close each other's quotes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fed_node.source.csv_rows.LONGEST_QUOTE", 30)
        whole = csv_records(tmp_path, rows)
        report = check_data(CsvSource(path=tmp_path / "rows.csv", separator=","), SCHEMA)
        patch.setattr("fed_node.source.csv_file.BLOCK_CHARACTERS", block)
        assert same(csv_records(tmp_path, rows), whole)
        again = check_data(CsvSource(path=tmp_path / "rows.csv", separator=","), SCHEMA)
    assert (again.rows, again.left_out, set(again.problems)) == (report.rows, report.left_out, set(report.problems))


def test_a_row_longer_than_every_block_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fed_node.source.csv_file.BLOCK_CHARACTERS", 100)
    long = written(["x" * 5000, "3", "1", "yes", "", ""])
    assert csv_records(tmp_path, [long, written(["y", "4", "1", "yes", "", ""])]).columns["age"].tolist() == [3, 4]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_any_line_ends(tmp_path: Path, ends: str) -> None:
    rows = [b"n,3,1,yes,2020-01-02,0.5\n", b'"n",4,"b",no,,\n', b"n,5\n"]
    ended = [row.replace(b"\n", ends.encode()) for row in rows]
    header = HEADER.replace(b"\n", ends.encode())
    assert same(csv_records(tmp_path, ended, header=header), csv_records(tmp_path, rows))


def test_what_cannot_be_read_in_a_compressed_file_is_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(HEADER + b"n,3,1,yes,,\n" * 9 + b'"\xff\n', mtime=0))
    assert len(read_records(CsvSource(path=path), SCHEMA)) == 9


FIELDS = pa.schema(
    [
        ("name", pa.string()),
        ("age", pa.int64()),
        ("ward", pa.int64()),
        ("smokes", pa.bool_()),
        ("seen", pa.timestamp("ns")),
        ("dose", pa.decimal128(20, 4)),
    ]
)
typed_rows = st.tuples(
    st.none(),
    st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(0, 9)),
    st.sampled_from([None, 1, 2, 2**62 + 1]),
    st.sampled_from([None, True, False]),
    st.one_of(st.none(), st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))),
    st.one_of(st.none(), st.decimals(-(10**9), 10**9, places=4)),
)


def parquet_records(folder: Path, rows: Sequence[Any], fields: pa.Schema = FIELDS, schema: Schema = SCHEMA) -> Records:
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(fields)]
    pq.write_table(pa.Table.from_arrays(columns, schema=fields), folder / "rows.parquet")
    return read_records(ParquetSource(path=folder / "rows.parquet"), schema)


@QUICK
@given(
    before=st.lists(typed_rows, max_size=4),
    row=typed_rows,
    after=st.lists(typed_rows, max_size=4),
    size=st.integers(1, 5),
)
def test_one_row_of_a_parquet_file_moves_no_other(
    tmp_path: Path, before: list[Any], row: Any, after: list[Any], size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fed_node.source.parquet_file.ROWS_AT_ONCE", size)
        with_it = parquet_records(tmp_path, [*before, row, *after])
        parts = [parquet_records(tmp_path, part) for part in (before, [row], after)]
    assert len(parts[1]) <= 1
    assert same(with_it, Records.concat(parts))


LONG = 900000000000207008  # an 18-digit code, as SNOMED has them; no real number holds it exactly
CODES = parse_schema(
    {
        "columns": {
            "code": {"kind": "categorical", "categories": [str(LONG)], "missing": True},
            "well": {"kind": "boolean", "false": "no", "true": "yes", "missing": True},
        }
    }
)


def test_an_empty_cell_changes_no_type_in_parquet(tmp_path: Path) -> None:
    """pandas would make real numbers of the codes and objects of the truth values, for all rows of the piece."""
    fields = pa.schema([("code", pa.int64()), ("well", pa.bool_())])
    for rows in ([(LONG, True)], [(LONG, True), (None, None)]):
        records = parquet_records(tmp_path, rows, fields, CODES)
        assert (records.columns["code"][0], records.columns["well"][0]) == (0, 1)


def test_bytes_that_are_no_text_in_parquet_are_one_rows_matter(tmp_path: Path) -> None:
    bad = pa.StringArray.from_buffers(
        2, pa.py_buffer(np.array([0, 18, 19], np.int32)), pa.py_buffer(str(LONG).encode() + b"\xff")
    )
    table = pa.table({"code": bad, "well": pa.array(["yes", "no"])})
    pq.write_table(table, tmp_path / "rows.parquet")
    records = read_records(ParquetSource(path=tmp_path / "rows.parquet"), CODES)
    assert records.columns["code"].tolist() == [0, 1]


@pytest.mark.parametrize(
    "row",
    [
        "(NULL, NULL)",
        f"('{LONG}', 'yes')",
        "('x', 1.5)",
        "(CAST(x'ff' AS TEXT), 'no')",
        "(1e400, -1e400)",
        "(x'00ff', x'')",
    ],
)
def test_one_row_of_a_database_that_types_cells_one_by_one_moves_no_other(tmp_path: Path, row: str) -> None:
    (tmp_path / "url").write_text(f"sqlite:///{tmp_path / 'rows.db'}")
    source = SqlSource(query="SELECT code, well FROM t", url_file=tmp_path / "url")
    with create_engine((tmp_path / "url").read_text()).begin() as connection:
        connection.execute(text("CREATE TABLE t (code, well)"))
        connection.execute(text(f"INSERT INTO t VALUES ({LONG}, 'yes'), ({LONG}, 'no')"))
    before = read_records(source, CODES)
    with create_engine((tmp_path / "url").read_text()).begin() as connection:
        connection.execute(text(f"INSERT INTO t VALUES {row}"))
    after = read_records(source, CODES)
    assert before.columns["code"].tolist() == [0, 0]
    assert same(after.take(slice(0, 2)), before)
    assert len(after) == 3


def test_decimals_of_a_database_are_the_same_label_beside_a_text() -> None:
    """pandas would make real numbers of them, unless one cell of the piece is a text."""
    from synth.encoding.records import Codec

    schema = parse_schema({"columns": {"x": {"kind": "categorical", "categories": ["2.5"], "missing": True}}})
    for cells in ([decimal.Decimal("2.50")], [decimal.Decimal("2.50"), "text"]):
        records, _ = Codec(schema).fit(pd.DataFrame({"x": pd.Series(cells, dtype=object)}))
        assert records.columns["x"][0] == 0
