"""A new sandbox: everybody does what their guide says. Parties make homes and keys, the operator provisions kits."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from fed_node.consent.policy import Policy
from fed_node.settings import POLICY, SETTINGS, PartySettings
from fed_node.source import read_table_as_text
from fedsynth.documents import read_document, read_plan_content, write_yaml
from fedsynth.party_home import ABOUT_POLICY, ABOUT_SETTINGS, CAUTIOUS, commented
from fedsynth.provision.federation import Federation, Member
from fedsynth.provision.party_keys import own_keys
from fedsynth.provision.provisioning import Provisioning
from fedsynth.sandbox.example import example_plan, patients
from fedsynth.sandbox.layout import AGGREGATOR, Layout
from fedsynth.simulation.partition import partition
from synth.errors import InputError
from synth.messages.archive import write_durably
from synth.plan import parse_plan

ROWS_FILE = "rows.csv"
ROWS_ABOUT_SANDBOX = "This is a sandbox's party: its rows lie beside this file. "


def make(layout: Layout, plan: Path | None, data: Path | None, port: int | None) -> None:
    """A federation in an empty folder; a broken attempt leaves nothing that a second one would trip over."""
    if layout.folder.exists() and any(layout.folder.iterdir()):
        raise InputError(f"{layout.folder} holds something that is no sandbox; choose another folder.")
    content, tables = _brought(plan, data)
    try:
        _make(layout, content, tables, port or free_port())
    except BaseException:
        shutil.rmtree(layout.folder, ignore_errors=True)
        raise


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _brought(plan: Path | None, data: Path | None) -> tuple[dict[str, Any], dict[str, pd.DataFrame]]:
    """The plan, and each party's table: the example's, or the given table dealt out to the plan's parties."""
    if plan is None and data is None:
        content = example_plan()
        return content, {party["name"]: patients(party["name"]) for party in content["parties"]}
    if plan is None or data is None:
        raise InputError("a sandbox of your own needs both a plan and --data TABLE; without either it brings its own.")
    content = read_plan_content(plan)
    parsed = parse_plan(content)
    parties = [party.name for party in parsed.parties]
    return content, partition(read_table_as_text(data), parties, "iid", parsed.table.target, seed=0)


def _make(layout: Layout, plan: dict[str, Any], tables: Mapping[str, pd.DataFrame], port: int) -> None:
    for folder in (layout.state, layout.certificates, layout.logs):
        folder.mkdir(parents=True)
    layout.folder.chmod(0o700)
    members = []
    for name, table in tables.items():
        layout.home(name).mkdir(parents=True)
        table.to_csv(layout.home(name) / ROWS_FILE, index=False)
        keys = own_keys(layout.home(name))
        members.append(Member(name=name, node_key=keys.public.node_key, identity=keys.public.identity))
    names = ["127.0.0.1", AGGREGATOR]  # on this machine, and where containers know it by its name
    federation = Federation(name="sandbox", endpoint=f"localhost:{port}", server_names=names, parties=members)
    write_durably(layout.federation, write_yaml(federation.model_dump(mode="json")).encode())
    write_durably(layout.plan, write_yaml(plan).encode())
    Provisioning(federation, layout.kits).carry_out()
    for member in members:
        _settle(layout, member.name)
    _install_aggregator(layout, members)


def _settle(layout: Layout, name: str) -> None:
    """What `fedsynth node init` writes, with the peers of the kit."""
    peers = read_document(layout.kits / "parties" / name / "values.yaml")["party"]["peers"]
    source = {"kind": "csv", "path": ROWS_FILE}
    settings = {"name": name, "dataset": "default", "data": source, "peers": peers, "debug_values": False}
    about = ROWS_ABOUT_SANDBOX + ABOUT_SETTINGS
    write_durably(layout.home(name) / SETTINGS, commented(about, PartySettings, settings).encode())
    policy = Policy.model_validate(CAUTIOUS).model_dump(mode="json")
    write_durably(layout.home(name) / POLICY, commented(ABOUT_POLICY, Policy, policy).encode())


def _install_aggregator(layout: Layout, members: list[Member]) -> None:
    """What the aggregator's chart mounts: the register, and a certificate for the SuperLink."""
    kit = layout.kits / "aggregator"
    for name, file in (("tls.crt", kit / "server.crt"), ("tls.key", kit / "server.key")):
        write_durably(layout.certificates / name, file.read_bytes())
    write_durably(layout.certificates / "ca.crt", layout.authority(members[0].name).read_bytes())
    register = {member.name: {"nodeKey": member.node_key, "identity": member.identity} for member in members}
    write_durably(layout.register, json.dumps(register, indent=1).encode())
