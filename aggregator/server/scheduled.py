"""A plan that a schedule submits: the same plan under a name of its own each time, since a plan is carried out once.

The name tells which time it was due, read off the job's own name, which Kubernetes makes of that time. So however often
a job's pod is started again, it submits the same plan, and a run that was begun is never begun a second time. Nobody
approves these plans one by one: each party's own policy admits them or does not (`auto_approve`,
`maximum_automatic_runs`), and each is charged like any other.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import yaml

from synth.errors import InputError

LONGEST_NAME = 48  # of the plan; the time comes behind it
SECONDS_FROM = 10**9  # CronJobs of Kubernetes 1.20 count seconds, later ones minutes


def due(job: str) -> dt.datetime:
    """When a CronJob's job was due, by the number at the end of its name."""
    number = job.rpartition("-")[2]
    if not number.isdecimal() or int(number) == 0:
        raise InputError(f"'{job}' is no job that a schedule made: its name does not end with the time it was due")
    seconds = int(number) if int(number) >= SECONDS_FROM else 60 * int(number)
    return dt.datetime.fromtimestamp(seconds, dt.UTC)


def dated(path: Path, job: str) -> dict[str, Any]:
    """The plan of this file, named after the time."""
    plan = yaml.safe_load(path.read_text())
    if not isinstance(plan, dict) or not isinstance(plan.get("name"), str):
        raise InputError("the schedule's plan is not a plan; give the one file that `fedsynth plan bundle` writes")
    if len(plan["name"]) > LONGEST_NAME:
        raise InputError(f"the name of a scheduled plan has at most {LONGEST_NAME} characters: '{plan['name']}'")
    return plan | {"name": f"{plan['name']}-{due(job):%Y%m%dT%H%M}"}
