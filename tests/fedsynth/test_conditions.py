"""Which rows are asked for: every form, what contradicts itself, and that the rows drawn are those."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from fedsynth.cli import app
from fedsynth.conditions import parse_conditions
from fedsynth.drawing import draw_rows
from fedsynth.model_file import Model
from synth.encoding.records import Codec
from synth.errors import InputError
from synth.plan import parse_plan, parse_schema
from tests.small import SCHEMA, plan_content, table

TABLE = parse_schema(
    SCHEMA
    | {
        "columns": SCHEMA["columns"]
        | {"seen": {"kind": "datetime", "min": "2020-01-01", "max": "2021-12-31", "precision": "minute",
                    "format": "%Y-%m-%d %H:%M"}}
    }
)  # fmt: skip
ROWS = Codec(TABLE).encode(table(400).assign(ward="a", seen=[f"2020-03-0{1 + n % 9} 12:30" for n in range(400)]))
FRAME = Codec(TABLE).decode(ROWS)


def held(*sentences: str) -> pd.DataFrame:
    return FRAME[parse_conditions(sentences, TABLE).hold(ROWS)]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("age > 50", FRAME["age"] > 50),
        ("age>=50", FRAME["age"] >= 50),
        ("age < 30.5", FRAME["age"] < 30.5),
        ("age = 40", FRAME["age"] == 40),
        ("age != 40", FRAME["age"] != 40),
        ("age in 18..40", FRAME["age"].between(18, 40)),
        ("age in 20, 30, 40", FRAME["age"].isin([20, 30, 40])),
        ("dose <= 5", FRAME["dose"] <= 5),
        ("sex = f", FRAME["sex"] == "f"),
        ("sex=f", FRAME["sex"] == "f"),
        ("ward in {a, c}", FRAME["ward"].isin(["a", "c"])),
        ("died != yes", FRAME["died"] == "no"),
        ("admitted >= 2021-01-01", FRAME["admitted"] >= "2021-01-01"),
        ("admitted in 2020-02-01..2020-02-29", FRAME["admitted"].str.startswith("2020-02")),
        ("seen = 2020-03-02", FRAME["seen"].str.startswith("2020-03-02")),
        ("seen <= 2020-03-02", FRAME["seen"] < "2020-03-03"),
        ("seen > 2020-03-02", FRAME["seen"] >= "2020-03-03"),
    ],
)
def test_every_form_means_what_it_says(sentence: str, expected: pd.Series[bool]) -> None:
    pd.testing.assert_frame_equal(held(sentence), FRAME[expected.fillna(False)])


def test_conditions_narrow_each_other() -> None:
    assert len(held("age > 30", "age < 40", "sex = f")) == len(
        FRAME[FRAME["age"].between(31, 39) & (FRAME["sex"] == "f")]
    )
    mapped = parse_conditions({"age": (31, 39), "sex": "f", "ward": ["a", "b"]}, TABLE)
    assert mapped.hold(ROWS).sum() == len(held("age in 31..39", "sex = f", "ward in a, b"))


@pytest.mark.parametrize(
    ("sentences", "says"),
    [
        (["sex = f", "sex = m"], "contradicts"),
        (["age > 50", "age < 40"], "contradicts"),
        (["age > 50", "age < 51"], "contradicts"),  # between two whole numbers
        (["age > 100"], "0 to 100"),
        (["age = 3.5"], "no value"),
        (["sex > f"], "no order"),
        (["sex = x"], "labels are: f, m"),
        (["weight > 3"], "no column"),
        (["patient = p1"], "identifier"),
        (["age > old"], "no number"),
        (["age > nan"], "no number"),
        (["admitted > soon"], "no time"),
        (["age in 3.."], "both ends"),
        (["age"], "no condition"),
        ([""], "no condition"),
    ],
)
def test_what_no_row_can_fulfil_is_a_sentence(sentences: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        parse_conditions(sentences, TABLE)


@given(low=st.integers(-20, 120), high=st.integers(-20, 120))
def test_ranges_hold_exactly_or_are_refused(low: int, high: int) -> None:
    possible = max(low, 0) <= min(high, 100)
    if not possible:
        with pytest.raises(InputError):
            parse_conditions([f"age >= {low}", f"age <= {high}"], TABLE)
        return
    kept = parse_conditions([f"age >= {low}", f"age <= {high}"], TABLE).hold(ROWS)
    np.testing.assert_array_equal(kept, FRAME["age"].between(low, high))


@pytest.fixture(scope="module")
def model() -> Model:
    """Without privacy and parties: only the drawing is of interest here."""
    from tests.synth.synthesizers.test_marginals import Federation

    plan = parse_plan(plan_content({"name": "marginals"}, parties=1, rows=2000, privacy="none") | {
        "secure_sum": {"statistics": "plain", "updates": "plain", "colluders": 0}
    })  # fmt: skip
    trained = Federation(plan, {"party-1": Codec(plan.table).fit(table(2000))[0]}).trained()
    return Model("a model", plan, trained.state())


def test_rows_drawn_fulfil_all_conditions(model: Model) -> None:
    where = ["age in 60..70", "sex = f", "admitted >= 2021-01-01", "ward in a, b"]
    rows = draw_rows(model, 50, where, seed=1)
    assert len(rows) == 50
    assert rows["age"].between(60, 70).all()
    assert set(rows["sex"]) == {"f"}
    assert (rows["admitted"] >= "2021-01-01").all()
    pd.testing.assert_frame_equal(rows, draw_rows(model, 50, where, seed=1))
    assert not draw_rows(model, 20).equals(draw_rows(model, 20))


def test_what_is_too_rare_is_said(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedsynth.model_file.ATTEMPTS", 2)
    with pytest.raises(InputError, match="too rare"):
        draw_rows(model, 5000, ["age = 99", "dose = 0.01"])


def sampled(*arguments: Any) -> str:
    result = CliRunner().invoke(app, ["sample", *map(str, arguments)])
    assert isinstance(result.exception, InputError), result.output
    return str(result.exception)


def test_a_table_is_written_where_it_may_be(model: Model, tmp_path: Path) -> None:
    from synth.messages import archive

    path = tmp_path / "model.npz"
    path.write_bytes(archive.pack(model.arrays, {"plan": model.plan.model_dump(mode="json", by_alias=True)}))
    kept = tmp_path / "kept.csv"
    kept.write_text("mine")
    assert "exists already" in sampled(path, "-o", kept)
    assert kept.read_text() == "mine"
    assert "no folder" in sampled(path, "-o", tmp_path / "nowhere" / "x.csv")
    assert ".csv, .csv.gz or .parquet" in sampled(path, "-o", tmp_path / "x.xlsx")
    assert "contradicts" in sampled(path, "--where", "sex=f", "--where", "sex=m")
    for name in ("a.csv", "a.csv.gz", "a.parquet"):
        result = CliRunner().invoke(app, ["sample", str(path), "--rows", "5", "-o", str(tmp_path / name)])
        assert result.exit_code == 0, result.output
    assert len(pd.read_csv(tmp_path / "a.csv.gz")) == len(pd.read_parquet(tmp_path / "a.parquet")) == 5
