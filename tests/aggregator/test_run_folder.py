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
from aggregator.states import RunState, Standing, now_text
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


def test_a_run_is_told_to_people_and_to_prometheus(tmp_path: Path) -> None:
    folder = RunFolder.of(tmp_path, PLAN)
    reporter = Reporter(PLAN, folder, "7")
    reporter.stage("training")
    reporter.round(3, 10, {"misfit": 0.5}, 1.25)
    assert standing_of(folder).round == 3
    assert standing_of(folder).state is RunState.running
    labels = f'plan="folder",digest="{PLAN.digest()[:12]}"'
    metrics = metrics_of(folder, [{"party": "north", "online": True}])
    assert 'fedsynth_party_connected{party="north"} 1\n' in metrics
    assert f"fedsynth_run_epsilon{{{labels}}} 1.25\n" in metrics
    assert f'fedsynth_run_state{{{labels},state="running"}} 1\n' in metrics
    reporter.waiting(["north"], "not connected")
    assert f'fedsynth_run_waiting_for{{{labels},party="north"}} 1\n' in metrics_of(folder)
    reporter.failed(Refusal("north", "plan-not-approved"))
    reason = standing_of(folder).reason
    assert reason is not None
    assert reason.code == "plan-not-approved"
    assert "fedsynth node approve" in reason.remedy
    assert f'fedsynth_run_state{{{labels},state="failed"}} 1\n' in metrics_of(folder)


def test_every_metric_has_a_help_and_a_type(tmp_path: Path) -> None:
    folder = RunFolder.of(tmp_path, PLAN)
    Reporter(PLAN, folder, "7").round(1, 2, {}, 0.5)
    lines = metrics_of(folder).splitlines()
    for name in {line.split("{")[0].split()[0] for line in lines if not line.startswith("#")}:
        assert lines.count(f"# TYPE {name} gauge") == 1
        assert sum(line.startswith(f"# HELP {name} ") for line in lines) == 1


def test_a_run_taken_up_again_says_at_once_how_far_it_is(tmp_path: Path) -> None:
    folder = RunFolder.of(tmp_path, PLAN)
    Reporter(PLAN, folder, "7").round(4, 40, {}, 0.5)
    Reporter(PLAN, folder, "8")  # another process
    again = standing_of(folder)
    assert (again.state, again.round, again.rounds, again.epsilon) == (RunState.admitting, 4, 40, 0.5)
    assert again.flower_run == "8"


def test_a_stopped_run_does_not_become_a_failed_one(tmp_path: Path) -> None:
    folder = RunFolder.of(tmp_path, PLAN)
    reporter = Reporter(PLAN, folder, "7")
    folder.report(standing_of(folder).to(RunState.stopped, now_text()))
    reporter.interrupted("superlink-away", "its token is gone")
    assert standing_of(folder).state is RunState.stopped


def test_who_holds_a_folder_is_seen_from_outside(tmp_path: Path) -> None:
    folder = RunFolder.of(tmp_path, PLAN)
    assert not folder.is_taken
    with folder.taken(PLAN):
        assert RunFolder.of(tmp_path, PLAN).is_taken
    assert not folder.is_taken
    folder.forget()
    assert not folder.path.exists()


def standing_of(folder: RunFolder) -> Standing:
    assert folder.standing is not None
    return folder.standing


def metrics_of(folder: RunFolder, nodes: list[dict[str, object]] | None = None) -> str:
    return metrics_text({"superlink": True, "nodes": nodes or [], "runs": [standing_of(folder).to_json()]})
