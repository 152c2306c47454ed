"""A whole deployment as processes on this machine: Flower's SuperLink and SuperNodes with TLS and node authentication,
the runner, the parties' workers and task loops, as charts start them. Kubernetes is missing; the edge is in edge.py.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
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
from fedsynth.sandbox import programs
from fedsynth.sandbox.making import free_port
from fedsynth.sandbox.programs import Program
from synth.plan import Plan
from tests.small import table

ROOT = Path(__file__).parents[2]


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
        self.authority = new_authority("loopback")
        (self.certificates / "ca.crt").write_bytes(self.authority.certificate)
        self._write_server_side()
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

    def _write_server_side(self) -> None:
        server = server_certificate(self.authority, ["localhost", "127.0.0.1"], 1)
        (self.certificates / "tls.crt").write_bytes(server.certificate)
        (self.certificates / "tls.key").write_bytes(server.key)
        (self.folder / "parties.json").write_text(json.dumps(self.register))
        (self.folder / "identity.key").write_bytes(self.identity.to_pem())

    def rotate(self, party: str) -> None:
        """A new server certificate, a new identity of the aggregator, new keys of a party; all are started anew."""
        for name in [*self.processes]:
            self.kill(name)
        self.identity, self.keys[party] = IdentityKey.generate(), new_keys()
        public = self.keys[party].public
        self.register[party] = {"nodeKey": public.node_key, "identity": public.identity}
        self._write_server_side()
        for name in self.register:
            self._write_keys_and_peers(name)
        self.start_superlink()
        self._wait_for_port(self.port)
        self.control.register(self.register)
        self.start_runner()
        for name in self.register:
            self.start_party(name)

    def start_superlink(self) -> None:
        self._start("superlink", programs.superlink(self.port, self.certificates, self.state / "superlink.sqlite"))

    def start_runner(self) -> None:
        register, identity = self.folder / "parties.json", self.folder / "identity.key"
        metrics = self.folder / "metrics.prom"
        self._start("runner", programs.runner(self.port, self.certificates, self.state, register, identity, metrics))

    def home(self, name: str) -> Path:
        return self.folder / "homes" / name

    def make_home(self, name: str) -> None:
        """What the fed-node chart mounts for a worker."""
        home = self.home(name)
        home.mkdir(parents=True)
        table(self.rows, seed=sorted(self.keys).index(name)).to_csv(home / "rows.csv", index=False)
        (home / "policy.yaml").write_text(yaml.safe_dump(self.policy))
        self._write_keys_and_peers(name)
        if name in {party.name for party in self.plan.parties}:
            administration.approve(home, self.plan)

    def _write_keys_and_peers(self, name: str) -> None:
        peers = {peer: keys.public.identity for peer, keys in self.keys.items() if peer != name}
        settings = {"name": name, "data": {"kind": "csv", "path": "rows.csv"}, "peers": peers}
        (self.home(name) / "party.yaml").write_text(yaml.safe_dump(settings))
        (self.home(name) / "identity.key").write_bytes(self.keys[name].identity)
        (self.home(name) / "node.key").write_bytes(self.keys[name].node_key)

    def start_party(self, name: str) -> None:
        self.start_worker(name)
        self.start_node(name)

    def start_node(self, name: str, supernode: list[str] | None = None) -> None:
        """All of a party but its worker, by this command for the SuperNode; also how a cluster starts it again."""
        port, key = free_port(), self.home(name) / "node.key"
        node = programs.supernode(name, f"localhost:{self.dialled_port}", port, self.certificates / "ca.crt", key)
        if supernode is not None:
            node = Program([*supernode, *node.command[3:]])
        self._start(f"supernode {name}", node)
        self._start(f"tasks {name}", programs.tasks(port, self.socket(name)))

    def socket(self, name: str) -> Path:
        return self.folder / f"{name}.sock"

    def start_worker(self, name: str) -> None:
        self._start(f"worker {name}", programs.worker(self.home(name), self.socket(name)))

    def kill(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()

    def submit(self) -> dict[str, Any]:
        return self.control.submit(self.plan.model_dump(mode="json", by_alias=True))

    def progress(self, digest: str | None = None) -> dict[str, Any]:
        path = self.state / "runs" / (digest or self.plan.digest()) / "progress.json"
        found: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {"state": "submitted"}
        return found

    def wait(self, *states: str, seconds: float = 600, digest: str | None = None) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while (progress := self.progress(digest))["state"] not in states:
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

    def _start(self, name: str, program: Program) -> None:
        environment = program.whole_environment(self.folder / "flwr")
        with (self.folder / "logs" / f"{name.replace(' ', '-')}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(program.command, stdout=log, stderr=log, env=environment, cwd=ROOT)

    def _wait_for_port(self, port: int, seconds: float = 300) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.2)
        raise AssertionError(f"nobody listens on port {port}:\n{self.log('superlink')[-4000:]}")
