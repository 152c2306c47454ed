"""Folders that are handed over: one for the aggregator, one for each party, each with what `helm install` needs.

A party's is signed by the federation, and holds nothing but what fedsynth/provision/kit.py lists.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crypto.keys import Identity, IdentityKey
from fedsynth.documents import write_yaml
from fedsynth.provision import fingerprints
from fedsynth.provision.authority import Certified
from fedsynth.provision.federation import Federation
from fedsynth.provision.party_keys import IDENTITY_KEY, NODE_KEY, PrivateKeys, PublicKeys
from fedsynth.provision.signature import SIGNATURE, signed
from synth.messages.archive import write_durably

OTHERS_NOTHING = 0o077
AGGREGATOR = "aggregator"  # its name among everybody's identities
AGGREGATOR_NOTE = "# Made by `fedsynth provision`. Your own values go into a second file, -f mine.yaml.\n"
PARTY_NOTE = "# Signed: `fedsynth install` refuses it if it is changed. Your own values go into a second file.\n"


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
    identity: IdentityKey,
    members: dict[str, PublicKeys],
) -> None:
    parties = {name: {"nodeKey": keys.node_key, "identity": keys.identity} for name, keys in members.items()}
    values = {"endpoint": federation.endpoint, "ca": ca.decode(), "parties": parties}
    tls = {"tls.crt": server.certificate, "tls.key": server.key}
    commands = {"ca.crt": control[0], "tls.crt": control[1].certificate, "tls.key": control[1].key}
    write(folder / "values.yaml", AGGREGATOR_NOTE + write_yaml(values))
    signs = {IDENTITY_KEY: identity.to_pem()}
    secrets = {"aggregator-tls": tls, "aggregator-control": commands, "aggregator-identity": signs}
    write(folder / "secrets.yaml", "---\n".join(secret(name, files) for name, files in secrets.items()))


@dataclass(frozen=True)
class Meeting:
    """What all kits of a federation say alike."""

    federation: Federation
    ca: bytes
    signs: IdentityKey  # the federation's, for kits
    keys: dict[str, str]  # everybody's identities, the aggregator's among them
    known: dict[str, Any]  # those and the retired ones: keys.yaml


def write_party(folder: Path, name: str, meeting: Meeting, private: PrivateKeys | None) -> None:
    """`private` only if the operator made the party's keys; then the kit says so."""
    federation = meeting.federation
    peers = {peer: key for peer, key in meeting.keys.items() if peer not in (name, AGGREGATOR)}
    values: dict[str, Any] = {
        "party": {"name": name, "peers": peers},
        "aggregator": {"endpoint": federation.endpoint, "ca": meeting.ca.decode()},
        "federation": {"name": federation.name, "key": meeting.signs.identity.to_text()},
    }
    if private is not None:
        values["keys"] = {"madeBy": "operator"}
    files = {
        "values.yaml": PARTY_NOTE + write_yaml(values),
        "ca.crt": meeting.ca.decode(),
        "keys.yaml": write_yaml(meeting.known),
        "fingerprints.txt": fingerprints_of_kit(values, meeting.keys),
    }
    if private is not None:
        files["secrets.yaml"] = party_secret(private)
    content = {file: text.encode() for file, text in files.items()}
    (folder / "secrets.yaml").unlink(missing_ok=True)  # of keys that the operator made before
    for file, text in content.items():
        write(folder / file, text)
    write(folder / SIGNATURE, signed(content, federation.name, name, meeting.signs) + "\n")


def fingerprints_of_kit(values: dict[str, Any], keys: dict[str, str]) -> str:
    """What a party compares before it installs; `install` computes it again from what it installs."""
    name = values["party"]["name"]
    own = {f"{name}, yourself": fingerprints.of_identity(keys[name])}
    marks = fingerprints.of_values(values) | {fingerprints.AGGREGATOR: fingerprints.of_identity(keys[AGGREGATOR])}
    about = (
        f"Kit of party '{name}'. Have each of these read to you by telephone, by whom it belongs to; the authority, "
        "the federation and the aggregator are the operator's. A difference means that somebody stands between you: do "
        "not install, call the operator."
    )
    return fingerprints.page(about, marks | own) + "\n"


def fingerprints_of_federation(ca: bytes, signs: Identity, aggregator: Identity, members: dict[str, PublicKeys]) -> str:
    """The operator's page: what is read to parties, and what parties read to the operator."""
    marks = fingerprints.of_authorities(ca)
    for name, identity in ((fingerprints.FEDERATION, signs), (fingerprints.AGGREGATOR, aggregator)):
        marks[name] = fingerprints.of_identity(identity.to_text())
    for name, keys in sorted(members.items()):
        marks[name] = fingerprints.of_identity(keys.identity)
        marks[f"{name}, its node"] = keys.fingerprints()["node key"]
    about = (
        "Compare these by telephone, each with whom it belongs to. Give this page to nobody as a replacement for it."
    )
    return fingerprints.page(about, marks) + "\n"


def party_secret(private: PrivateKeys) -> str:
    return secret("fed-node-keys", {NODE_KEY: private.node_key, IDENTITY_KEY: private.identity})


def secret(name: str, files: dict[str, bytes]) -> str:
    content: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "Opaque",
        "stringData": {key: value.decode() for key, value in files.items()},
    }
    return write_yaml(content)
