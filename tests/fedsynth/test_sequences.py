"""A panel from file to file: drafted, run, reported, drawn from again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from fedsynth.api import draft_schema, synthesize
from fedsynth.cli import app
from fedsynth.report.dynamics import dynamics
from fedsynth.simulation.whole_units import partition_units, units_in
from synth.metrics import sequence_detection, sequence_prediction
from synth.metrics.evaluation_views import SequenceView
from synth.metrics.sequence_view import sequence_view
from synth.plan import parse_plan, parse_schema


def visits(people: int = 150) -> pd.DataFrame:
    """Three visits each; a score that stays near the person's own mean."""
    rng = np.random.default_rng(1)
    own = rng.normal(50, 15, people)
    return pd.DataFrame(
        {
            "patient_id": np.repeat(np.arange(1000, 1000 + people), 3),
            "visit": np.tile([1, 2, 3], people),
            "sex": np.repeat(rng.choice(["f", "m"], people), 3),
            "score": np.clip(np.repeat(own, 3) + rng.normal(0, 3, 3 * people), 0, 100).round(1),
        }
    )


def test_a_draft_recognises_a_panel() -> None:
    schema = draft_schema(visits())
    assert schema.sequence is not None
    assert (schema.owner, schema.sequence.time, schema.sequence.length) == ("patient_id", "visit", 3)
    assert (schema.sequence.shortest, schema.sequence.static) == (3, ["sex"])
    unordered = draft_schema(visits().drop(columns="visit"))
    assert (unordered.subject, unordered.sequence) == ("patient_id", None)
    alone = draft_schema(visits().drop_duplicates("patient_id"))
    assert (alone.subject, alone.sequence) == (None, None)


def test_nobody_is_at_two_pretend_parties() -> None:
    schema = draft_schema(visits())
    content = {
        "name": "p",
        "parties": [{"name": "a", "rows": 50}, {"name": "b", "rows": 50}],
        "schema": schema.model_dump(mode="json"),
        "privacy": {"epsilon": 1.0, "delta": 1e-5},
    }
    parts = partition_units(visits(), parse_plan(content), "iid", 0)
    people = [set(part["patient_id"]) for part in parts.values()]
    assert not people[0] & people[1]
    assert sum(units_in(part, schema) for part in parts.values()) == 150
    series = content | {"schema": {"columns": {"x": {"kind": "integer", "min": 0, "max": 9}}, "sequence": SERIES}}
    cut = partition_units(pd.DataFrame({"x": range(10)}), parse_plan(series), "iid", 0)
    assert [part["x"].tolist() for part in cut.values()] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


SERIES = {"length": 4, "unit": "step"}


def test_a_panel_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence_prediction, "STEPS", 20)
    monkeypatch.setattr(sequence_detection, "STEPS", 20)
    result = synthesize(visits(), schema=draft_schema(visits()), epsilon=8.0, out=tmp_path / "run", progress=False)
    assert result.certificate.claim.relation == "add or remove one person at one party"
    assert "Of every person at most 3 rows are used" in result.certificate.sampling
    assert result.table["patient_id"].nunique() == 150
    assert result.table.groupby("patient_id")["visit"].apply(list).map(lambda steps: steps == [1, 2, 3]).all()
    assert (result.table.groupby("patient_id")["sex"].nunique() == 1).all()
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert set(report["sequences"]["controls"]) == {"persistence", "data_free", "constant"}
    assert "do they move as the real ones do?" in (tmp_path / "run" / "report.html").read_text()
    model, drawn = str(tmp_path / "run" / "model.npz"), tmp_path / "more.csv"
    told = CliRunner().invoke(app, ["sample", model, "--sequences", "7", "--length", "2", "--out", str(drawn)])
    assert told.exit_code == 0, told.output
    assert pd.read_csv(drawn).groupby("patient_id").size().tolist() == [2] * 7
    assert CliRunner().invoke(app, ["sample", model, "--length", "9"]).exit_code != 0
    checked = CliRunner().invoke(app, ["verify", str(tmp_path / "run" / "certificate.json"), "--unsigned"])
    assert "person" in " ".join(checked.output.split())


def test_a_series_is_continued_to_any_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence_prediction, "STEPS", 5)
    monkeypatch.setattr(sequence_detection, "STEPS", 5)
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"load": np.clip(50 + np.cumsum(rng.normal(0, 1, 600)), 0, 100).round(1)})
    column = {"kind": "continuous", "min": 0, "max": 100, "decimals": 1}
    label = {"kind": "categorical", "categories": ["low", "high"]}
    table["state"] = np.where(table["load"] > table["load"].median(), "high", "low")
    schema = parse_schema({"columns": {"load": column, "state": label}, "sequence": SERIES})
    result = synthesize(table, schema=schema, epsilon=20.0, out=tmp_path / "run", progress=False, seed=1)
    assert result.certificate.claim.relation == "blank one time step at one party"
    assert result.table.columns.tolist() == ["sequence", "step", "load", "state"]
    assert result.table.groupby("sequence").size().tolist() == [4] * 150
    drawn = tmp_path / "long.csv"
    asked = ["sample", str(tmp_path / "run" / "model.npz"), "--sequences", "3", "--length", "50", "--out", str(drawn)]
    assert CliRunner().invoke(app, [*asked, "--seed", "1"]).exit_code == 0
    long = pd.read_csv(drawn)
    assert long.groupby("sequence").size().tolist() == [50] * 3
    assert long["load"].between(0, 100).all()
    assert long.groupby("sequence")["load"].diff().abs().mean() < 12  # it goes on from where it is; 33 if it did not


def test_the_report_draws_every_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence_prediction, "STEPS", 5)
    monkeypatch.setattr(sequence_detection, "STEPS", 5)
    rng = np.random.default_rng(0)
    real, made = rng.random((40, 5, 2)), rng.random((40, 5, 2))
    view = sequence_view(["alpha", "beta"], real, made, None)
    assert isinstance(view, SequenceView)
    html = str(dynamics(view))
    assert html.count("<polyline") == 2 * (5 + 5 + 4 + 4)
    assert "alpha" in html
    assert "needs no data" in html
    assert dynamics(None) is None
