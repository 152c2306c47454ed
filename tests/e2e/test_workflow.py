"""What other machines run is what people run: every step of a workflow is a target of the Makefile."""

from __future__ import annotations

import re

import yaml

from tests.e2e.loopback import ROOT


def test_workflows_run_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in (ROOT / ".github" / "workflows").glob("*.yaml"):
        jobs = yaml.safe_load(path.read_text())["jobs"].values()
        commands = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
        assert commands
        for command in commands:
            assert command.split()[0] == "make"
            assert command.split()[1] in targets
