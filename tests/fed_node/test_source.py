"""Files of every kind become the same records, and every way they can be unfit is named without showing a cell."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fed_node.source import (
    CsvSource,
    ParquetSource,
    check_data,
    read_records,
    read_records_from,
    read_table,
    read_table_as_text,
    source_of,
)
from synth.errors import DataError, InputError
from synth.plan import parse_schema
from synth.printable import unprintable
from synth.schema import Schema

SECRET = "Dr. Sekret"
SCHEMA = parse_schema(
    {
        "columns": {
            "name": {"kind": "identifier"},
            "sex": {"kind": "categorical", "categories": ["f", "m"]},
            "age": {"kind": "integer", "min": 0, "max": 120},
            "score": {"kind": "continuous", "min": 0, "max": 10, "missing": True},
            "seen": {"kind": "datetime", "min": "2020-01-01T00:00:00", "max": "2026-01-01T00:00:00"},
            "smokes": {"kind": "boolean"},
        }
    }
)
HEADER = "name,sex,age,score,seen,smokes\n"
ROWS = f"{SECRET},f,31,4.25,2021-05-06,True\nb,m,64,,2020-01-01,False\n"
TYPED = pd.DataFrame(
    {
        "name": [SECRET, "b"],
        "sex": pd.Categorical(["f", "m"]),
        "age": [31, 64],
        "score": [4.25, None],
        "seen": pd.to_datetime(["2021-05-06", "2020-01-01"]).date,
        "smokes": [True, False],
    }
)
EXPECTED: dict[str, list[float]] = {
    "sex": [0, 1],
    "age": [31, 64],
    "score": [4.25, np.nan],
    "seen": [491 * 86400, 0],
    "smokes": [1, 0],
}


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refused(path: Path, schema: Schema = SCHEMA, **options: Any) -> str:
    """The message, which never shows a cell."""
    source = ParquetSource(path=path) if path.suffix == ".parquet" else CsvSource(path=path, **options)
    with pytest.raises(InputError) as error:
        read_records(source, schema)
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None
    return str(error.value)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", "^"])
@pytest.mark.parametrize("form", ["plain", "gzip", "bom", "windows", "quoted"])
def test_any_csv(tmp_path: Path, separator: str, form: str) -> None:
    text = (HEADER + ROWS).replace(",", separator)
    content = text.encode()
    match form:
        case "gzip":
            content = gzip.compress(content, mtime=0)
        case "bom":
            content = b"\xef\xbb\xbf" + content
        case "windows":
            content = text.replace("\n", "\r\n").encode()
        case "quoted":
            content = text.replace(SECRET, f'"two{separator}\nlines"').encode()
    path = write(tmp_path / "rows.csv", content)
    given_separator = separator if separator == "^" else None
    records = read_records(CsvSource(path=path, separator=given_separator), SCHEMA)
    assert list(records.columns) == list(EXPECTED)
    for name, values in EXPECTED.items():
        np.testing.assert_array_equal(records.columns[name], values)


def test_parquet_gives_the_same_records(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    TYPED.to_parquet(path)
    records = read_records_from(path, SCHEMA)
    for name, values in EXPECTED.items():
        np.testing.assert_array_equal(records.columns[name], values)
    decimals = TYPED.assign(score=pd.Series([4.25, None], dtype=pd.ArrowDtype(pa.decimal128(5, 2))))
    decimals.to_parquet(path)
    np.testing.assert_array_equal(read_records_from(path, SCHEMA).columns["score"], EXPECTED["score"])


def test_identifiers_are_not_handed_over(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", HEADER + ROWS)
    assert list(read_table(source_of(path), SCHEMA).columns) == list(EXPECTED)
    text = read_table_as_text(path)
    assert list(text.columns) == list(SCHEMA.columns)
    assert text["score"].tolist() == ["4.25", ""]
    TYPED.to_parquet(tmp_path / "rows.parquet")
    assert read_table_as_text(tmp_path / "rows.parquet")["age"].tolist() == ["31", "64"]
    assert read_table_as_text(tmp_path / "rows.parquet")["score"].tolist() == ["4.25", ""]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("\n\n\n", "nothing but blank lines"),
        (HEADER.replace("name", "sex") + ROWS, "column 'sex': occurs more than once"),
        (HEADER.replace("age", "years") + ROWS, "column 'age': is missing"),
        (HEADER.replace(",", "~") + ROWS, "check the file's separator"),
        (ROWS, "'(first line)': names none of the declared columns; is there a header line?"),
        (ROWS.replace(",", "~"), "is there a header line?"),
        (b"n\xe4me,sex\n", "another encoding"),
        (b"n\xe4me,sex\n", "Save it as UTF-8 or export it again; a party may set 'encoding' of its source"),
        (gzip.compress((HEADER + ROWS).encode(), mtime=0)[:-12], "cut"),
    ],
)
def test_what_no_row_can_bring_about_is_refused(tmp_path: Path, content: str | bytes, said: str) -> None:
    assert said in refused(write(tmp_path / "rows.csv", content))


FITTING = {"sex": [0, 1], "age": [31, 64]}
NO_ROW = "'(whole rows)': rows without as many cells as the header in"


@pytest.mark.parametrize(
    ("content", "said", "expected"),
    [
        (HEADER, "has no row(s) that can be used", {"sex": [], "age": []}),
        (HEADER.strip(), "has no row(s) that can be used", {"sex": [], "age": []}),
        (HEADER + ROWS.splitlines()[0], "has 1 row(s) that can be used", {"sex": [0], "age": [31]}),
        (HEADER + ROWS + "x,f,1\n", f"{NO_ROW} 1 cell(s), rows 4", FITTING),
        (HEADER + "a,b,f,1,2,2021-01-01,True\n" + ROWS, f"{NO_ROW} 1 cell(s), rows 2;", FITTING),
        (HEADER + f'a,"{SECRET},1\n' + ROWS, f"{NO_ROW} 1 cell(s), rows 2;", FITTING),
        (HEADER + f'a,"{SECRET},1\n' + ROWS + 'a,"b\nc","\n', f"{NO_ROW} 3 cell(s), rows 2, 5, 6;", FITTING),
        ((HEADER + ROWS).encode() + b"\xff\xfe\x00\r\x00\x80", f"{NO_ROW} 1 cell(s), rows 4", FITTING),
        (
            HEADER + "x,f,130,1,2021-01-01,True\n" + ROWS,
            "numbers above 120 become 120",
            {"sex": [0, 0, 1], "age": [120, 31, 64]},
        ),
        (HEADER + ROWS + "x,f,inf,1,2021-01-01,True\n", "infinite numbers are left out with their rows", FITTING),
        (HEADER + ROWS + f"x,{SECRET},1,1,2021-01-01,True\n", "'sex': undeclared labels in 1 cell(s), rows 4", FITTING),
        ((HEADER + ROWS).encode() + b"x,\xff,1,1,2021-01-01,True\n", "set 'encoding' of the source", FITTING),
        ((HEADER + ROWS).encode() + b"x,f\x00,1,1,2021-01-01,True\n", "undeclared labels", FITTING),
    ],
)
def test_what_one_row_can_bring_about_is_told_and_not_refused(
    tmp_path: Path, content: str | bytes, said: str, expected: dict[str, list[int]]
) -> None:
    source = source_of(write(tmp_path / "rows.csv", content))
    records = read_records(source, SCHEMA)
    assert {name: records.columns[name].tolist() for name in expected} == expected
    assert list(records.columns) == list(EXPECTED)
    report = check_data(source, SCHEMA)
    assert said in str(report)
    assert SECRET not in str(report)
    assert report.usable == ("can be used" not in said)
    assert report.rows - report.left_out == len(records)


@pytest.mark.parametrize("row", [b"x,f,1\n", b"x,\xff,1,1,2021-01-01,True\n"])
def test_at_home_whole_rows_and_bytes_are_read_strictly(tmp_path: Path, row: bytes) -> None:
    path = write(tmp_path / "rows.csv", (HEADER + ROWS).encode() + row)
    with pytest.raises(InputError, match="rows 4"):
        read_table(source_of(path), SCHEMA)
    with pytest.raises(InputError, match="rows 4"):
        read_table_as_text(path)


def test_what_the_rules_changed_is_counted_in_the_log_and_shows_no_cell(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "rows.csv", HEADER + ROWS + f"x,{SECRET},130,1,2021-01-01,True\ny\n")
    read_records_from(path, SCHEMA)
    assert sorted(caplog.messages) == [
        "column '(whole rows)', 1 cell(s): rows without as many cells as the header are left out",
        "column 'age', 1 cell(s): numbers above 120 become 120",
        "column 'sex', 1 cell(s): undeclared labels are left out with their rows",
    ]


def test_encodings(tmp_path: Path) -> None:
    schema = parse_schema({"columns": {"stadt": {"kind": "categorical", "categories": ["Köln", "Jena"]}}})
    path = write(tmp_path / "rows.csv", "stadt\nKöln\nJena\n".encode("latin-1"))
    assert "column 'stadt': bytes that are no text" in str(check_data(source_of(path), schema))
    assert read_records(CsvSource(path=path, encoding="latin-1"), schema).columns["stadt"].tolist() == [0, 1]
    assert "no encoding" in refused(path, schema, encoding="klingon")
    broken = CsvSource(path=write(path, b"stadt\nK\x81\x8d\nJena\n"), encoding="cp1252")
    assert read_records(broken, schema).columns["stadt"].tolist() == [1]


def test_what_is_wrong_with_a_parquet_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    assert "does not exist" in refused(path)
    assert "is a folder" in refused(tmp_path)
    assert "is not a file" in refused(Path("/dev/null"))
    write(path, HEADER + ROWS)
    assert "cannot be read as Parquet" in refused(path)
    TYPED.to_parquet(path)
    write(path, path.read_bytes()[:-5])
    assert "cannot be read as Parquet" in refused(path)
    TYPED.assign(sex=pd.Series([["f"], ["m"]], dtype=object)).to_parquet(path)
    assert "column 'sex': holds lists" in refused(path)
    TYPED.assign(extra=1).to_parquet(path)
    assert "column 'extra': is not in the schema" in refused(path)
    TYPED.iloc[:1].to_parquet(path)
    assert "has 1 row" in str(check_data(source_of(path), SCHEMA))
    TYPED.iloc[:0].to_parquet(path)
    assert "has no row" in str(check_data(source_of(path), SCHEMA))
    assert len(read_records_from(path, SCHEMA)) == 0


def test_a_damaged_page_of_parquet_is_said(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pd.concat([TYPED] * 1000).to_parquet(path, compression="gzip")
    whole = bytearray(path.read_bytes())
    whole[200 : len(whole) // 2] = bytes(len(whole) // 2 - 200)
    write(path, bytes(whole))
    assert "cannot be read as Parquet" in refused(path)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_row_numbers_hold_over_many_pieces(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fed_node.source.csv_file.BLOCK_CHARACTERS", 2000)
    monkeypatch.setattr("fed_node.source.parquet_file.ROWS_AT_ONCE", 64)
    schema = parse_schema({"columns": {"x": {"kind": "integer", "min": 0, "max": 9}, "y": {"kind": "boolean"}}})
    table = pd.DataFrame({"x": np.arange(3000) % 10, "y": True})
    table.loc[[5, 1700, 2999], "x"] = 77
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        table.to_parquet(path)
        report = check_data(ParquetSource(path=path), schema)
    else:
        lines = table.to_csv(index=False).splitlines()
        lines[100] = "1"  # row 101: one cell too few
        lines[2000] = "1,2,3"
        report = check_data(CsvSource(path=write(path, "\n".join(lines) + "\n")), schema)
        assert report.problems[0].rows == (101, 2001)
    problem = report.problems[-1]
    assert (problem.column, problem.cells, problem.rows) == ("x", 3, (7, 1702, 3001))
    assert not report.fits
    assert report.usable
    assert "rows 7, 1702, 3001" in str(report)
    records = read_records_from(path, schema)
    assert len(records) == report.rows - report.left_out
    assert records.columns["x"].max() == 9


def test_a_report_of_data_that_fit(tmp_path: Path) -> None:
    report = check_data(source_of(write(tmp_path / "rows.csv", HEADER + ROWS)), SCHEMA)
    assert report.fits
    assert report.rows == 2
    assert str(report).endswith("fits the schema: 2 rows.")
    header = check_data(source_of(write(tmp_path / "rows.csv", HEADER.replace("age", "years") + ROWS)), SCHEMA)
    assert {problem.column for problem in header.problems} == {"age", "years"}


def test_repeated_columns_cannot_be_drafted_from(tmp_path: Path) -> None:
    """They are told by number: without a header line, the names would be somebody's cells."""
    with pytest.raises(DataError, match=r"columns 1, 3 do not have names of their own; is there a header") as refused:
        read_table_as_text(write(tmp_path / "rows.csv", f"{SECRET},f,{SECRET}\n1,2,3\n4,5,6\n"))
    assert SECRET not in str(refused.value)


LABELS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6).filter(lambda label: not unprintable(label))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    labels=st.lists(LABELS, min_size=2, max_size=5, unique=True).filter(
        lambda labels: not {"NA", "NaN", "null"} & set(labels)
    ),
    codes=st.lists(st.integers(0, 1), min_size=2, max_size=20),
    kind=st.sampled_from(["csv", "parquet"]),
)
def test_what_pandas_writes_is_read(tmp_path: Path, labels: list[str], codes: list[int], kind: str) -> None:
    schema = parse_schema(
        {
            "columns": {
                "label": {"kind": "categorical", "categories": labels},
                "n": {"kind": "integer", "min": 0, "max": 99},
            }
        }
    )
    table = pd.DataFrame({"label": [labels[code] for code in codes], "n": range(len(codes))})
    path = tmp_path / f"rows.{kind}"
    if kind == "csv":
        table.to_csv(path, index=False)
    else:
        pq.write_table(pa.Table.from_pandas(table, preserve_index=False), path)
    assert read_records_from(path, schema).columns["label"].tolist() == codes
