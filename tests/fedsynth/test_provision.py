"""Provisioning: what exists is kept, what is missing is made, and nothing secret is shown."""

from __future__ import annotations

import json
import ssl
import stat
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    load_pem_private_key,
    load_ssh_private_key,
    load_ssh_public_key,
)
from typer.testing import CliRunner

from crypto.keys import Identity, IdentityKey
from fedsynth.commands.provision import provision
from fedsynth.provision.authority import is_signed_by, names_of
from fedsynth.provision.federation import read_federation
from fedsynth.provision.fingerprints import bare, read_page
from fedsynth.provision.party_keys import new_keys
from fedsynth.provision.provisioning import Outcome, Provisioning
from synth.errors import InputError

NORTH, SOUTH = {"name": "north"}, {"name": "south"}


def _document(folder: Path, parties: list[dict[str, Any]], **changes: Any) -> Path:
    path = folder / "federation.yaml"
    path.write_text(yaml.safe_dump({"name": "coast", "endpoint": "fed.example.org:443", "parties": parties} | changes))
    return path


def _carry_out(folder: Path, parties: list[dict[str, Any]], rotate: list[str] | None = None, **more: Any) -> Outcome:
    """The operator makes the keys that nobody brings, and says so."""
    revoke, joins = more.pop("revoke", []), more.pop("joins", [])
    make_keys = more.pop("make_keys", [party["name"] for party in parties if "node_key" not in party])
    federation = read_federation(_document(folder, parties, **more), joins)
    return Provisioning(federation, folder / "out", rotate or [], revoke, make_keys).carry_out()


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _values(folder: Path, kit: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((folder / "out" / kit / "values.yaml").read_text())
    return content


def test_running_twice_changes_nothing(tmp_path: Path) -> None:
    _carry_out(tmp_path, [NORTH, SOUTH])
    before = _contents(tmp_path / "out")
    assert _carry_out(tmp_path, [NORTH, SOUTH]).made == []
    assert _contents(tmp_path / "out") == before


def test_a_new_party_re_mints_nobody(tmp_path: Path) -> None:
    _carry_out(tmp_path, [NORTH, SOUTH])
    secret = (tmp_path / "out/parties/north/secrets.yaml").read_bytes()
    outcome = _carry_out(tmp_path, [NORTH, SOUTH, {"name": "west"}])
    assert outcome.made == ["keys of west"]
    assert (tmp_path / "out/parties/north/secrets.yaml").read_bytes() == secret
    assert set(_values(tmp_path, "parties/north")["party"]["peers"]) == {"south", "west"}
    assert set(_values(tmp_path, "aggregator")["parties"]) == {"north", "south", "west"}


def test_keys_are_what_flower_and_the_node_read(tmp_path: Path) -> None:
    _carry_out(tmp_path, [NORTH])
    keys = yaml.safe_load((tmp_path / "out/parties/north/secrets.yaml").read_text())["stringData"]
    public = load_ssh_private_key(keys["node.key"].encode(), None).public_key()
    named = _values(tmp_path, "aggregator")["parties"]["north"]
    assert load_ssh_public_key(named["nodeKey"].encode()) == public
    assert IdentityKey.from_pem(keys["identity.key"].encode()).identity == Identity.from_text(named["identity"])


def test_a_party_may_keep_its_keys_to_itself(tmp_path: Path) -> None:
    own = new_keys()
    party = {"name": "north", "node_key": own.public.node_key, "identity": own.public.identity}
    outcome = _carry_out(tmp_path, [party, SOUTH])
    assert not list((tmp_path / "out").rglob("north/*.key"))
    assert not (tmp_path / "out/parties/north/secrets.yaml").exists()
    assert outcome.fingerprints["north"]["identity"] == Identity.from_text(own.public.identity).fingerprint()
    other = new_keys()
    changed = {"name": "north", "node_key": other.public.node_key, "identity": other.public.identity}
    with pytest.raises(InputError, match="--rotate north"):
        _carry_out(tmp_path, [changed, SOUTH])
    assert _carry_out(tmp_path, [changed, SOUTH], ["north"]).made == ["keys of north"]


def test_rotation_replaces_one_thing(tmp_path: Path) -> None:
    _carry_out(tmp_path, [NORTH, SOUTH])
    before = _contents(tmp_path / "out")
    assert _carry_out(tmp_path, [NORTH, SOUTH], ["server"]).made == ["certificate of server"]
    after = _contents(tmp_path / "out")
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"aggregator/server.crt", "aggregator/server.key", "aggregator/secrets.yaml"}


def test_keys_are_the_partys_own_unless_the_operator_says_otherwise(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--make-keys south"):
        _carry_out(tmp_path, [NORTH, SOUTH], make_keys=["north"])
    made = _carry_out(tmp_path, [NORTH, SOUTH], make_keys=["north", "south"])
    assert made.operator_made == ["north", "south"]
    assert _values(tmp_path, "parties/south")["keys"] == {"madeBy": "operator"}
    assert _carry_out(tmp_path, [NORTH, SOUTH], make_keys=[]).operator_made == ["north", "south"]  # it is remembered
    with pytest.raises(InputError, match="no new keys"):
        _carry_out(tmp_path, [NORTH, SOUTH], ["south"], make_keys=[])
    join, own = tmp_path / "join.yaml", new_keys().public
    join.write_text(yaml.safe_dump({"name": "south", "node_key": own.node_key, "identity": own.identity}))
    joined = _carry_out(tmp_path, [NORTH, SOUTH], ["south"], make_keys=[], joins=[join])
    assert joined.operator_made == ["north"]
    assert "keys" not in _values(tmp_path, "parties/south")
    left = {path.name for folder in ("parties", "members") for path in (tmp_path / "out" / folder / "south").iterdir()}
    assert not left & {"secrets.yaml", "node.key", "identity.key"}
    assert _carry_out(tmp_path, [NORTH, SOUTH], make_keys=[]).made == []  # and so is what a party joined with


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"name": "west"}, "holds no keys"),
        ({"name": "west", "node_key": "x"}, "ecdsa-sha2-nistp384"),
        ({"name": "stranger"} | vars(new_keys().public), "does not list"),
        ({"name": "north", "colour": "blue"}, "colour"),
    ],
)
def test_a_join_file_that_is_none_is_refused(tmp_path: Path, content: dict[str, Any], told: str) -> None:
    join = tmp_path / "join.yaml"
    join.write_text(yaml.safe_dump(content))
    with pytest.raises(InputError, match=told):
        _carry_out(tmp_path, [NORTH, SOUTH], joins=[join])


def test_what_an_earlier_version_kept_in_a_kit_is_taken_over(tmp_path: Path) -> None:
    first = _carry_out(tmp_path, [NORTH, SOUTH])
    for path in (tmp_path / "out/members/north").iterdir():
        path.rename(tmp_path / "out/parties/north" / path.name)
    again = _carry_out(tmp_path, [NORTH, SOUTH], make_keys=[])
    assert again.fingerprints == first.fingerprints
    assert again.made == []
    assert "public.json" not in {path.name for path in (tmp_path / "out/parties/north").iterdir()}


def test_fingerprints_are_whole_in_80_columns_and_in_groups(tmp_path: Path) -> None:
    outcome = _carry_out(tmp_path, [NORTH, SOUTH])
    for place in ("out/fingerprints.txt", "out/parties/north/fingerprints.txt"):
        text = (tmp_path / place).read_text()
        assert max(map(len, text.splitlines())) <= 80
        marks = read_page(tmp_path / place)
        assert marks["south"] == bare(outcome.fingerprints["south"]["identity"])
        assert marks["the authority"] == bare(outcome.authorities[0])
        assert len(marks["the authority"]) == 64
        assert marks["the federation"] == bare(outcome.federation)
        assert marks["the aggregator"] == bare(outcome.aggregator)
    operators = read_page(tmp_path / "out/fingerprints.txt")
    assert operators["north, its node"] == bare(outcome.fingerprints["north"]["node key"])


def test_a_revoked_party_stays_out_until_it_gets_new_keys(tmp_path: Path) -> None:
    first = _carry_out(tmp_path, [NORTH, SOUTH])
    assert _carry_out(tmp_path, [NORTH, SOUTH], revoke=["south"]).revoked == ["south"]
    assert set(_values(tmp_path, "aggregator")["parties"]) == {"north"}
    assert _values(tmp_path, "parties/north")["party"]["peers"] == {}
    assert _carry_out(tmp_path, [NORTH, SOUTH]).revoked == ["south"]
    back = _carry_out(tmp_path, [NORTH, SOUTH], ["south"])
    assert back.revoked == []
    assert back.fingerprints["south"] != first.fingerprints["south"]


def test_the_server_is_believed_under_its_names_only(tmp_path: Path) -> None:
    _carry_out(tmp_path, [NORTH], server_names=["aggregator.trust.svc", "10.1.2.3"])
    certificate = (tmp_path / "out/aggregator/server.crt").read_bytes()
    assert names_of(certificate)[:3] == ["fed.example.org", "aggregator.trust.svc", "10.1.2.3"]
    ca = x509.load_pem_x509_certificate((tmp_path / "out/authority/ca.crt").read_bytes())
    x509.load_pem_x509_certificate(certificate).verify_directly_issued_by(ca)
    context = ssl.create_default_context(cafile=str(tmp_path / "out/authority/ca.crt"))
    assert context.verify_mode == ssl.CERT_REQUIRED
    # other names, other certificate
    assert "certificate of server" in _carry_out(tmp_path, [NORTH], server_names=["elsewhere"]).made


def test_nobody_can_sign_a_second_control_certificate(tmp_path: Path) -> None:
    _carry_out(tmp_path, [NORTH])
    authority = x509.load_pem_x509_certificate((tmp_path / "out/aggregator/control-ca.crt").read_bytes())
    for key in (tmp_path / "out").rglob("*.key"):
        if b"OPENSSH" not in key.read_bytes():
            assert load_pem_private_key(key.read_bytes(), None).public_key() != authority.public_key()


def test_files_are_the_owners_alone_and_secrets_are_not_printed(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(provision)
    path = _document(tmp_path, [NORTH, SOUTH])
    words = [str(path), "--out", str(tmp_path / "out"), "--make-keys", "north", "--make-keys", "south"]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0
    assert "You made the keys of north, south" in shown.output
    assert max(map(len, shown.output.splitlines()[:-1])) <= 80  # the last is a command with a path
    done = CliRunner().invoke(app, [*words, "--rotate", "north", "--json"])
    assert done.exit_code == 0
    assert json.loads(done.output)["made"]
    for file in (tmp_path / "out").rglob("*"):
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file
        if file.suffix == ".key":
            body = file.read_text().splitlines()[1]
            assert body not in done.output + shown.output


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"endpoint": "https://fed.example.org"}, "HOST:PORT"),
        ({"parties": [NORTH, NORTH]}, "distinct"),
        ({"parties": [{"name": "north", "identity": new_keys().public.identity}]}, "both or neither"),
        ({"parties": [{"name": "north", "node_key": "ssh-rsa AAAA", "identity": "ed25519:x"}]}, "ecdsa-sha2-nistp384"),
        ({"colour": "blue"}, "colour"),
    ],
)
def test_mistakes_are_told_with_their_place(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    parties = changes.pop("parties", [NORTH])
    with pytest.raises(InputError, match=told):
        read_federation(_document(tmp_path, parties, **changes))


def test_what_cannot_be_rotated_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="east"):
        _carry_out(tmp_path, [NORTH], ["east"])


def test_a_new_authority_cuts_nobody_off(tmp_path: Path) -> None:
    _carry_out(tmp_path, [NORTH])
    folder = tmp_path / "out"
    server, old = (folder / "aggregator/server.crt").read_bytes(), (folder / "authority/ca.crt").read_bytes()
    first = _carry_out(tmp_path, [NORTH], rotate=["ca"])
    new = (folder / "authority/ca.crt").read_bytes()
    assert first.made == ["certificate of ca"]
    assert (folder / "aggregator/server.crt").read_bytes() == server
    assert _values(tmp_path, "parties/north")["aggregator"]["ca"].encode() == new + old
    assert len(_carry_out(tmp_path, [NORTH]).authorities) == 2  # and stays so until it is finished
    with pytest.raises(InputError, match="finish with --rotate server"):
        _carry_out(tmp_path, [NORTH], rotate=["ca"])
    last = _carry_out(tmp_path, [NORTH], rotate=["server"])
    assert last.authorities == first.authorities[:1]
    assert _values(tmp_path, "parties/north")["aggregator"]["ca"].encode() == new
    assert is_signed_by((folder / "aggregator/server.crt").read_bytes(), new)


def test_the_aggregator_signs_with_a_key_of_its_own(tmp_path: Path) -> None:
    first = _carry_out(tmp_path, [NORTH])
    secrets = yaml.safe_load_all((tmp_path / "out/aggregator/secrets.yaml").read_text())
    pem = {each["metadata"]["name"]: each["stringData"] for each in secrets}["aggregator-identity"]["identity.key"]
    identity = IdentityKey.from_pem(pem.encode()).identity
    assert first.aggregator == identity.fingerprint()
    for place in ("keys.yaml", "parties/north/keys.yaml"):
        assert yaml.safe_load((tmp_path / "out" / place).read_text())["aggregator"] == identity.to_text()
    page = read_page(tmp_path / "out/parties/north/fingerprints.txt")
    assert page["the aggregator"] == bare(identity.fingerprint())
    assert _carry_out(tmp_path, [NORTH], rotate=["aggregator"]).aggregator != first.aggregator
    with pytest.raises(InputError, match="operator's own name"):
        _carry_out(tmp_path, [{"name": "aggregator"}])
