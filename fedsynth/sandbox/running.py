"""Starting, watching, breaking and ending the processes of a sandbox."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from fedsynth.sandbox import programs
from fedsynth.sandbox.layout import AGGREGATOR, Layout
from fedsynth.sandbox.making import free_port
from fedsynth.sandbox.processes import Processes
from fedsynth.sandbox.programs import Program
from synth.errors import FedsynthError, InputError
from synth.messages.archive import write_durably

START_SECONDS = 120.0  # for everybody to be connected, on a slow machine
POLL_SECONDS = 0.2
CONSOLES = "consoles.json"  # in the folder: the port of each


class SandboxStuck(FedsynthError):
    code = "sandbox-stuck"
    exit_code = 8


class Sandbox:
    """One folder's federation."""

    def __init__(self, folder: Path) -> None:
        self.layout = Layout(folder.absolute())
        self.processes = Processes(self.layout.folder)

    def up(self, tell: Callable[[str], None] = lambda _: None, *, consoles: bool = True) -> None:
        """Start whatever does not run, and wait until every party is connected."""
        layout = self.layout.require()
        self._require_port()
        tell("starting the aggregator and the parties' workers")
        self.processes.start("aggregator/superlink", self._superlink())
        for party in layout.parties:
            self.processes.start(f"{party}/worker", programs.worker(layout.home(party), self._socket(party)))
        self._wait("the SuperLink to listen", lambda: _listens(layout.port))
        control = self.control()
        self._wait("the SuperLink to answer", lambda: _registered(control, layout))
        for party in layout.parties:
            self._start_node(party)
        self.processes.start("aggregator/runner", self._runner())
        if consoles:
            self._start_consoles()
        tell("waiting for the parties to connect")
        self._wait("every party to connect", lambda: self.connected(control) == set(layout.parties))
        if consoles:
            self._wait("the consoles to start", lambda: len(self.addresses()) == 1 + len(layout.parties))

    def control(self) -> Any:
        from aggregator.server.control import Control  # loads Flower

        return Control(self.layout.endpoint, self.layout.certificates)

    def connected(self, control: Any) -> set[str]:
        """Parties whose node is online and whose worker takes messages."""
        online = {node["party"] for node in control.nodes() if node["online"]}
        return {
            party
            for party in online
            if self._socket(party).with_suffix(".ready").exists() and self.processes.is_alive(f"{party}/supernode")
        }

    def addresses(self) -> dict[str, str]:
        """Of the consoles that run, with their tokens."""
        found = {}
        for name, port in self._console_ports().items():
            token = self._token(name)
            if self.processes.is_alive(f"{name}/console") and token.exists():
                found[name] = f"http://localhost:{port}/?token={token.read_text()}"
        return found

    def kill(self, name: str) -> list[str]:
        """All processes of a party or of the aggregator, or one process by its whole name; no farewell."""
        known = [each for each in self.processes.names() if each == name or each.startswith(f"{name}/")]
        if not known:
            there = ", ".join([AGGREGATOR, *self.layout.require().parties])
            raise InputError(f"there is no '{name}' in this sandbox; there are: {there} (or a process: north/worker).")
        return self.processes.kill(known)

    def down(self) -> list[str]:
        return self.processes.end(self.processes.names())

    def _superlink(self) -> Program:
        layout = self.layout
        return programs.superlink(layout.port, layout.certificates, layout.state / "superlink.sqlite")

    def _runner(self) -> Program:
        layout = self.layout
        return programs.runner(
            layout.port, layout.certificates, layout.state, layout.register, layout.identity, layout.metrics
        )

    def _start_consoles(self) -> None:
        known = self._console_ports()
        ports = {name: known.get(name) or free_port() for name in (AGGREGATOR, *self.layout.parties)}
        write_durably(self.layout.folder / CONSOLES, json.dumps(ports, indent=1).encode())
        for name, port in ports.items():
            token = self._token(name)
            if name == AGGREGATOR:
                program = programs.aggregator_console(self.layout.state, self.layout.metrics, port, token)
            else:
                program = programs.party_console(self.layout.home(name), port, token)
            self.processes.start(f"{name}/console", program)

    def _console_ports(self) -> dict[str, int]:
        path = self.layout.folder / CONSOLES
        found: dict[str, int] = json.loads(path.read_bytes()) if path.exists() else {}
        return found

    def _token(self, name: str) -> Path:
        return self.layout.folder / "tokens" / name

    def _start_node(self, party: str) -> None:
        """A party's SuperNode and what takes its messages, which meet on a port of their own."""
        names = (f"{party}/supernode", f"{party}/tasks")
        if all(map(self.processes.is_alive, names)):
            return
        self.processes.kill(names)
        port, layout = free_port(), self.layout
        key, authority = layout.home(party) / "node.key", layout.authority(party)
        self.processes.start(names[0], programs.supernode(party, layout.endpoint, port, authority, key))
        self.processes.start(names[1], programs.tasks(port, self._socket(party)))

    def _socket(self, party: str) -> Path:
        return self.layout.home(party) / "worker.sock"

    def _require_port(self) -> None:
        if not self.processes.is_alive("aggregator/superlink") and _listens(self.layout.port):
            raise InputError(
                f"somebody else listens on port {self.layout.port}, which this sandbox was made for. End that program, "
                "or make another sandbox: --folder."
            )

    def _wait(self, what: str, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not is_so():
            if dead := [name for name in self.processes.names() if not self.processes.is_alive(name)]:
                raise SandboxStuck(f"{dead[0]} ended while waiting for {what}; see {self.processes.log(dead[0])}.")
            if time.monotonic() > deadline:
                raise SandboxStuck(f"gave up waiting for {what}; the logs are in {self.layout.logs}.")
            time.sleep(POLL_SECONDS)


def _registered(control: Any, layout: Layout) -> bool:
    try:
        control.register(json.loads(layout.register.read_bytes()))
    except httpx.HTTPError:  # it listens before it answers
        return False
    return True


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
