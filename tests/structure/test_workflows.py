"""The workflows of CI, without GitHub: of its form, calling targets that exist, allowed no more than they need."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.charts.tools import CHARTS, wheel

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
SCHEMA = "check_jsonschema/builtin_schemas/vendor/github-workflows.json"  # SchemaStore's
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
each_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=[path.stem for path in WORKFLOWS])


def _read(path: Path) -> dict[str, Any]:
    """YAML 1.1 takes the key `on` for a truth value; GitHub does not."""
    content = yaml.safe_load(path.read_text())
    return {("on" if key is True else str(key)): value for key, value in content.items()}


def _schema() -> dict[str, Any]:
    with zipfile.ZipFile(wheel("check-jsonschema==0.39.0")) as archive:
        found: dict[str, Any] = json.loads(archive.read(SCHEMA))
    return found


def _steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in _read(path)["jobs"].values() for step in job["steps"]]


@each_workflow
def test_it_is_of_githubs_form(path: Path) -> None:
    jsonschema.Draft7Validator(_schema()).validate(_read(path))


def test_the_schema_refuses_what_github_would() -> None:
    content = _read(ROOT / ".github" / "workflows" / "tests.yaml")
    content["jobs"]["tests"]["step"] = content["jobs"]["tests"].pop("steps")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(_schema()).validate(content)


@each_workflow
def test_it_calls_targets_that_exist(path: Path) -> None:
    called = {name for step in _steps(path) for name in re.findall(r"\bmake ([a-z-]+)", step.get("run", ""))}
    assert called <= TARGETS


@each_workflow
def test_it_may_write_only_where_it_must_and_ends(path: Path) -> None:
    content = _read(path)
    assert content["permissions"]["contents"] == "read"
    assert set(content["permissions"]) - {"contents"} <= ({"packages"} if path.stem == "release" else set())
    assert all(job["timeout-minutes"] <= 180 for job in content["jobs"].values())


@each_workflow
def test_no_step_pastes_words_of_strangers_into_a_shell(path: Path) -> None:
    """Titles and names of branches are anybody's; they come through the environment or not at all."""
    for step in _steps(path):
        pasted = set(re.findall(r"\$\{\{\s*([a-z_.]+)", step.get("run", "")))
        assert all(each.startswith("matrix.") for each in pasted), step


def test_every_gate_of_ci_is_there() -> None:
    called = {
        name for path in WORKFLOWS for step in _steps(path) for name in re.findall(r"\bmake ([a-z-]+)", str(step))
    }
    assert {"test", "demo", "fuzz", "test-slow", "test-kind", "test-kind-nightly", "images", "sbom"} <= called
    pushed = str(_steps(ROOT / ".github" / "workflows" / "release.yaml"))
    assert all(word in pushed for word in ("docker push", "helm push", *CHARTS))
