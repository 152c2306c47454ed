"""The evaluation's command and page: whole, escaped, self-contained, and clear about everything that is not there."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from fedsynth.cli import app
from fedsynth.evaluation.files import certified
from fedsynth.evaluation.quick import quick_evaluation
from fedsynth.report.charts import Bar, Span, bars, intervals
from fedsynth.report.columns import per_whole_number
from fedsynth.report.heatmaps import heatmap
from fedsynth.report.lettering import fitted
from fedsynth.report.markup import Markup, element
from fedsynth.report.page import POLICY, page
from fedsynth.report.subject import Subject, TableFile, provenance
from fedsynth.report.words import interval, verdict
from synth.assessment.record import AssessmentRecord, Figure, Verdict
from synth.certificate.certificate import Certificate
from synth.errors import DataError, InputError
from synth.metrics.attacks.risk import Interval
from synth.metrics.evaluation import Evaluation, Risk, Score
from synth.metrics.registry import FIDELITY, METRICS
from synth.privacy.claims import Claim
from synth.schema import Categorical, Integer, Schema
from tests.small import SCHEMA, table

ROWS = 120
HOSTILE = '<script>alert("x")</script>&\'"'


def evaluated(folder: Path, *options: str, real: pd.DataFrame, synthetic: pd.DataFrame) -> Result:
    real.to_csv(folder / "real.csv", index=False)
    synthetic.to_csv(folder / "synthetic.csv", index=False)
    files = [str(folder / "real.csv"), str(folder / "synthetic.csv")]
    return CliRunner().invoke(app, ["evaluate", *files, "--out", str(folder / "out"), *options])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One full evaluation, by the command, of a table with every kind of column."""
    place = tmp_path_factory.mktemp("evaluated")
    (place / "schema.yaml").write_text(yaml.safe_dump(SCHEMA, sort_keys=False))
    table(ROWS, seed=3).to_csv(place / "holdout.csv", index=False)
    result = evaluated(
        place,
        *("--schema", str(place / "schema.yaml"), "--holdout", str(place / "holdout.csv")),
        real=table(ROWS, seed=1),
        synthetic=table(ROWS, seed=2).drop(columns="patient"),
    )
    assert result.exit_code == 0, result.output
    (place / "summary.txt").write_text(result.stdout)
    return place


@pytest.fixture(scope="module")
def html(folder: Path) -> str:
    return (folder / "out" / "report.html").read_text()


@pytest.fixture(scope="module")
def measured(folder: Path) -> Evaluation:
    document = json.loads((folder / "out" / "evaluation.json").read_text())
    return Evaluation.model_validate(document["evaluation"])


class Page(HTMLParser):
    """Tags in order, whether they nest, and the words people read."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == [], "unclosed elements"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def in_short(evaluation: Evaluation, *promise: Any) -> str:
    """The words at the top of a page about `SCHEMA`."""
    schema = Schema.model_validate(SCHEMA)
    text = assert_sound(page(Subject(evaluation, schema, provenance([], "of this test", schema), *promise))).text
    return text[text.index("In short") : text.index("Headline scores")]


def quick_page(schema: Schema, real: pd.DataFrame, synthetic: pd.DataFrame, holdout: pd.DataFrame | None = None) -> str:
    found = quick_evaluation(real, synthetic, schema, holdout)
    files = [TableFile(role="real", name=HOSTILE, sha256=None, rows=len(real))]
    return page(Subject(found, schema, provenance(files, "of this test", schema)))


def assert_sound(html: str) -> Page:
    found = Page(html)
    written = [found.text, *(value for _, value in found.attributes if value)]
    assert not any(re.search(r"\b([Nn]a[Nn]|inf|None)\b", words) for words in written)
    return found


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


def test_only_elements_are_markup() -> None:
    assert (
        element("b", "<i>", element("i", '"&"'), title='a"b')
        == '<b title="a&quot;b">&lt;i&gt;<i>&quot;&amp;&quot;</i></b>'
    )
    assert isinstance(bars([Bar("<", 0.5, 0.5)], "says"), Markup)


@pytest.mark.parametrize(
    ("metric", "value", "ceiling", "tone"),
    [
        ("tvd_one_way", 0.05, 0.04, "good"),
        ("tvd_one_way", 0.10, 0.04, "fair"),
        ("tvd_one_way", 0.20, 0.04, "poor"),
        ("association_kept", 0.80, 0.81, "good"),
        ("association_kept", 0.30, 0.81, "poor"),
        ("detection_auroc", 0.43, 0.50, "good"),  # below chance is no better at telling apart
        ("detection_auroc", 0.90, 0.50, "poor"),
        ("wd", 0.10, 0.01, "unknown"),  # has no upper end
        ("jsd", None, None, "unknown"),
        ("jsd", 0.10, None, "unknown"),
    ],
)
def test_figures_are_judged_by_their_distance_to_real_data(
    metric: str, value: float | None, ceiling: float | None, tone: str
) -> None:
    assert verdict(METRICS[metric], value, ceiling).tone == tone


@given(label=st.text(max_size=60), width=st.floats(20, 200))
def test_labels_are_shortened_in_the_middle_and_only_if_they_must(label: str, width: float) -> None:
    short = fitted(label, width)
    start, ellipsis, end = short.partition("…")
    assert short == label or (ellipsis and label.startswith(start) and label.endswith(end.rpartition("…")[2]))
    assert fitted(short, width) == short  # what was shortened fits
    assert fitted("soil_type_number_12", 90).endswith("12")


def test_whole_numbers_are_drawn_as_share_per_number() -> None:
    # Two numbers in the first bin, none in the second, one in the third.
    edges, real, synthetic = per_whole_number([0.0, 1.5, 1.8, 2.0], [0.5, 0.0, 0.5], [1.0, 0.0, 0.0])
    assert edges == [-0.5, 1.5, 2.5]
    assert real == [0.25, 0.5]
    assert synthetic == [0.5, 0.0]


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


def certificate_for(table_digest: str) -> Certificate:
    """Signed by nobody, so it never holds; but it may be about the right table."""
    return Certificate(
        run="run",
        plan_digest="0",
        schema_digest="0",
        profile="rigorous",
        code_version="0",
        secure_sum={"minimum_parties": 2},
        noise="Every party added all the noise itself.",
        sampling="No row sampling.",
        claim=Claim(epsilon=1.5, nominal_epsilon=1.5, delta=1e-5, method="pld"),
        simulated=False,
        table_sha256={"synthetic.csv": table_digest},
        statements=[],
    )


def closed_gate() -> AssessmentRecord:
    """An assessment after which the table must not be handed out."""
    return AssessmentRecord(
        coverage=1.0,
        figures={"auroc": Figure(value=0.6, low=0.5, high=0.7)},
        cost=[],
        epsilon=0.1,
        verdicts=[Verdict(limit="minimum_auroc", bound=0.9, outcome="failed")],
    )


def test_a_certificate_is_told_in_words_and_held_against_the_table(
    folder: Path, html: str, measured: Evaluation
) -> None:
    assert "No certificate was given" in html
    found, schema = measured, Schema.model_validate(SCHEMA)
    (folder / "certificate.json").write_text(certificate_for("0" * 64).model_dump_json())
    promise = certified(folder / "certificate.json", folder / "synthetic.csv")
    text = assert_sound(page(Subject(found, schema, provenance([], "of this test", schema), *promise))).text
    assert "changes the odds by a factor of at most e^1.5" in text
    assert text.count("does NOT hold for this table") == 3  # at the top, beside the headline, before the promise
    assert "certificate does not hold" in text
    assert "is not what was certified" in text
    promise = (certificate_for("0" * 64), ())
    text = assert_sound(page(Subject(found, schema, provenance([], "of this test", schema), *promise))).text
    assert "the promise is the certificate: ε = 1.50" in text
    assert "does NOT hold" not in text


def test_an_unreadable_certificate_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "certificate.json").write_text("{}")
    options = ("--certificate", str(tmp_path / "certificate.json"))
    result = evaluated(tmp_path, *options, real=table(10), synthetic=table(10))
    assert isinstance(result.exception, InputError)
    assert "is not a certificate" in str(result.exception)


def test_a_quick_look_is_never_called_safe() -> None:
    schema = Schema.model_validate(SCHEMA)
    text = assert_sound(quick_page(schema, table(60, seed=1), table(60, seed=2), table(60, seed=3))).text
    assert "1 of 7 attacks could be judged" in text
    assert "not fully tested" in text
    assert "no attack succeeded" not in text


def test_a_target_beside_a_schema_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump(SCHEMA, sort_keys=False))
    options = ("--schema", str(tmp_path / "schema.yaml"), "--target", "died")
    result = evaluated(tmp_path, *options, real=table(10), synthetic=table(10))
    assert isinstance(result.exception, InputError)
    assert "--target" in str(result.exception)


def scored(evaluation: Evaluation, **values: tuple[float, float]) -> Evaluation:
    """All headline figures at their ceiling, but for those given with theirs."""
    level = {metric.name: (metric.ideal, metric.ideal) for metric in FIDELITY if metric.headline} | values
    scores = [
        Score(metric=score.metric, value=level[score.metric][0], ceiling=level[score.metric][1])
        if score.metric in level
        else score
        for score in evaluation.scores
    ]
    return evaluation.model_copy(update={"scores": scores})


@pytest.mark.parametrize(
    ("metric", "value", "ceiling", "said"),
    [
        (
            "detection_auroc",
            0.9,
            0.5,
            "a classifier tells real from synthetic rows with AUROC 0.900 (real data: 0.500)",
        ),
        ("association_kept", 0.82, 0.95, "82.0 % of the relations between columns are kept (real data keeps 95.0 %)"),
        ("tvd_two_way", 0.4, 0.1, "pairs of columns are off by 40.0 % (real data by 10.0 %)"),
        ("tvd_one_way", 0.3, 0.0, "single columns are off by 30.0 % (real data by 0.0 %)"),
    ],
)
def test_any_headline_figure_behind_real_data_decides_and_is_named(
    metric: str, value: float, ceiling: float, said: str, measured: Evaluation
) -> None:
    faithful = in_short(scored(measured)).partition("Is it useful?")[0]
    assert "✓ about as good as real data" in faithful
    behind = in_short(scored(measured, **{metric: (value, ceiling)})).partition("Is it useful?")[0]
    assert "! clearly behind real data" in behind
    assert f"Clearly behind real data: {said}." in behind.replace("\u00a0", " ")


def attacked(evaluation: Evaluation, secrets: dict[str, Risk]) -> Evaluation:
    """Every attack judged and none flagged, with these risks secret by secret."""
    harmless = Interval(0.1, 0.0, 0.2)
    risks = [
        risk.model_copy(update={"value": harmless, "null": harmless, "flagged": False}) for risk in evaluation.risks
    ]
    return evaluation.model_copy(update={"risks": risks, "inference_by_column": secrets})


def test_a_secret_that_stands_out_is_named_even_where_no_attack_is_flagged(measured: Evaluation) -> None:
    risk = Risk(metric="inference", value=Interval(0.237, 0.075, 0.398), null=Interval(0.5, 0.4, 0.6))
    short = in_short(attacked(measured, {"sex": risk})).replace("\u00a0", " ")
    assert "✓ no attack succeeded" in short
    assert "No attack beats its control beyond chance." in short
    assert "inference of “sex”: 23.7 % (7.5 % to 39.8 %)" in short
    assert "1 of 3 such intervals lies above 0; by chance alone about one in forty does" in short
    flagged = in_short(attacked(measured, {"sex": risk.model_copy(update={"flagged": True})}))
    assert "no attack succeeded" not in flagged
    assert "~ some secrets leak" in flagged
    assert "guesses of “sex” do, beyond chance" in flagged


def test_nothing_is_green_about_safety_where_the_certificate_does_not_hold(measured: Evaluation, folder: Path) -> None:
    (folder / "certificate.json").write_text(certificate_for("0" * 64).model_dump_json())
    promise = certified(folder / "certificate.json", folder / "synthetic.csv")
    safe = in_short(attacked(measured, {}), *promise).partition("Is it safe?")[2]
    assert "! certificate does not hold" in safe
    assert "✓" not in safe


@pytest.mark.parametrize("rows", [2, 3, 60])
def test_a_table_of_few_rows_gets_a_caution_and_no_tick(rows: int) -> None:
    schema = Schema.model_validate(SCHEMA)
    text = assert_sound(quick_page(schema, table(rows), table(rows), table(200, seed=3))).text
    assert f"the real table has {rows} rows, the synthetic table has {rows} rows. Below 100 rows" in text
    assert "✓" not in text
    assert "Caution" not in quick_page(schema, table(100), table(100))


def wide(columns: int) -> tuple[Schema, pd.DataFrame]:
    names = [f"measurement_number_{place}" for place in range(columns)]
    schema = Schema(columns={name: Integer(min=0, max=9) for name in names})
    return schema, pd.DataFrame({name: [(place + row) % 10 for row in range(20)] for place, name in enumerate(names)})


def test_a_map_of_many_columns_shows_those_that_differ_and_says_so() -> None:
    schema, rows = wide(60)
    html = quick_page(schema, rows, rows.sample(frac=1.0, random_state=1).assign(measurement_number_59=0))
    assert "Shown are the 32 of 60 columns whose relations differ most." in html
    assert html.count("measurement_number_59 × measurement_number_59") == 3  # maps
    assert "Shown are" not in quick_page(*wide(32), wide(32)[1])


def test_a_map_of_few_columns_is_no_stamp_and_spells_their_names() -> None:
    names = ["measurement_number_1", "measurement_number_2", "sex"]
    drawn = heatmap(names, [[1.0] * 3] * 3, 1.0, "says")
    assert "…" not in drawn
    assert 'width="44" height="44"' in drawn
    shortened = heatmap(
        ["a name much longer than any map could have room for at its side", "sex"], [[1.0] * 2] * 2, 1.0, ""
    )
    assert "<title>a name much longer than any map could have room for at its side</title>" in shortened


def test_long_labels_stand_above_their_bars() -> None:
    label = "Married, spouse present and in the armed forces"
    assert label in Page(bars([Bar(label, 0.5, 0.5), Bar("no", 0.5, 0.5)], "says")).words


@pytest.mark.parametrize(("high", "ends"), [(1.0, ["0 %", "50 %", "100 %"]), (0.04, ["0 %", "2.5 %", "5 %"])])
def test_scales_of_attacks_are_in_percent(high: float, ends: list[str]) -> None:
    words = Page(intervals([Span("strangers", Interval(0.0, 0.0, high), "real")], "says")).words
    assert [word.replace("\u00a0", " ") for word in words][:3] == ends


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Interval(0.0, 0.0, 0.013), "0.0 % (0.0 % to 1.3 %)"),
        (Interval(1.0, 0.987, 1.0), "100.0 % (98.7 % to 100.0 %)"),
        (Interval(0.0001, 0.00001, 0.9999), "< 0.1 % (< 0.1 % to > 99.9 %)"),
    ],
)
def test_shares_at_the_ends_are_written_as_they_are(found: Interval, said: str) -> None:
    assert interval(found).replace("\u00a0", " ") == said


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
