"""A drafted schema keeps what can be compared, holds on the table it was drafted from, and says what it leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

from fedsynth.cli import app
from fedsynth.draft import draft_schema, left_out
from synth.encoding.records import Codec
from synth.errors import InputError, OutputError
from synth.plan import parse_schema

ROWS = 300
RNG = np.random.default_rng(1)


def drafted(cells: Any) -> dict[str, Any]:
    """The drafted column, after the table has been read with it."""
    table = pd.DataFrame({"x": pd.Series(cells).astype(str), "sex": ["f", "m"] * (len(cells) // 2)})
    content = draft_schema(table, None)
    assert Codec(parse_schema(content)).problems(table) == []
    column: dict[str, Any] = content["columns"]["x"]
    return column


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        pytest.param(RNG.normal(70, 10, ROWS), "continuous", id="weights"),
        pytest.param(RNG.normal(5e5, 1e5, ROWS), "continuous", id="large numbers of many decimals"),
        pytest.param(RNG.choice(75_000, ROWS, replace=False) + 20_000, "integer", id="incomes"),
        pytest.param(RNG.integers(0, 90, ROWS), "integer", id="ages"),
        pytest.param(RNG.permutation(ROWS) + 1, "identifier", id="row numbers"),
        pytest.param(np.arange(ROWS) + 0.0, "identifier", id="row numbers written as reals"),
        pytest.param(RNG.choice(3000, ROWS, replace=False), "identifier", id="row numbers with gaps"),
        pytest.param(RNG.choice(10**8, ROWS, replace=False) + 10**8, "identifier", id="record numbers"),
        pytest.param([10**19 + n for n in range(ROWS)], "identifier", id="keys longer than a number holds"),
        pytest.param(
            pd.date_range("1950-01-01", periods=ROWS, freq="17D").strftime("%Y-%m-%d"), "datetime", id="dates of birth"
        ),
        pytest.param([f"p{n}" for n in range(ROWS)], "identifier", id="names"),
        pytest.param([f"p{n % 65}" for n in range(ROWS)], "identifier", id="free text"),
        pytest.param([f"p{n % 9}" for n in range(ROWS)], "categorical", id="labels"),
        pytest.param(["0.5", "0.25"] * ROWS, "categorical", id="two numbers"),
    ],
)
def test_kinds(cells: Any, kind: str) -> None:
    assert drafted(cells)["kind"] == kind


@pytest.mark.parametrize(
    ("cells", "decimals"),
    [
        (["-1.9e-10", "2.0e-10", "3.5e-10", "4e-10"], 11),
        (["1.25", "1e-3", "7", "7"], 3),
        (["0.5", "1.5E2", "2.25e+1", "3."], 1),
        (["0.5", "4.9e-324", "0.25", "-0.25"], 12),
        (["123456.123456789012", "0.5", "1", "2"], 10),
    ],
)
def test_decimals_are_those_of_the_numbers_written_out(cells: list[str], decimals: int) -> None:
    assert drafted(cells)["decimals"] == decimals


@pytest.mark.parametrize("cell", ["inf", "-inf", "1e999", "1.7e308", "9" * 26])
@pytest.mark.parametrize("others", [["1.5", "2.5", "3.5"], ["15", "25", "35"]])
def test_numbers_that_no_schema_holds_do_not_bound_it(cell: str, others: list[str]) -> None:
    table = pd.DataFrame({"x": [*others, cell]})
    schema = parse_schema(draft_schema(table, None))
    (problem,) = Codec(schema).problems(table)
    assert problem.rows == (5,)


def test_numbers_too_close_for_any_schema_are_refused() -> None:
    with pytest.raises(InputError, match=r"column 'x': .* smaller unit"):
        draft_schema(pd.DataFrame({"x": ["1e-20", "2e-20", "3e-20"]}), None)


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    strange = "p # kind: [bold]"  # YAML would begin a comment in it
    table = pd.DataFrame({strange: [f"p{n}" for n in range(ROWS)], "weight": RNG.normal(70, 10, ROWS)})
    table.to_csv(tmp_path / "rows.csv", index=False)
    found = CliRunner().invoke(app, ["schema", "draft", str(tmp_path / "rows.csv")], env={"COLUMNS": "500"})
    assert found.exit_code == 0, found.output
    for shown in (found.stderr, found.stdout.partition("columns:")[0]):
        assert "LEFT OUT" in shown
        assert repr(strange) in shown
        assert "weight" not in shown
    content = yaml.safe_load(found.stdout)
    assert left_out(content) == [strange]
    assert content["columns"]["weight"]["kind"] == "continuous"
    table[["weight"]].to_csv(tmp_path / "rows.csv", index=False)
    assert "LEFT OUT" not in CliRunner().invoke(app, ["schema", "draft", str(tmp_path / "rows.csv")]).output


def test_a_draft_that_cannot_be_written(tmp_path: Path) -> None:
    pd.DataFrame({"weight": RNG.normal(70, 10, ROWS)}).to_csv(tmp_path / "rows.csv", index=False)
    below = tmp_path / "rows.csv" / "schema.yaml"
    found = CliRunner().invoke(app, ["schema", "draft", str(tmp_path / "rows.csv"), "-o", str(below)])
    assert isinstance(found.exception, OutputError)


def test_class_labels_written_as_whole_numbers_are_labels() -> None:
    table = pd.DataFrame({"grade": [str(n % 12) for n in range(600)], "ward": [str(1 + n % 5) for n in range(600)]})
    table["age"] = [str(20 + n % 60) for n in range(600)]
    drafts = {target: draft_schema(table, target)["columns"] for target in ("grade", "ward")}
    assert drafts["grade"]["grade"]["kind"] == "categorical"
    assert drafts["ward"]["grade"]["kind"] == "integer"  # twelve values, and nobody says that they are classes
    assert [drafts["ward"][name]["kind"] for name in ("ward", "age")] == ["categorical", "integer"]


def test_na_among_codes_is_a_label_and_elsewhere_an_empty_cell_that_is_told() -> None:
    continents = pd.DataFrame({"continent": ["NA", "EU", "AS", ""] * 50, "age": ["1.5", "2.25", "3.5", ""] * 50})
    content = draft_schema(continents, None)
    assert content["columns"]["continent"]["categories"] == ["AS", "EU", "NA"]
    assert content["columns"]["continent"]["missing"]
    assert Codec(parse_schema(content)).problems(continents) == []
    told = draft_schema(pd.DataFrame({"ward": ["surgery", "NA", "other", "x"] * 50}), None)["columns"]["ward"]
    assert told["categories"] == ["other", "surgery", "x"]
    assert "'NA'" in told["description"]
    numbers = draft_schema(continents.assign(age=["1.5", "NA", "3.5", ""] * 50), None)
    assert "missing_values" not in numbers
    assert "'NA'" in numbers["columns"]["continent"]["description"]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (
            ["2020-03-01 10:30:00", "2021-01-02 03:04:05", "2023-05-06 11:31:59"],
            {"precision": "second", "format": "%Y-%m-%d %H:%M:%S"},
        ),
        (
            ["2020-03-01T10:30", "2021-01-02T03:04", "2023-05-06T11:31"],
            {"precision": "minute", "format": "%Y-%m-%dT%H:%M"},
        ),
        (["01.03.2020", "26.05.2023", "07.07.2021"], {"format": "%d.%m.%Y", "min": "2020-01-01", "max": "2023-12-31"}),
        (
            ["01.03.2020 08:15", "26.05.2023 09:45", "07.07.2021 10:00"],
            {"precision": "minute", "format": "%d.%m.%Y %H:%M"},
        ),
        (["31/01/2020", "26/05/2023", "07/07/2021"], {"format": "%d/%m/%Y"}),
        (["01/31/2020", "05/26/2023", "07/07/2021"], {"format": "%m/%d/%Y"}),
        (["2020-03-05", "2020-11-20", "2020-07-07"], {"min": "2020-03-01", "max": "2020-11-30"}),
        (
            ["2020-03-01T10:30:00Z", "2021-01-02T03:04:05Z", "2023-05-06T11:31:59Z"],
            {"kind": "datetime", "precision": "second", "format": "%Y-%m-%dT%H:%M:%SZ"},
        ),
        (["1963", "1999", "2015"], {"kind": "integer", "min": 1960, "max": 2020}),
        (["44.8912", "45.0481", "44.95"], {"kind": "continuous", "min": 44.8, "max": 45.1}),
        (["-0.5", "0.25", "120.125"], {"kind": "continuous", "min": -0.5, "max": 200.0}),
        (["1,5", "2,25", "13,75"], {"kind": "continuous", "written": "1,5", "min": 1.0, "max": 20.0, "decimals": 2}),
        (["1.234,5", "22.000,75", "13,75"], {"kind": "continuous", "written": "1.234,5", "max": 30000.0}),
        (["1,234", "22,000", "1,300"], {"kind": "integer", "written": "1,234.5", "min": 1000, "max": 30000}),
        (["$5.00", "$17.25", "$8.10"], {"kind": "continuous", "affix": "$", "max": 20.0}),
        (["1.234,50 €", "99,00 €", "7,25 €"], {"kind": "continuous", "affix": "€", "written": "1.234,5"}),
    ],
)
def test_cells_as_people_write_them(cells: list[str], expected: dict[str, Any]) -> None:
    """A schema that describes them, so that every cell is read and nothing must be repaired."""
    several = pd.DataFrame({"x": [*cells * 10, *cells], "y": "a"})
    content = draft_schema(several, None)
    column = content["columns"]["x"]
    assert expected.items() <= column.items()
    Codec(parse_schema(content)).encode(several)


def test_a_few_bad_cells_do_not_make_numbers_words() -> None:
    cells = [str(n % 70 + 0.5) for n in range(200)]
    cells[17] = "see file"
    content = draft_schema(pd.DataFrame({"x": cells, "y": ["a", "b"] * 100}), None)
    assert content["columns"]["x"]["kind"] == "continuous"
    assert content["columns"]["x"]["missing"] is True
    assert "see file" not in str(content)
    _, problems = Codec(parse_schema(content)).fit(pd.DataFrame({"x": cells, "y": ["a", "b"] * 100}))
    assert [(problem.cells, problem.outcome) for problem in problems] == [(1, "become empty")]


def test_some_hundred_labels_are_labels_where_rows_share_them() -> None:
    many = pd.DataFrame({"code": [f"K{n % 300:03}" for n in range(3000)], "y": ["a", "b"] * 1500})
    assert draft_schema(many, None)["columns"]["code"]["kind"] == "categorical"
    assert draft_schema(many.head(600), None)["columns"]["code"]["kind"] == "identifier"


def test_a_draft_never_replaces_a_file_and_says_how_to_keep_a_column(tmp_path: Path) -> None:
    rows, out = tmp_path / "rows.csv", tmp_path / "schema.yaml"
    pd.DataFrame({"number": range(200), "y": ["a", "b"] * 100}).to_csv(rows, index=False)
    out.write_text("mine")
    refused = CliRunner().invoke(app, ["schema", "draft", str(rows), "-o", str(out)])
    assert isinstance(refused.exception, InputError)
    assert out.read_text() == "mine"
    done = CliRunner().invoke(app, ["schema", "draft", str(rows), "-o", str(out), "--overwrite"])
    assert done.exit_code == 0, done.output
    assert '{"kind": "integer", "min": 0, "max": 200}' in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.xlsx", b"PK\x03\x04" + bytes(100), "save the sheet as CSV"),
        ("x.csv", b"PK\x03\x04" + bytes(100), "zip archive or a spreadsheet"),
        ("x.csv", bytes(range(256)) * 20, "no text"),
        ("x.csv", b"1,2,3\n4,5,6\n7,8,9\n", "header line"),
        ("x.csv", "naïve,b\nü,1\n".encode("latin-1"), "UTF-8"),
        ("x.csv", b"a,b\n\xff\xfe,1\n\xfc,2\n", "encoding"),
        ("x.csv.gz", b"\x1f\x8b" + b"no gzip at all", "cannot be read"),
    ],
)
def test_what_is_no_table_is_a_sentence(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    result = CliRunner().invoke(app, ["schema", "draft", str(tmp_path / name)])
    assert isinstance(result.exception, InputError), result.output
    assert says in str(result.exception)


@pytest.mark.parametrize("name", ["account_length", "patient_class", "number", "job"])
def test_a_column_is_not_whose_rows_they_are_because_it_repeats(name: str) -> None:
    """Nor because a word in its name might name a person: the column would never be released."""
    cells = [f"kind {n % 700}" if name == "job" else str(n % 90) for n in range(1_000 if name == "job" else 3_000)]
    table = pd.DataFrame({name: cells, "y": ["a", "b"] * (len(cells) // 2)})
    content = draft_schema(table, None)
    assert "subject" not in content
    assert "sequence" not in content
