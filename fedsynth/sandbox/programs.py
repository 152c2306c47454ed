"""The command lines of a deployment without Kubernetes: what the charts' helpers say, for processes on loopback.

Every flag of Flower that is used outside the charts is here.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

BIN = Path(sys.executable).parent
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONUNBUFFERED": "1",
}


@dataclass(frozen=True)
class Program:
    """What to start, and what it is told by its environment."""

    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)

    def whole_environment(self, flower_home: Path) -> dict[str, str]:
        path = os.pathsep.join([str(BIN), os.environ.get("PATH", "")])
        ours = QUIET | {"FLWR_HOME": str(flower_home), "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
        return os.environ | ours | self.environment


def superlink(port: int, files: Path, database: Path) -> Program:
    return Program(
        [
            sys.executable,
            "-m",
            "aggregator.server.superlink",
            "--host=127.0.0.1",
            f"--port={port}",
            f"--ssl-certfile={files / 'tls.crt'}",
            f"--ssl-keyfile={files / 'tls.key'}",
            f"--ssl-ca-certfile={files / 'ca.crt'}",
            "--isolation=process",
            "--enable-supernode-auth",
            f"--database={database}",
            "--disable-runtime-dependency-installation",
        ]
    )


def control(port: int, files: Path, state: Path) -> dict[str, str]:
    """What an operator's word to the SuperLink needs in its environment."""
    return {
        "FEDSYNTH_STATE": str(state),
        "FEDSYNTH_CONTROL": f"localhost:{port}",
        "FEDSYNTH_CONTROL_FILES": str(files),
    }


def runner(port: int, files: Path, state: Path, register: Path, identity: Path, metrics: Path) -> Program:
    return Program(
        [sys.executable, "-m", "aggregator.server.runner", f"localhost:{port}", str(files / "ca.crt")],
        control(port, files, state)
        | {
            "FEDSYNTH_PARTIES": str(register),
            "FEDSYNTH_IDENTITY": str(identity),
            "FEDSYNTH_METRICS": str(metrics),
            "FEDSYNTH_ANSWER_TIMEOUT_SECONDS": "300",
        },
    )


def supernode(party: str, dialled: str, port: int, authority: Path, key: Path) -> Program:
    return Program(
        [
            sys.executable,
            "-m",
            "fed_node.process.supernode",
            f"--superlink={dialled}",
            f"--root-certificates={authority}",
            "--isolation=process",
            f"--auth-supernode-private-key={key}",
            "--host=127.0.0.1",
            f"--port={port}",
            f'--node-config=party="{party}"',
        ]
    )


def tasks(port: int, socket: Path) -> Program:
    command = [sys.executable, "-m", "fed_node.process.tasks", f"127.0.0.1:{port}"]
    return Program(command, {"FEDSYNTH_SOCKET": str(socket)})


def worker(home: Path, socket: Path) -> Program:
    command = [sys.executable, "-m", "fedsynth", "node", "serve", "--home", str(home), "--socket", str(socket)]
    return Program(command)


def aggregator_console(state: Path, metrics: Path, port: int, token: Path) -> Program:
    places = ["--state", str(state), "--metrics", str(metrics), "--port", str(port), "--token-file", str(token)]
    return Program([sys.executable, "-m", "fedsynth", "console", "aggregator", *places])


def party_console(home: Path, port: int, token: Path) -> Program:
    places = ["--home", str(home), "--port", str(port), "--token-file", str(token)]
    return Program([sys.executable, "-m", "fedsynth", "console", "party", *places])
