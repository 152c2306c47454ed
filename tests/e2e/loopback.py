"""A whole deployment as processes on this machine: Flower's SuperLink and SuperNodes with TLS and node authentication,
the runner, the parties' workers and task loops, as charts start them. Kubernetes is missing; the edge is in edge.py.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from aggregator.server.control import Control
from crypto.keys import IdentityKey
from fed_node.consent import administration
from fedsynth.provision.authority import new_authority, server_certificate
from fedsynth.provision.party_keys import new_keys
from synth.plan import Plan
from tests.small import table

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "OMP_NUM_THREADS": "1",
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class Deployment:
    """Processes by name; stopped when the block ends."""

    def __init__(self, folder: Path, plan: Plan, rows: int, policy: dict[str, Any]) -> None:
        self.folder, self.plan, self.rows, self.policy = folder, plan, rows, policy
        self.state, self.certificates = folder / "state", folder / "certificates"
        self.port = free_port()
        self.dialled_port = self.port  # by parties; another one where an edge stands in front
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.keys = {party.name: new_keys() for party in plan.parties}
        self.identity = IdentityKey.generate()
        self.register = {
            name: {"nodeKey": keys.public.node_key, "identity": keys.public.identity}
            for name, keys in self.keys.items()
        }

    def __enter__(self) -> Self:
        for folder in (self.state, self.certificates, self.folder / "logs"):
            folder.mkdir(parents=True)
        authority = new_authority("loopback")
        server = server_certificate(authority, ["localhost", "127.0.0.1"], 1)
        (self.certificates / "ca.crt").write_bytes(authority.certificate)
        (self.certificates / "tls.crt").write_bytes(server.certificate)
        (self.certificates / "tls.key").write_bytes(server.key)
        (self.folder / "parties.json").write_text(json.dumps(self.register))
        (self.folder / "identity.key").write_bytes(self.identity.to_pem())
        self.start_superlink()
        self.start_runner()
        self.control = Control(f"localhost:{self.port}", self.certificates)
        self._wait_for_port(self.port)
        self.control.register(self.register)
        for name in self.keys:
            self.make_home(name)
            self.start_party(name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()

    def start_superlink(self) -> None:
        files = self.certificates
        self._start(
            "superlink",
            [
                sys.executable,
                "-m",
                "aggregator.server.superlink",
                "--host=127.0.0.1",
                f"--port={self.port}",
                f"--ssl-certfile={files / 'tls.crt'}",
                f"--ssl-keyfile={files / 'tls.key'}",
                f"--ssl-ca-certfile={files / 'ca.crt'}",
                "--isolation=process",
                "--enable-supernode-auth",
                f"--database={self.state / 'superlink.sqlite'}",
                "--disable-runtime-dependency-installation",
            ],
        )

    def start_runner(self) -> None:
        self._start(
            "runner",
            [
                sys.executable,
                "-m",
                "aggregator.server.runner",
                f"localhost:{self.port}",
                str(self.certificates / "ca.crt"),
            ],
            FEDSYNTH_STATE=str(self.state),
            FEDSYNTH_PARTIES=str(self.folder / "parties.json"),
            FEDSYNTH_IDENTITY=str(self.folder / "identity.key"),
            FEDSYNTH_METRICS=str(self.folder / "metrics.prom"),
            FEDSYNTH_CONTROL=f"localhost:{self.port}",
            FEDSYNTH_CONTROL_FILES=str(self.certificates),
            FEDSYNTH_ANSWER_TIMEOUT_SECONDS="300",
            FEDSYNTH_APP=str(ROOT / "app"),
        )

    def home(self, name: str) -> Path:
        return self.folder / "homes" / name

    def make_home(self, name: str) -> None:
        """What the fed-node chart mounts for a worker."""
        home = self.home(name)
        home.mkdir(parents=True)
        table(self.rows, seed=sorted(self.keys).index(name)).to_csv(home / "rows.csv", index=False)
        peers = {peer: keys.public.identity for peer, keys in self.keys.items() if peer != name}
        settings = {"name": name, "data": {"kind": "csv", "path": "rows.csv"}, "peers": peers}
        (home / "party.yaml").write_text(yaml.safe_dump(settings))
        (home / "policy.yaml").write_text(yaml.safe_dump(self.policy))
        (home / "identity.key").write_bytes(self.keys[name].identity)
        (home / "node.key").write_bytes(self.keys[name].node_key)
        if name in {party.name for party in self.plan.parties}:
            administration.approve(home, self.plan)

    def start_party(self, name: str) -> None:
        self.start_worker(name)
        self.start_node(name, [sys.executable, "-m", "fed_node.process.supernode"])

    def start_node(self, name: str, supernode: list[str]) -> None:
        """All of a party but its worker, by this command for the SuperNode; also how a cluster starts it again."""
        port = free_port()
        flags = [
            f"--superlink=localhost:{self.dialled_port}",
            f"--root-certificates={self.certificates / 'ca.crt'}",
            "--isolation=process",
            f"--auth-supernode-private-key={self.home(name) / 'node.key'}",
            "--host=127.0.0.1",
            f"--port={port}",
            f'--node-config=party="{name}"',
        ]
        self._start(f"supernode {name}", [*supernode, *flags])
        tasks = [sys.executable, "-m", "fed_node.process.tasks", f"127.0.0.1:{port}"]
        self._start(f"tasks {name}", tasks, FEDSYNTH_SOCKET=str(self.socket(name)))

    def socket(self, name: str) -> Path:
        return self.folder / f"{name}.sock"

    def start_worker(self, name: str) -> None:
        serve = "import sys; from pathlib import Path; from fed_node.process.worker import serve; "
        serve += "serve(Path(sys.argv[1]), Path(sys.argv[2]))"
        self._start(f"worker {name}", [sys.executable, "-c", serve, str(self.home(name)), str(self.socket(name))])

    def kill(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()

    def submit(self) -> dict[str, Any]:
        return self.control.submit(self.plan.model_dump(mode="json", by_alias=True), label=ROOT / "app")

    def progress(self) -> dict[str, Any]:
        path = self.state / "runs" / self.plan.digest() / "progress.json"
        found: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {"state": "submitted"}
        return found

    def wait(self, *states: str, seconds: float = 600) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while (progress := self.progress())["state"] not in states:
            assert time.monotonic() < deadline, f"{progress}\n{self.log('runner')[-4000:]}"
            time.sleep(0.2)
        return progress

    def wait_for_end(self, flower_run: str, seconds: float = 600) -> tuple[str, str]:
        """Flower's status of a run that ended, and its details."""
        deadline = time.monotonic() + seconds
        while not (outcome := self.control.outcome(flower_run))[0].startswith("finished"):
            assert time.monotonic() < deadline, outcome
            time.sleep(0.5)
        return outcome

    def wait_for_log(self, name: str, text: str, seconds: float = 300) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.log(name):
            assert time.monotonic() < deadline, f"'{text}' is not in the log of {name}:\n{self.log(name)[-4000:]}"
            time.sleep(0.2)

    def log(self, name: str) -> str:
        return (self.folder / "logs" / f"{name.replace(' ', '-')}.log").read_text()

    def _start(self, name: str, command: list[str], **more: str) -> None:
        environment = os.environ | QUIET | {"FLWR_HOME": str(self.folder / "flwr")}
        path = os.pathsep.join([str(BIN), os.environ.get("PATH", "")])
        with (self.folder / "logs" / f"{name.replace(' ', '-')}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment | more | {"PATH": path}, cwd=ROOT
            )

    def _wait_for_port(self, port: int, seconds: float = 300) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.2)
        raise AssertionError(f"nobody listens on port {port}:\n{self.log('superlink')[-4000:]}")
