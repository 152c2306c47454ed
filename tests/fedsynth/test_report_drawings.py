"""Charts, maps and labels of the page."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.report.charts import Bar, Span, bars, intervals
from fedsynth.report.columns import per_whole_number
from fedsynth.report.heatmaps import heatmap
from fedsynth.report.lettering import fitted
from fedsynth.report.markup import Markup, element
from fedsynth.report.words import interval, verdict
from synth.metrics.attacks.risk import Interval
from synth.metrics.registry import METRICS
from synth.schema import Integer, Schema
from tests.fedsynth.evaluated import Page, quick_page


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
