"""What lost its process is taken up again: by itself, once at a time, and not for ever."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from aggregator.server.reporter import Reporter
from aggregator.server.run_folder import RunFolder
from aggregator.server.supervisor import Supervisor
from aggregator.states import RunState, Standing, now_text
from tests.small import plan_of

PLAN = plan_of({"name": "marginals"}, name="orphan")


@dataclass
class Flower:
    """A SuperLink that takes runs and says what became of them."""

    status: str = "finished:failed"
    submitted: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    away: bool = False
    waiting: list[tuple[str, str]] = field(default_factory=list)

    def begun(self) -> list[tuple[str, str]]:
        return self.waiting

    def submit(self, plan: dict[str, Any], who: str) -> dict[str, Any]:
        if self.away:
            raise httpx.ConnectError("away")
        assert plan["name"] == PLAN.name
        assert who == "supervisor"
        self.submitted.append(f"run-{len(self.submitted) + 2}")
        return {"flower_run": self.submitted[-1]}

    def outcome(self, flower_run: str) -> tuple[str, str]:
        return self.status, ""

    def stop(self, flower_run: str) -> dict[str, Any]:
        if self.away:
            raise httpx.ConnectError("away")
        self.stopped.append(flower_run)
        return {}


@dataclass
class Scene:
    folder: RunFolder
    flower: Flower
    supervisor: Supervisor
    now: float = 0.0

    @property
    def standing(self) -> Standing:
        assert self.folder.standing is not None
        return self.folder.standing

    def later(self, seconds: float) -> None:
        self.now += seconds
        self.supervisor.look()


def scene(tmp_path: Path, automatic: bool = True) -> Scene:
    folder, flower = RunFolder.of(tmp_path, PLAN), Flower()
    with folder.taken(PLAN):
        Reporter(PLAN, folder, "run-1").round(4, 40, {}, 0.5)
    made = Scene(folder, flower, Supervisor(tmp_path, flower, automatic, 600.0))
    made.supervisor.clock = lambda: made.now
    return made


def test_a_run_without_a_process_is_submitted_again_and_says_so(tmp_path: Path) -> None:
    at = scene(tmp_path)
    at.later(0)
    assert at.flower.submitted == ["run-2"]
    assert at.flower.stopped == ["run-1"]
    assert (at.standing.state, at.standing.flower_run, at.standing.round) == (RunState.queued, "run-2", 4)
    assert at.standing.resumed == 1


def test_a_run_with_a_process_is_left_alone(tmp_path: Path) -> None:
    at = scene(tmp_path)
    with at.folder.taken(PLAN):
        at.later(0)
    assert at.flower.submitted == []


def test_one_that_is_queued_at_flower_is_not_submitted_twice(tmp_path: Path) -> None:
    at = scene(tmp_path)
    at.later(0)
    at.flower.status = "pending"
    at.later(100)
    assert at.flower.submitted == ["run-2"]


@pytest.mark.parametrize("state", [RunState.stopped, RunState.failed])
def test_what_a_person_or_a_party_ended_stays_ended(tmp_path: Path, state: RunState) -> None:
    at = scene(tmp_path)
    at.folder.report(at.standing.to(state, now_text()))
    at.later(0)
    assert at.flower.submitted == []


def test_by_policy_a_person_resumes(tmp_path: Path) -> None:
    at = scene(tmp_path, automatic=False)
    at.later(0)
    assert at.standing.state is RunState.interrupted
    assert at.standing.reason is not None
    assert "fedsynth resume orphan" in at.standing.reason.remedy
    at.later(1000)
    assert at.flower.submitted == []


def test_a_superlink_that_is_away_is_asked_later(tmp_path: Path) -> None:
    at = scene(tmp_path)
    at.flower.away = True
    at.later(0)
    at.flower.away = False
    at.later(60)
    assert at.flower.submitted == ["run-2"]


def test_a_run_that_never_gets_on_is_left_to_a_person(tmp_path: Path) -> None:
    at = scene(tmp_path)
    for _ in range(200):
        at.later(5)
        if at.standing.state is RunState.failed:
            break
    assert at.standing.state is RunState.failed
    assert 5 <= len(at.flower.submitted) <= 15  # with pauses in between


def test_a_run_that_gets_on_is_resumed_as_often_as_it_takes(tmp_path: Path) -> None:
    at = scene(tmp_path)
    for done in range(5, 40):
        at.later(100)
        with at.folder.taken(PLAN):
            Reporter(PLAN, at.folder, at.standing.flower_run).round(done, 40, {}, 0.5)
    assert at.standing.state is RunState.running
    assert len(at.flower.submitted) == 35


def test_a_run_is_queued_before_its_process_begins_and_survives_its_first_seconds(tmp_path: Path) -> None:
    """Flower gave a process up that took a minute to start, and nobody would ever have heard of the run."""
    folder, flower = RunFolder.of(tmp_path, PLAN), Flower(status="pending")
    flower.waiting = [("run-1", PLAN.model_dump_json(by_alias=True))]
    at = Scene(folder, flower, Supervisor(tmp_path, flower, True, 600.0))
    at.supervisor.clock = lambda: at.now
    at.later(0)
    assert (at.standing.state, at.standing.flower_run) == (RunState.queued, "run-1")
    at.later(100)
    assert flower.submitted == []
    flower.status = "finished:failed"
    at.later(5)
    assert flower.submitted == ["run-2"]
    assert at.standing.flower_run == "run-2"


def test_a_forgotten_run_does_not_come_back(tmp_path: Path) -> None:
    at = scene(tmp_path)
    at.flower.waiting = [("run-1", PLAN.model_dump_json(by_alias=True))]
    at.later(0)
    at.folder.forget()
    at.later(100)
    assert at.folder.standing is None
