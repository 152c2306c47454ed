"""The sandbox's aggregator for its operator's commands: the same words to the same control, without a pod."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from fedsynth.operated import Operated
from fedsynth.sandbox import programs
from fedsynth.sandbox.layout import Layout
from fedsynth.sandbox.programs import Program
from synth.audit_log import WHO, caller
from synth.errors import FedsynthError, InputError
from synth.plan import Plan

LOGS = {"run": "aggregator-runner", "superlink": "aggregator-superlink"}


class NotDone(FedsynthError):
    code = "sandbox"
    exit_code = 8


class SandboxAggregator(Operated):
    """The aggregator of one sandbox's folder."""

    def __init__(self, folder: Path) -> None:
        self.layout = Layout(folder.absolute()).require()

    def ask(self, *words: str, typed: str | None = None) -> str:
        layout = self.layout
        told = programs.control(layout.port, layout.certificates, layout.state) | {WHO: caller()}
        command = [sys.executable, "-m", "aggregator.server.control", *words]
        environment = Program(command, told).whole_environment(layout.state.parent / "flwr")
        said = subprocess.run(command, env=environment, input=typed, capture_output=True, text=True, check=False)
        if said.returncode:
            reason = said.stderr.strip().rpartition("error: ")[2] or "the control program failed"
            raise NotDone(f"{reason.rstrip('.')}. Is the sandbox up? `fedsynth sandbox status`.")
        return said.stdout

    def submit(self, plan: Plan) -> dict[str, Any]:
        with tempfile.NamedTemporaryFile("w", suffix=".json", dir=self.layout.state.parent) as file:
            json.dump(plan.model_dump(mode="json", by_alias=True), file)
            file.flush()
            word: dict[str, Any] = json.loads(self.ask("submit", file.name).strip().splitlines()[-1])
        return word

    def progress(self, digest: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads((self.layout.state / "runs" / digest / "progress.json").read_bytes())
        except FileNotFoundError:
            return None
        return found

    def log(self, container: str, lines: int) -> str:
        if container not in LOGS:
            raise InputError(f"a sandbox has no container '{container}'; there are: {', '.join(LOGS)}.")
        path = self.layout.logs / f"{LOGS[container]}.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""
