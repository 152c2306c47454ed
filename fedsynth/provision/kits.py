"""Folders that are handed over: one for the aggregator, one for each party, each with what `helm install` needs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fedsynth.documents import write_yaml
from fedsynth.provision.authority import Certified, fingerprint
from fedsynth.provision.federation import Federation
from fedsynth.provision.party_keys import PrivateKeys, PublicKeys
from synth.archive import write_durably

OTHERS_NOTHING = 0o077
AGGREGATOR_NOTE = (
    "# Made by `fedsynth provision`. Add your own values in a second file: helm install … -f values.yaml -f mine.yaml\n"
)
PARTY_NOTE = AGGREGATOR_NOTE + "# Yours to add: policy, data (`helm show values charts/fed-node`).\n"


def write(path: Path, content: bytes | str) -> None:
    """Readable by the owner alone, the folders on the way too."""
    before = os.umask(OTHERS_NOTHING)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, content.encode() if isinstance(content, str) else content)
    finally:
        os.umask(before)


def write_aggregator(
    folder: Path,
    federation: Federation,
    ca: bytes,
    server: Certified,
    control: tuple[bytes, Certified],
    members: dict[str, PublicKeys],
) -> None:
    parties = {name: {"nodeKey": keys.node_key, "identity": keys.identity} for name, keys in members.items()}
    values = {"endpoint": federation.endpoint, "ca": ca.decode(), "parties": parties}
    tls = {"tls.crt": server.certificate, "tls.key": server.key}
    commands = {"ca.crt": control[0], "tls.crt": control[1].certificate, "tls.key": control[1].key}
    write(folder / "values.yaml", AGGREGATOR_NOTE + write_yaml(values))
    write(folder / "secrets.yaml", _secret("aggregator-tls", tls) + "---\n" + _secret("aggregator-control", commands))


def write_party(
    folder: Path,
    name: str,
    federation: Federation,
    ca: bytes,
    private: PrivateKeys | None,
    members: dict[str, PublicKeys],
) -> None:
    peers = {peer: keys.identity for peer, keys in members.items() if peer != name}
    values = {
        "party": {"name": name, "peers": peers},
        "aggregator": {"endpoint": federation.endpoint, "ca": ca.decode()},
    }
    write(folder / "values.yaml", PARTY_NOTE + write_yaml(values))
    write(folder / "ca.crt", ca)
    write(folder / "fingerprints.txt", _fingerprints(name, ca, members))
    if private is not None:
        keys = {"node.key": private.node_key, "identity.key": private.identity}
        write(folder / "secrets.yaml", _secret("fed-node-keys", keys))


def _fingerprints(name: str, ca: bytes, members: dict[str, PublicKeys]) -> str:
    lines = [
        f"Kit of party '{name}'. Compare these by telephone, each with the party it belongs to, before you install.",
        "A difference means that somebody stands between you: do not install, call the operator.",
        "",
        f"authority of the endpoint (ask the operator)  {fingerprint(ca)}",
    ]
    for party, keys in sorted(members.items()):
        mark = " (yourself)" if party == name else ""
        lines += ["", f"{party}{mark}"] + [f"  {kind:10} {text}" for kind, text in keys.fingerprints().items()]
    return "\n".join(lines) + "\n"


def _secret(name: str, files: dict[str, bytes]) -> str:
    content: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "Opaque",
        "stringData": {key: value.decode() for key, value in files.items()},
    }
    return write_yaml(content)
