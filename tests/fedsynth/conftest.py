"""One full evaluation, which most tests of the report look at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from synth.metrics.evaluation import Evaluation
from tests.fedsynth.evaluated import ROWS, evaluated
from tests.small import SCHEMA, table


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def html(folder: Path) -> str:
    return (folder / "out" / "report.html").read_text()


@pytest.fixture(scope="session")
def measured(folder: Path) -> Evaluation:
    document = json.loads((folder / "out" / "evaluation.json").read_text())
    return Evaluation.model_validate(document["evaluation"])
