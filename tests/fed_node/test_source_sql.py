"""Queries on real databases: PostgreSQL from the distribution's package, and SQLite."""

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import create_engine, text

from fed_node.source import SqlSource, check_data, read_records, read_table
from synth.errors import InputError
from synth.plan import parse_schema
from tests.fed_node.postgres import postgres

SECRET = "Dr. Sekret"
SCHEMA = parse_schema(
    {
        "columns": {
            "name": {"kind": "identifier"},
            "Sex": {"kind": "categorical", "categories": ["f", "m"], "missing": True},
            "age": {"kind": "integer", "min": 0, "max": 120},
            "score": {"kind": "continuous", "min": 0, "max": 10, "missing": True},
            "seen": {"kind": "datetime", "min": "2020-01-01T00:00:00", "max": "2026-01-01T00:00:00"},
            "smokes": {"kind": "boolean"},
        }
    }
)
QUERY = 'SELECT name, "Sex", age, score, seen, smokes FROM patients ORDER BY age;'
ROWS = 120_000


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with postgres() as address:
        with create_engine(address).begin() as connection:
            connection.execute(
                text(
                    'CREATE TABLE patients (name text, "Sex" char(1), age int, score numeric(4, 2), seen date, '
                    "smokes boolean, born timestamptz DEFAULT now())"
                )
            )
            connection.execute(
                text(
                    f"INSERT INTO patients SELECT '{SECRET}', CASE n % 3 WHEN 0 THEN 'f' WHEN 1 THEN 'm' END, n % 100, "
                    "CASE WHEN n % 7 > 0 THEN (n % 1000) / 100.0 END, DATE '2020-01-01' + n % 1000, n % 2 = 0 "
                    f"FROM generate_series(0, {ROWS - 1}) AS n"
                )
            )
        yield address


@pytest.fixture
def source(url: str, tmp_path: Path) -> SqlSource:
    (tmp_path / "url").write_text(url + "\n")
    return SqlSource(query=QUERY, url_file=tmp_path / "url")


def test_a_query_becomes_records(source: SqlSource) -> None:
    records = read_records(source, SCHEMA)
    assert len(records) == ROWS  # more than one piece
    n = np.arange(ROWS)
    for name, expected in {
        "Sex": n % 3,
        "age": n % 100,
        "score": np.where(n % 7 > 0, (n % 1000) / 100, -1),
        "seen": n % 1000 * 86400.0,
        "smokes": n % 2 == 0,
    }.items():
        found = np.nan_to_num(records.columns[name].astype(float), nan=-1)
        np.testing.assert_allclose(np.sort(found), np.sort(expected.astype(float)))


def test_identifiers_stay_in_the_database(source: SqlSource, url: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        table = read_table(source, SCHEMA)
    assert "name" not in table
    assert SECRET not in table.to_string(max_rows=5)
    assert "geheim" not in caplog.text


def test_the_url_may_come_from_the_environment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SqlSource(query=QUERY + "  ", url_env="PATIENTS_URL")
    with pytest.raises(InputError, match="PATIENTS_URL holds no URL"):
        read_records(source, SCHEMA)
    monkeypatch.setenv("PATIENTS_URL", url)
    assert check_data(source, SCHEMA).fits
    assert "geheim" not in repr(source)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT * FROM patients", "column 'born': is not in the schema"),
        ("SELECT age FROM patients", "is the only one"),
        ("SELECT name, age FROM patients", "column 'Sex': is missing"),
        ("SELECT *, name FROM (" + QUERY.rstrip(";") + ") q", "column 'name': occurs more than once"),
        ("SELECT nothing FROM nowhere", "refused the connection or the query"),
        (QUERY.replace("age,", "CAST(name AS int) AS age,"), "refused"),  # PostgreSQL's own message shows the cell
    ],
)
def test_what_is_wrong_with_a_query_is_named(source: SqlSource, query: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        read_records(SqlSource(query=query, url_file=source.url_file), SCHEMA)
    assert said in str(error.value)
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None


def test_a_date_that_python_does_not_have_is_one_rows_matter(source: SqlSource) -> None:
    """The driver refuses to make an object of it; that must not end the reading."""
    strange = "CASE WHEN age = 0 THEN DATE 'infinity' WHEN age = 1 THEN DATE '0044-03-15 BC' ELSE seen END AS seen"
    read = SqlSource(query=QUERY.replace("seen,", strange + ","), url_file=source.url_file)
    assert len(read_records(read, SCHEMA)) == ROWS * 98 // 100
    assert "cells that are not times" in str(check_data(read, SCHEMA))


@pytest.mark.parametrize(
    ("query", "said", "left"),
    [
        (QUERY.replace("ORDER BY age", "WHERE age < 0"), "has no row", 0),
        (QUERY.replace("age,", "age + 100 AS age,"), "numbers above 120 become 120", ROWS),
    ],
)
def test_what_one_row_can_bring_about_is_told_and_not_refused(
    source: SqlSource, query: str, said: str, left: int
) -> None:
    read = SqlSource(query=query, url_file=source.url_file)
    assert said in str(check_data(read, SCHEMA))
    assert len(read_records(read, SCHEMA)) == left


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql+psycopg://reader:wrong-geheim@localhost:1/x", "refused the connection"),
        ("no url", "not one that SQLAlchemy understands"),
        ("klingon://x", "not one that SQLAlchemy understands"),
        ("", "holds no URL"),
    ],
)
def test_a_wrong_url_is_said_without_its_password(tmp_path: Path, url: str, said: str) -> None:
    (tmp_path / "url").write_text(url)
    with pytest.raises(InputError) as error:
        read_records(SqlSource(query=QUERY, url_file=tmp_path / "url"), SCHEMA)
    assert said in str(error.value)
    assert "geheim" not in str(error.value)


def test_exactly_one_place_for_the_url(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one of them"):
        SqlSource(query=QUERY)
    with pytest.raises(ValueError, match="one of them"):
        SqlSource(query=QUERY, url_env="A", url_file=tmp_path)
    with pytest.raises(InputError, match="cannot read the database's URL"):
        read_records(SqlSource(query=QUERY, url_file=tmp_path / "absent"), SCHEMA)


def test_sqlite(tmp_path: Path) -> None:
    (tmp_path / "url").write_text(f"sqlite:///{tmp_path / 'rows.db'}")
    with create_engine((tmp_path / "url").read_text()).begin() as connection:
        connection.execute(text("CREATE TABLE t (x int, label text)"))
        connection.execute(text("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (2, NULL)"))
    schema = parse_schema(
        {
            "columns": {
                "x": {"kind": "integer", "min": 0, "max": 5},
                "label": {"kind": "categorical", "categories": ["a", "b"], "missing": True},
            }
        }
    )
    records = read_records(SqlSource(query="SELECT x, label FROM t", url_file=tmp_path / "url"), schema)
    assert records.columns["label"].tolist() == [0, 1, 2]
