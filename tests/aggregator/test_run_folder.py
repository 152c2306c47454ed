"""Runs on the aggregator's volume: one at a time, once, and reported."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from aggregator.server.prometheus import metrics_text
from aggregator.server.reporter import Reporter
from aggregator.server.run_folder import RunFolder, all_runs, named
from synth.errors import InputError, Refusal
from tests.small import plan_of

PLAN = plan_of({"name": "marginals"}, name="folder")


def test_a_folder_is_taken_by_one_process(tmp_path: Path) -> None:
    folder = RunFolder.of(tmp_path, PLAN)
    with folder.taken(PLAN):
        assert json.loads((folder.path / "plan.json").read_bytes())["name"] == "folder"
        with pytest.raises(InputError, match="already"), RunFolder.of(tmp_path, PLAN).taken(PLAN):
            pass
    with folder.taken(PLAN):  # what was taken is given back
        pass


def test_a_released_plan_is_not_taken_again(tmp_path: Path) -> None:
    folder = RunFolder.of(tmp_path, PLAN)
    (folder.path / "release").mkdir(parents=True)
    (folder.path / "release" / "certificate.json").write_text("{}")
    with pytest.raises(InputError, match="another name"), folder.taken(PLAN):
        pass


def test_a_release_travels_as_an_archive(tmp_path: Path) -> None:
    folder = RunFolder.of(tmp_path, PLAN)
    (folder.path / "release").mkdir(parents=True)
    (folder.path / "release" / "synthetic.csv").write_text("age\n1\n")
    with tarfile.open(fileobj=io.BytesIO(folder.archive())) as tar:
        assert tar.getnames() == ["synthetic.csv"]


def test_runs_are_found_by_name_and_digest(tmp_path: Path) -> None:
    folder = RunFolder.of(tmp_path, PLAN)
    Reporter(PLAN, folder, "7")
    assert [run.path for run in all_runs(tmp_path)] == [folder.path]
    assert named(tmp_path, "folder").path == named(tmp_path, PLAN.digest()[:8]).path == folder.path
    with pytest.raises(InputError, match="folder"):
        named(tmp_path, "table")


def test_progress_is_told_to_people_and_to_prometheus(tmp_path: Path) -> None:
    folder = RunFolder.of(tmp_path, PLAN)
    reporter = Reporter(PLAN, folder, "7")
    reporter.connected(2)
    reporter.stage("training")
    reporter.round(3, 10, {"misfit": 0.5}, 1.25)
    assert folder.progress["round"] == 3
    assert folder.progress["state"] == "running"
    labels = f'{{plan="folder",digest="{PLAN.digest()[:12]}"}}'
    metrics = metrics_text([{"party": "north", "online": True}], [folder.progress])
    assert 'fedsynth_party_connected{party="north"} 1\n' in metrics
    assert f"fedsynth_run_epsilon{labels} 1.25\n" in metrics
    assert f"fedsynth_run_parties_connected{labels} 3\n" in metrics
    reporter.failed(Refusal("north", "plan-not-approved"))
    assert folder.progress["error"]["code"] == "plan-not-approved"
    assert f"fedsynth_run_failed{labels} 1\n" in metrics_text([], [folder.progress])
    reporter.finished(2.5)
    assert folder.progress["state"] == "finished"
