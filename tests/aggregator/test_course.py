"""A run is taken up where it was left, and carries out its programme and nothing else."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aggregator import checkpoint
from aggregator.checkpoint import Position
from aggregator.stages import Course
from aggregator.watch import Silent
from synth.errors import InputError, ProtocolError
from synth.interface import Ask, Sum
from synth.messages import archive
from synth.plan import Plan
from tests.fed_node.two_parties import CheapTraining
from tests.small import plan_of

PLAN = plan_of({"name": "ctgan", "rounds": 2}, parties=2)


class Sums:
    """Answers at once, and remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def total(self, ask: Ask, sequence: int) -> Sum:
        self.asked.append(sequence)
        return Sum({"change": np.full(4, float(sequence))}, 1.0, ("party-1", "party-2"))


class Restless(CheapTraining):
    """Asks once more than its settings declare."""

    def ask(self, number: int) -> Ask | None:
        return Ask({"state": self.weights}, {"phase": "training", "round": number}) if number < 3 else None


def course_at(path: Path, plan: Plan = PLAN) -> Course:
    return Course.taken_up(plan, path / "checkpoint.npz", Silent(), seed=1)


def carry_out(course: Course, inquiry: CheapTraining, sums: Any) -> None:
    course.carry_out(inquiry, sums, "training")


def after_statistics(path: Path) -> Course:
    course = course_at(path)
    checkpoint.save(course.path, Position(course.position.run, PLAN.digest(), 1, sequence=1), {})
    return course_at(path)


def test_a_run_continues_with_the_next_ask_and_repeats_none(tmp_path: Path) -> None:
    first, sums = after_statistics(tmp_path), Sums()
    inquiry = CheapTraining(PLAN)
    carry_out(first, inquiry, sums)
    assert sums.asked == [1, 2]
    resumed, again = course_at(tmp_path), CheapTraining(PLAN)
    assert resumed.position == first.position
    carry_out(resumed, again, sums)
    assert sums.asked == [1, 2]
    np.testing.assert_array_equal(again.weights, inquiry.weights)
    assert [(span["first"], span["last"]) for span in resumed.position.sums] == [(1, 2)]


def test_a_family_that_asks_otherwise_than_it_declares_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(ProtocolError, match="has 2 asks by the plan"):
        carry_out(after_statistics(tmp_path), Restless(PLAN), Sums())


def test_a_checkpoint_of_the_version_before_is_read(tmp_path: Path) -> None:
    meta = asdict(Position("run-1", PLAN.digest(), 1, sequence=2)) | {"number": 1}
    arrays = {"statistics/counts": np.arange(3), "synthesizer/weights": np.full(4, 0.5)}
    archive.write_durably(tmp_path / "checkpoint.npz", archive.pack(arrays, meta))
    course, inquiry, sums = course_at(tmp_path), CheapTraining(PLAN), Sums()
    assert set(course.states) == {"statistics", "training"}
    carry_out(course, inquiry, sums)
    assert sums.asked == [2]
    np.testing.assert_array_equal(inquiry.weights, np.full(4, 2.25))


def test_a_checkpoint_of_another_plan_is_refused(tmp_path: Path) -> None:
    course_at(tmp_path)
    with pytest.raises(InputError, match="another plan"):
        course_at(tmp_path, plan_of({"name": "ctgan", "rounds": 3}, parties=2))
