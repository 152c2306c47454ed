"""Files of earlier versions stay readable, and plans keep the digests that somebody approved."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fed_node.ledger.view import LedgerView
from fedsynth.cli import app
from fedsynth.documents import read_plan
from synth import VERSION
from synth.certificate.certificate import Certificate

ROOT = Path(__file__).resolve().parents[2]
OLD = Path(__file__).parent / "version-0.1.0"
FAMILIES = ("bayes", "ctgan", "marginals")
DEFAULTS_THEN = {"statistics_share": 0.1}  # that have changed since


@pytest.mark.parametrize("name", json.loads((OLD / "digests.json").read_text()))
def test_plans_keep_their_digests(name: str) -> None:
    """Once what a plan left to the release is written out as that release had it (an approval keeps it written out)."""
    plan = read_plan(ROOT / "examples" / name)
    if plan.privacy != "none":
        plan = plan.model_copy(update={"privacy": plan.privacy.model_copy(update=DEFAULTS_THEN)})
    assert plan.digest() == json.loads((OLD / "digests.json").read_text())[name]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_saved_plan_is_the_certified_one(family: str) -> None:
    certificate = Certificate.model_validate_json((OLD / family / "certificate.json").read_text())
    assert read_plan(OLD / family / "plan.json").digest() == certificate.plan_digest


@pytest.mark.parametrize("family", FAMILIES)
def test_saved_models_draw_rows(family: str, tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    arguments = ["sample", str(OLD / family / "model.npz"), "--rows", "30", "--seed", "3", "-o", str(out)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    header, *rows = out.read_text().splitlines()
    assert header == (OLD / family / "synthetic.csv").read_text().splitlines()[0]
    assert len(rows) == 30


@pytest.mark.parametrize("family", FAMILIES)
def test_certificates_still_verify(family: str) -> None:
    folder = OLD / family
    arguments = ["verify", "--unsigned", str(folder / "certificate.json"), "--plan", str(folder / "plan.json")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "no time" in result.output


def test_ledgers_open_and_add_up_to_the_same(tmp_path: Path) -> None:
    copy = Path(shutil.copy(OLD / "ledger.sqlite", tmp_path))
    ledger = LedgerView(copy)
    assert ledger.spent().epsilon == pytest.approx(3.369826168335125, rel=1e-6)
    assert [entry.kind for entry in ledger.history()].count("charge") == 4
    assert ledger.verify() == 7
    ledger.close()


def test_the_packages_version_is_the_signed_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION
