"""Runs by the clock: one name for each time, whatever is started again; and parties decide by their own policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from aggregator.server.scheduled import dated, due
from fed_node.consent.approvals import check_automatic
from fed_node.consent.policy import Policy
from fed_node.errors import NotApproved
from fedsynth.documents import write_yaml
from synth.errors import InputError
from synth.plan import parse_plan
from tests.small import plan_of

PLAN = plan_of({"name": "marginals"}, name="census")
MINUTES = 29_721_780  # 2026-07-06 03:00 UTC


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "plan.yaml"
    path.write_text(write_yaml(PLAN.model_dump(mode="json", by_alias=True)))
    return path


def test_the_time_is_that_of_the_job_on_old_and_new_clusters() -> None:
    assert due(f"aggregator-at-monthly-{MINUTES}") == due(f"aggregator-at-monthly-{60 * MINUTES}")
    assert f"{due(f'x-{MINUTES}'):%Y-%m-%d %H:%M}" == "2026-07-06 03:00"


def test_a_job_that_starts_again_submits_the_same_plan_and_the_next_one_another(path: Path) -> None:
    first, again, later = (parse_plan(dated(path, f"at-{number}")) for number in (MINUTES, MINUTES, MINUTES + 60))
    assert first.name == "census-20260706T0300"
    assert first.digest() == again.digest()
    assert later.digest() != first.digest()
    assert first.table.digest() == PLAN.table.digest()  # what parties approve automatically by


def test_only_a_schema_that_a_party_named_is_admitted_without_a_person(path: Path) -> None:
    plan = parse_plan(dated(path, f"at-{MINUTES}"))
    limits = {"maximum_epsilon_per_run": 100.0, "maximum_epsilon_in_total": 100.0, "maximum_delta": 0.1}
    check_automatic(Policy.model_validate(limits | {"auto_approve": [PLAN.table.digest()]}), plan)
    for schemas in ([], ["0" * 64], [PLAN.digest()]):
        with pytest.raises(NotApproved, match="waits for approval"):
            check_automatic(Policy.model_validate(limits | {"auto_approve": schemas}), plan)


@pytest.mark.parametrize("job", ["aggregator-run-abc", "", "at-0", "at--5x"])
def test_a_job_that_no_schedule_made_submits_nothing(path: Path, job: str) -> None:
    with pytest.raises(InputError, match="no job that a schedule made"):
        dated(path, job)


@pytest.mark.parametrize(("text", "told"), [("[]", "not a plan"), ("name: " + "x" * 49, "at most 48 characters")])
def test_what_is_no_plan_for_a_schedule_is_told(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "plan.yaml").write_text(text)
    with pytest.raises(InputError, match=told):
        dated(tmp_path / "plan.yaml", f"at-{MINUTES}")
