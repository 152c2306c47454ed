"""The operator's words to the SuperLink: who may connect, start this plan, stop that run. One JSON object each.

It runs inside the cluster: in jobs, which present the certificate of the Control door, and in the aggregator's own pod,
on loopback. What is needed for either is in the environment: FEDSYNTH_CONTROL (HOST:PORT) and FEDSYNTH_CONTROL_FILES
(a folder with ca.crt, tls.crt and tls.key).
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives import serialization
from flwr.common.serde import user_config_to_proto
from flwr.proto.control_pb2 import (
    ListNodesRequest,
    ListRunsRequest,
    RegisterNodeRequest,
    StartRunRequest,
    StopRunRequest,
    UnregisterNodeRequest,
)
from flwr.proto.fab_pb2 import Fab
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor

from aggregator.server.backup import archive_of, put_back
from aggregator.server.run_folder import RunFolder, all_runs, as_text, named
from aggregator.server.scheduled import dated
from aggregator.states import DONE, RunState, now_text
from crypto.tls import client_context
from synth.audit_log import FILE, AuditLog, as_lines, caller
from synth.errors import FedsynthError, InputError, ProtocolError

LABEL = Path(__file__).with_name("label")  # the bundle without code
PATIENCE_SECONDS = 120.0  # for a SuperLink that is starting
UNREGISTERED = "unregistered"
PRECONDITION_FAILED = 412
SERVER_ERROR = 500
LATEST_RUNS = 10
REVOKED_KEY = (
    "its node key was registered before and revoked, and a revoked key never returns. It makes new ones (`fedsynth "
    "node keygen`), and you `fedsynth provision --rotate` it with its new join file."
)


class Control:
    """The SuperLink's Control API."""

    def __init__(self, address: str, files: Path) -> None:
        context = client_context(files / "ca.crt")
        context.check_hostname = False  # the authority signed one certificate and no other; see provision/authority.py
        context.load_cert_chain(files / "tls.crt", files / "tls.key")
        version = RuntimeVersionHttpInterceptor(component_name="flwr CLI")
        self.client = ControlHttpClient(f"https://{address}", interceptors=[version], verify=context)

    def nodes(self) -> list[dict[str, Any]]:
        listed = self.client.ListNodes(ListNodesRequest()).nodes_info
        return [
            {
                "id": node.node_id,
                "party": node.name,
                "online": node.status == "online",
                "online_until": node.online_until,
                "key": node.public_key,
            }
            for node in listed
            if node.status != UNREGISTERED
        ]

    def register(self, parties: dict[str, dict[str, str]]) -> dict[str, Any]:
        """Make the register equal to `parties`: add, remove, leave the rest alone."""
        wanted = {_spki(party["nodeKey"]): name for name, party in parties.items()}
        known = {bytes(node["key"]): node for node in self.nodes()}
        removed = [node for key, node in known.items() if key not in wanted]
        for node in removed:
            self.client.UnregisterNode(UnregisterNodeRequest(node_id=node["id"]))
        refused = {name: why for key, name in wanted.items() if key not in known and (why := self._refusal(key, name))}
        added = [name for key, name in wanted.items() if key not in known and name not in refused]
        return {
            "added": added,
            "removed": [node["party"] for node in removed],
            "registered": sorted(set(wanted.values()) - set(refused)),
            "refused": refused,
        }

    def _refusal(self, key: bytes, name: str) -> str | None:
        """Register a party; why not, if the SuperLink does not take its key. The others do not wait for it."""
        try:
            self.client.RegisterNode(RegisterNodeRequest(public_key=key, name=name))
        except httpx.HTTPStatusError as error:
            if error.response.status_code != PRECONDITION_FAILED:
                raise
            return REVOKED_KEY
        return None

    def submit(self, plan: dict[str, Any], who: str = "", label: Path = LABEL) -> dict[str, Any]:
        """Start (or take up again) a run of a plan, for whoever is named."""
        from flwr.cli.build import build_fab_from_disk  # Flower's whole command line; status does not need it

        from synth.plan import parse_plan  # nor pandas

        parsed = parse_plan(plan)
        content = build_fab_from_disk(label)
        text = json.dumps(parsed.model_dump(mode="json", by_alias=True))
        settings = user_config_to_proto({"plan": text, "who": who or caller()})
        request = StartRunRequest(fab=Fab(content=content), override_config=settings)
        started = self.client.StartRun(request)
        if not started.HasField("run_id"):
            raise ProtocolError("the SuperLink did not start the run; its log says why")
        return {"plan": parsed.name, "digest": parsed.digest(), "flower_run": str(started.run_id)}

    def outcome(self, flower_run: str) -> tuple[str, str]:
        """What Flower says of a run: its status ("running", "finished:failed", …) and details."""
        try:
            listed = self.client.ListRuns(ListRunsRequest(run_id=int(flower_run))).run_dict
        except httpx.HTTPStatusError as error:
            if error.response.status_code >= SERVER_ERROR:
                raise
            return "unknown", ""  # of another SuperLink: the volume was restored
        status = next(iter(listed.values())).status if listed else None
        if status is None:
            return "unknown", ""
        return f"{status.status}:{status.sub_status}".rstrip(":"), status.details

    def begun(self) -> list[tuple[str, str]]:
        """Runs that Flower has not seen the end of, of the latest: each with its plan's text."""
        listed = self.client.ListRuns(ListRunsRequest(limit=LATEST_RUNS)).run_dict.values()
        going = [run for run in listed if run.status.status != "finished"]
        return [(str(run.run_id), run.override_config["plan"].string) for run in going if "plan" in run.override_config]

    def stop(self, flower_run: str) -> dict[str, Any]:
        return {"stopped": bool(self.client.StopRun(StopRunRequest(run_id=int(flower_run))).success)}


def carry_out(words: list[str]) -> dict[str, Any] | str:
    """One command: what to print."""
    state = Path(os.environ.get("FEDSYNTH_STATE", "/var/lib/fedsynth"))
    control = Control(os.environ["FEDSYNTH_CONTROL"], Path(os.environ["FEDSYNTH_CONTROL_FILES"]))
    log = AuditLog(state / FILE, "aggregator")
    match words:
        case ["register", path]:
            return control.register(json.loads(Path(path).read_bytes()))
        case ["submit", path]:
            return control.submit(json.loads(Path(path).read_bytes()), who=_submitter(Path(path)))
        case ["submit-scheduled", path]:
            return control.submit(dated(Path(path), os.environ["FEDSYNTH_JOB"]), who=_submitter(Path(path)))
        case ["status"]:
            return overview(control, state)
        case ["stop", name]:
            return _stopped(control, named(state, name), log)
        case ["forget", name]:
            return _forgotten(named(state, name), log)
        case ["plan", name]:
            found: dict[str, Any] = json.loads((named(state, name).path / "plan.json").read_bytes())
            return found
        case ["fetch", name, *despite] if despite in ([], ["--despite-gate"]):
            run = named(state, name)
            with log.noted("fetch", caller(), plan=run.path.name, despite_gate="yes" if despite else "no"):
                return as_text(run.archive(despite_gate=bool(despite)))
        case ["backup"]:
            return as_text(archive_of(state))
        case ["restore"]:
            return put_back(state, base64.b64decode(sys.stdin.readline()))
        case ["audit-log"]:
            return as_lines(log.read())
    raise InputError(
        "say one of: register FILE, submit FILE, submit-scheduled FILE, status, stop NAME, forget NAME, plan NAME, "
        "fetch NAME [--despite-gate], backup, restore, audit-log"
    )


def overview(control: Control, state: Path) -> dict[str, Any]:
    """Who is connected and where every run stands: all that `fedsynth status` shows."""
    nodes = [{name: value for name, value in node.items() if name != "key"} for node in control.nodes()]
    runs = [standing.to_json() for run in all_runs(state) if (standing := run.standing)]
    return {"time": now_text(), "superlink": True, "nodes": nodes, "runs": runs}


def _stopped(control: Control, run: RunFolder, log: AuditLog) -> dict[str, Any]:
    standing = run.standing
    if standing is None or standing.state in DONE:
        raise InputError(f"run '{run.name or run.path.name[:12]}' is not going on; there is nothing to stop")
    with log.noted("stop", caller(), plan=run.path.name):
        run.report(standing.to(RunState.stopped, now_text(), stage="stopped"))  # first: nobody resumes it meanwhile
        stopped = control.stop(standing.flower_run)
    return stopped | {"plan": standing.plan}


def _forgotten(run: RunFolder, log: AuditLog) -> dict[str, Any]:
    name = run.name
    if run.is_taken:
        raise InputError(f"run '{name}' is going on; `fedsynth stop {name}` first")
    with log.noted("forget", caller(), plan=run.path.name):
        run.forget()
    return {"forgotten": name, "digest": run.path.name}


def _submitter(plan: Path) -> str:
    """Whom a job acts for, as the command that created it said."""
    told = plan.with_name("who")
    return told.read_text() if told.exists() else ""


def _patiently(words: list[str]) -> dict[str, Any] | str:
    """A SuperLink that is just starting is waited for."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return carry_out(words)
        except httpx.HTTPStatusError as error:
            if error.response.status_code not in (502, 503, 504) or time.monotonic() > deadline:
                raise ProtocolError(f"the Control API answered {error.response.status_code}") from error
        except httpx.HTTPError as error:
            if time.monotonic() > deadline:
                raise ProtocolError(f"the Control API cannot be reached ({type(error).__name__})") from error
        time.sleep(1)


def _spki(openssh: str) -> bytes:
    """A public key as the SuperLink keeps it."""
    key = serialization.load_ssh_public_key(openssh.encode())
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def main() -> None:
    try:
        outcome = _patiently(sys.argv[1:])
    except FedsynthError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)
    sys.stdout.write((outcome if isinstance(outcome, str) else json.dumps(outcome)) + "\n")


if __name__ == "__main__":
    main()
