"""The evaluation's command and page: whole, escaped, self-contained, and clear about everything that is not there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from fedsynth.report.page import POLICY, page
from fedsynth.report.subject import Subject, provenance
from synth.errors import DataError, InputError
from synth.metrics.evaluation import Evaluation
from synth.metrics.registry import METRICS
from synth.schema import Categorical, Integer, Schema
from tests.fedsynth.evaluated import HOSTILE, ROWS, Page, assert_sound, evaluated, quick_page
from tests.small import SCHEMA, table


def test_every_metric_of_the_registry_has_its_row(html: str) -> None:
    text = assert_sound(html).text
    figures = text[text.index("All figures") :]
    for metric in METRICS.values():
        assert metric.title in figures
        assert metric.meaning in figures


def test_the_page_has_every_section_and_the_links_lead_there(html: str) -> None:
    found = Page(html)
    anchors = {value for key, value in found.attributes if key == "id"}
    links = {value[1:] for key, value in found.attributes if key == "href" and value}
    assert links <= anchors
    assert {
        "short",
        "scores",
        "columns",
        "pairs",
        "usefulness",
        "safety",
        "certificate",
        "figures",
        "sources",
    } == anchors
    assert found.tags.count("svg") > 20


def test_every_column_is_drawn_and_identifiers_are_named_as_left_out(html: str) -> None:
    found = Page(html)
    text, drawn = found.text, [value for key, value in found.attributes if key == "aria-label"]
    for name in ("age", "dose", "sex", "ward", "smoker", "admitted", "died"):
        assert f"{name}: distribution in the real and the synthetic table" in drawn
    assert "identifiers are never compared: patient" in text
    assert re.search(r"admitted .*20(20|21)-\d\d-\d\d", text, re.DOTALL)  # times as dates, not as seconds


def test_the_page_needs_nothing_from_outside(html: str) -> None:
    found = Page(html)
    assert "://" not in html
    assert not {"script", "link", "img", "iframe", "object", "form"} & set(found.tags)
    assert not {"src", "xlink:href", "action", "onload", "onclick"} & {key for key, _ in found.attributes}
    assert all(value and value.startswith("#") for key, value in found.attributes if key == "href")
    assert "url(" not in html
    assert "@import" not in html
    assert ("content", POLICY) in found.attributes
    assert POLICY.startswith("default-src 'none'")


def test_light_dark_paper_and_telephones_are_provided_for(html: str) -> None:
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html
    assert "size: A4" in html
    assert ("name", "viewport") in Page(html).attributes


def test_the_json_holds_the_evaluation_and_its_provenance(folder: Path) -> None:
    document = json.loads((folder / "out" / "evaluation.json").read_text())
    evaluation = Evaluation.model_validate(document["evaluation"])
    assert evaluation.rows_real == evaluation.rows_synthetic == evaluation.rows_holdout == ROWS
    tables = {entry["role"]: entry for entry in document["provenance"]["tables"]}
    assert set(tables) == {"real", "synthetic", "holdout"}
    assert all(re.fullmatch("[0-9a-f]{64}", entry["sha256"]) for entry in tables.values())
    html = (folder / "out" / "report.html").read_text()
    assert all(entry["sha256"] in html for entry in tables.values())


def test_the_summary_names_the_headlines_and_the_files(folder: Path) -> None:
    summary = (folder / "summary.txt").read_text()
    for words in ("Single columns", "Relations kept", "AUROC", "Singling out", "strangers", "report.html"):
        assert words in summary


def test_labels_names_and_descriptions_are_escaped() -> None:
    schema = Schema(
        columns={
            HOSTILE: Categorical(categories=[HOSTILE, "b"], description=HOSTILE),
            "number": Integer(min=0, max=3, description=HOSTILE),
        }
    )
    rows = pd.DataFrame({HOSTILE: [HOSTILE, "b"] * 10, "number": [0, 1, 2, 3] * 5})
    html = quick_page(schema, rows, rows)
    found = assert_sound(html)
    assert "script" not in found.tags
    assert "<script" not in html
    assert found.text.count(HOSTILE) >= 4


@pytest.mark.parametrize(
    ("columns", "cells"),
    [
        pytest.param({"only": {"kind": "integer", "min": 0, "max": 9}}, {"only": [1, 2] * 5}, id="one column"),
        pytest.param(
            {"same": {"kind": "integer", "min": 5, "max": 5}, "c": {"kind": "categorical", "categories": ["x"]}},
            {"same": [5] * 10, "c": ["x"] * 10},
            id="constant columns",
        ),
        pytest.param(
            {
                "empty": {"kind": "continuous", "min": 0, "max": 1, "missing": True},
                "when": {"kind": "datetime", "min": "2020-01-01", "max": "2020-12-31", "missing": True},
                "c": {"kind": "categorical", "categories": ["x", "y"], "missing": True},
            },
            {"empty": [""] * 10, "when": [""] * 10, "c": [""] * 10},
            id="every cell empty",
        ),
    ],
)
def test_degenerate_tables_have_a_page_that_says_what_is_missing(
    columns: dict[str, Any], cells: dict[str, list[Any]]
) -> None:
    schema = Schema.model_validate({"columns": columns})
    rows = pd.DataFrame(cells)
    assert "Not measured" in assert_sound(quick_page(schema, rows, rows)).text
    one_row = rows.head(1)
    assert "too few real rows for a ceiling" in assert_sound(quick_page(schema, one_row, rows)).text


def test_a_target_of_one_class_is_a_stated_omission() -> None:
    schema = Schema.model_validate(SCHEMA)
    real, constant = table(60, seed=1), table(60, seed=2).assign(died="no")
    text = assert_sound(quick_page(schema, real, constant, table(60, seed=3))).text
    assert "the target has only one class in the training table" in text


def test_without_a_schema_one_is_drafted_and_the_report_says_so(tmp_path: Path) -> None:
    result = evaluated(tmp_path, "--json", real=table(80, seed=1), synthetic=table(80, seed=1))
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert "drafted from the real rows" in document["provenance"]["schema_origin"]
    assert document["evaluation"]["utility"] is None
    text = assert_sound((tmp_path / "out" / "report.html").read_text()).text
    assert "drafted from the real rows" in text
    assert "No holdout rows were given" in text
    assert "utility needs a categorical or boolean target" in text


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(lambda rows: rows.drop(columns="age"), "age", id="a column less"),
        pytest.param(lambda rows: rows.assign(extra=1), "extra", id="a column more"),
        pytest.param(lambda rows: rows.assign(age="old"), "'age'", id="text for numbers"),
        pytest.param(lambda rows: rows.assign(sex="x"), "'sex'", id="an unknown label"),
        pytest.param(lambda rows: rows.assign(died=""), "'died'", id="empty where that is not allowed"),
        pytest.param(lambda rows: rows.head(1), "row", id="one row"),
        pytest.param(lambda rows: rows.head(0), "row", id="no rows"),
    ],
)
def test_tables_that_cannot_be_compared_are_refused_with_the_reason(spoil: Any, said: str, tmp_path: Path) -> None:
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump(SCHEMA, sort_keys=False))
    rows = table(30)
    result = evaluated(tmp_path, "--schema", str(tmp_path / "schema.yaml"), real=rows, synthetic=spoil(rows))
    assert isinstance(result.exception, InputError | DataError)
    assert said in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_an_unreadable_certificate_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "certificate.json").write_text("{}")
    options = ("--certificate", str(tmp_path / "certificate.json"))
    result = evaluated(tmp_path, *options, real=table(10), synthetic=table(10))
    assert isinstance(result.exception, InputError)
    assert "is not a certificate" in str(result.exception)


def test_a_target_beside_a_schema_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump(SCHEMA, sort_keys=False))
    options = ("--schema", str(tmp_path / "schema.yaml"), "--target", "died")
    result = evaluated(tmp_path, *options, real=table(10), synthetic=table(10))
    assert isinstance(result.exception, InputError)
    assert "--target" in str(result.exception)


def test_no_figure_says_twice_which_way_is_better(html: str) -> None:
    assert not re.search(r"(lower|higher) is better\. (Lower|Higher) is better", html)


def test_both_tables_train_on_equally_many_rows_and_the_page_says_so(html: str) -> None:
    assert f"{ROWS} synthetic rows, and again from as many real ones" in html


def test_samplings_are_listed_one_by_one(measured: Evaluation) -> None:
    said = ["membership: at most 2 people", "copies: as many real as holdout rows"]
    schema = Schema.model_validate(SCHEMA)
    found = measured.model_copy(update={"samplings": said})
    html = page(Subject(found, schema, provenance([], "of this test", schema)))
    assert all(f"<li>{words}</li>" in html for words in said)
