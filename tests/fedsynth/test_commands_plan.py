"""A plan that writes itself: it can be approved as it is, says why each part is there, and replaces nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedsynth.cli import assembled
from fedsynth.documents import read_plan, write_yaml
from synth.errors import InputError
from tests.small import SCHEMA

ASKED = ["plan", "new", "--epsilon", "2"]


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    path = tmp_path / "docs" / "small.schema.yaml"
    path.write_text(write_yaml(SCHEMA))
    return path


def new(schema: Path, out: Path, *more: str) -> str:
    done = CliRunner().invoke(
        assembled(["plan"]), [*ASKED, "--schema", str(schema), "--out", str(out), *more], catch_exceptions=True
    )
    if isinstance(done.exception, Exception):
        raise done.exception
    return done.output


@pytest.mark.parametrize("parties", [1, 2, 3])
def test_it_holds_as_it_is_written(schema: Path, tmp_path: Path, parties: int) -> None:
    out = tmp_path / "study.yaml"
    said = new(schema, out, *(f"--party=party-{n}=5000" for n in range(parties)))
    plan = read_plan(out)
    assert plan.name == "study"
    assert len(plan.parties) == parties
    assert plan.privacy != "none"
    assert plan.privacy.epsilon == 2
    assert "Forecast" in said
    assert out.read_text().count("# ") >= 4


def test_nothing_is_written_over_or_after_a_mistake(schema: Path, tmp_path: Path) -> None:
    out = tmp_path / "plan.yaml"
    for wrong in ("north", "north=many", "North=10"):
        with pytest.raises(Exception, match=r"NAME=ROWS|lower-case"):
            new(schema, out, f"--party={wrong}")
        assert not out.exists()
    with pytest.raises(InputError, match="twice"):
        new(schema, out, "--party=north=10", "--party=north=10")
    out.write_text("mine")
    with pytest.raises(InputError, match="exists"):
        new(schema, out, "--party=north=5000")
    assert out.read_text() == "mine"


def test_one_file_for_everybody(schema: Path, tmp_path: Path) -> None:
    """What `plan bundle` writes is the plan, schema inside, under the same digest."""
    plan, whole = tmp_path / "study.yaml", tmp_path / "elsewhere" / "whole.yaml"
    new(schema, plan, "--party=a=5000", "--party=b=5000")
    whole.parent.mkdir()
    command = ["plan", "bundle", str(plan), "-o", str(whole)]
    assert CliRunner().invoke(assembled(["plan"]), command).exit_code == 0
    assert read_plan(whole).digest() == read_plan(plan).digest()
    assert read_plan(whole).digest() in whole.read_text()
    assert isinstance(CliRunner().invoke(assembled(["plan"]), command).exception, InputError)


def test_what_is_left_out_is_asked_for(schema: Path, tmp_path: Path) -> None:
    asked = ["plan", "new", "-o", str(tmp_path / "asked.yaml")]
    done = CliRunner().invoke(assembled(["plan"]), asked, input=f"{schema}\nnorth=4000 south=3000\n")
    assert done.exit_code == 0, done.output
    assert [party.rows for party in read_plan(tmp_path / "asked.yaml").parties] == [4000, 3000]
