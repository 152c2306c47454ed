"""Folders that are handed over: one for the aggregator, one for each party, each with what `helm install` needs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from crypto.keys import Identity, IdentityKey
from fedsynth.documents import write_yaml
from fedsynth.provision.authority import Certified, fingerprints
from fedsynth.provision.federation import Federation
from fedsynth.provision.party_keys import IDENTITY_KEY, NODE_KEY, PrivateKeys, PublicKeys
from synth.messages.archive import write_durably

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


def write_party(
    folder: Path,
    name: str,
    federation: Federation,
    ca: bytes,
    private: PrivateKeys | None,
    aggregator: Identity,
    members: dict[str, PublicKeys],
) -> None:
    peers = {peer: keys.identity for peer, keys in members.items() if peer != name}
    values = {
        "party": {"name": name, "peers": peers},
        "aggregator": {"endpoint": federation.endpoint, "ca": ca.decode()},
    }
    write(folder / "values.yaml", PARTY_NOTE + write_yaml(values))
    write(folder / "ca.crt", ca)
    write(folder / "fingerprints.txt", _fingerprints(name, ca, aggregator, members))
    write_public_keys(folder / "keys.yaml", aggregator, members)
    if private is not None:
        write(folder / "secrets.yaml", party_secret(private))


def write_public_keys(path: Path, aggregator: Identity, members: dict[str, PublicKeys]) -> None:
    """Everybody's identities: what `fedsynth verify --keys` asks for."""
    keys = {"aggregator": aggregator.to_text()} | {name: public.identity for name, public in members.items()}
    write(path, write_yaml(keys))


def party_secret(private: PrivateKeys) -> str:
    return secret("fed-node-keys", {NODE_KEY: private.node_key, IDENTITY_KEY: private.identity})


def _fingerprints(name: str, ca: bytes, aggregator: Identity, members: dict[str, PublicKeys]) -> str:
    lines = [
        f"Kit of party '{name}'. Compare these by telephone, each with the party it belongs to, before you install.",
        "A difference means that somebody stands between you: do not install, call the operator.",
        "",
        *(f"authority of the endpoint (ask the operator)  {each}" for each in fingerprints(ca)),
        "",
        f"aggregator\n  {'identity':10} {aggregator.fingerprint()}",
    ]
    for party, keys in sorted(members.items()):
        mark = " (yourself)" if party == name else ""
        lines += ["", f"{party}{mark}"] + [f"  {kind:10} {text}" for kind, text in keys.fingerprints().items()]
    return "\n".join(lines) + "\n"


def secret(name: str, files: dict[str, bytes]) -> str:
    content: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "Opaque",
        "stringData": {key: value.decode() for key, value in files.items()},
    }
    return write_yaml(content)
