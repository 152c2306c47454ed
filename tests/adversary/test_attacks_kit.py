"""A hostile operator, or whoever carries a kit, tries to decide for the party; each time nothing may be installed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from crypto.keys import IdentityKey
from fedsynth.cli import app
from fedsynth.cluster.api import Cluster
from fedsynth.cluster.releases import Releases
from fedsynth.documents import write_yaml
from fedsynth.provision.federation import Federation, Member
from fedsynth.provision.fingerprints import in_groups, of_values, page, read_page
from fedsynth.provision.kits import fingerprints_of_kit
from fedsynth.provision.party_keys import own_keys
from fedsynth.provision.provisioning import Provisioning
from fedsynth.provision.signature import signed
from synth.errors import FedsynthError

PARTIES = ("north", "south", "west")
ROOT = Path(__file__).parents[2]


@dataclass
class InstalledWorld:
    """A federation's folder, a party's own keys, and what reached the cluster."""

    folder: Path
    applied: list[str] = field(default_factory=list)
    installed: list[dict[str, Any]] = field(default_factory=list)

    @property
    def kit(self) -> Path:
        return self.folder / "kit"

    @property
    def heard(self) -> Path:
        """What the parties read to each other by telephone: from their own keys, not from any kit."""
        return self.folder / "heard.txt"

    def provision(self, make_keys: tuple[str, ...] = (), **changes: Any) -> None:
        members = []
        for name in PARTIES:
            keys = None if name in make_keys else own_keys(self.folder / "homes" / name).public
            members.append(Member(name=name, **(vars(keys) if keys else {})))
        content = {"name": "coast", "endpoint": "fed.example.org:443", "parties": members} | changes
        Provisioning(Federation.model_validate(content), self.folder / "out", make_keys=make_keys).carry_out()
        shutil.rmtree(self.kit, ignore_errors=True)
        shutil.copytree(self.folder / "out/parties/north", self.kit)

    def install(self, *more: str, typed: str | None = None) -> Result:
        words = ["install", "fed-node", "--kit", str(self.kit), "--charts", str(ROOT / "charts"), *more]
        done = CliRunner().invoke(app, words, input=typed)
        if isinstance(done.exception, FedsynthError):
            done.exit_code = done.exception.exit_code
        return done

    def present(self, release: str) -> dict[str, Any]:
        return self.installed[-1] if self.installed else {}

    def values(self) -> dict[str, Any]:
        content: dict[str, Any] = yaml.safe_load((self.kit / "values.yaml").read_text())
        return content

    def resign(self, change: Callable[[dict[str, Any]], None], files: dict[str, str] | None = None) -> None:
        """As the operator itself would do it: other values, everything else made to fit, signed with the real key."""
        values = self.values()
        change(values)
        keys = yaml.safe_load((self.kit / "keys.yaml").read_text())
        keys |= values.get("party", {}).get("peers", {})
        (self.kit / "values.yaml").write_text(write_yaml(values))
        (self.kit / "keys.yaml").write_text(write_yaml(keys))
        (self.kit / "fingerprints.txt").write_text(fingerprints_of_kit(values, keys))
        for name, text in (files or {}).items():
            (self.kit / name).write_text(text)
        key = IdentityKey.from_pem((self.folder / "out/authority/federation.key").read_bytes())
        content = {path.name: path.read_bytes() for path in self.kit.iterdir() if path.name != "signature.json"}
        (self.kit / "signature.json").write_text(signed(content, "coast", "north", key))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[InstalledWorld]:
    made = InstalledWorld(tmp_path)
    made.provision()
    marks = read_page(tmp_path / "out/fingerprints.txt")
    made.heard.write_text(page("as heard", {name: mark for name, mark in marks.items() if "node" not in name}))
    with played(made):
        yield made


@contextmanager
def played(made: InstalledWorld) -> Iterator[None]:
    """A cluster that only remembers."""
    with (
        mock.patch.object(Cluster, "__init__", return_value=None),
        mock.patch.object(Cluster, "ensure_namespace"),
        mock.patch.object(Cluster, "apply", lambda cluster, text: made.applied.append(text)),
        mock.patch.object(Releases, "__init__", return_value=None),
        mock.patch.object(Releases, "values", made.present),
        mock.patch.object(Releases, "install", lambda releases, n, c, layers, w: made.installed.append(layers[0]) or 1),
    ):
        yield


def nothing_happened(world: InstalledWorld, done: Result) -> str:
    assert done.exit_code == 2, done.output
    assert world.applied == []
    assert world.installed == []
    return str(done.exception)


def typed_marks(world: InstalledWorld) -> str:
    """What a person types who heard everybody: the end of each fingerprint that will be believed."""
    heard = read_page(world.heard)
    return "".join(f"{heard[name][-8:].lower()}\n" for name in of_values(world.values()))


def test_a_kit_is_installed_once_somebody_types_what_was_heard(world: InstalledWorld) -> None:
    keys = ("--keys", str(world.folder / "homes/north"))
    done = world.install(*keys, typed=typed_marks(world))
    assert done.exit_code == 0, done.output
    assert world.installed == [world.values()]
    assert max(map(len, done.output.splitlines())) <= 80
    for mark in of_values(world.values()).values():  # whole, in groups
        assert all(line in done.output for line in in_groups(mark).splitlines())
    (secret,) = world.applied
    assert yaml.safe_load(secret)["metadata"]["name"] == "fed-node-keys"
    again = world.install(typed="")  # everything is pinned in the release: nothing to ask
    assert again.exit_code == 0
    assert "(as installed)" in again.output


def another(mark: str) -> str:
    """The same but for its last character."""
    return mark[:-1] + ("A" if mark[-1] == "2" else "2")


def test_a_file_with_what_was_heard_is_as_good_and_must_be_whole(world: InstalledWorld) -> None:
    assert world.install("--fingerprints", str(world.heard)).exit_code == 0
    world.installed.clear()
    heard = read_page(world.heard)
    world.heard.write_text(page("", heard | {"south": another(heard["south"])}))
    assert "'south'" in nothing_happened(world, world.install("--fingerprints", str(world.heard)))
    world.heard.write_text(page("", {name: mark for name, mark in heard.items() if name != "west"}))
    assert "'west'" in nothing_happened(world, world.install("--fingerprints", str(world.heard)))
    world.heard.write_text(page("", heard | {"west": heard["west"][-8:]}))
    assert "'west'" in nothing_happened(world, world.install("--fingerprints", str(world.heard)))
    told = nothing_happened(world, world.install("--fingerprints", str(world.kit / "fingerprints.txt")))
    assert "kit's own word" in told


@pytest.mark.parametrize("typed", ["", "\n", "y\n", "AAAAAAAA\n"])
def test_nobody_answers_by_accident(world: InstalledWorld, typed: str) -> None:
    done = world.install(typed=typed)
    assert done.exit_code in (1, 2)
    assert world.installed == world.applied == []


def test_the_old_attack_fingerprints_of_the_honest_and_peers_of_the_attacker(world: InstalledWorld) -> None:
    """What people compared was fingerprints.txt; what was installed was values.yaml, and nobody compared the two."""
    attacker = IdentityKey.generate().identity.to_text()
    text = (world.kit / "values.yaml").read_text()
    (world.kit / "values.yaml").write_text(text.replace(world.values()["party"]["peers"]["south"], attacker))
    assert "not what the federation signed" in nothing_happened(world, world.install(typed=typed_marks(world)))


def test_a_kit_that_fits_together_with_an_attackers_peer_is_found_out_by_the_telephone(world: InstalledWorld) -> None:
    honest = typed_marks(world)
    attacker = IdentityKey.generate().identity.to_text()
    world.resign(lambda values: values["party"]["peers"].update(south=attacker))
    assert "south" in nothing_happened(world, world.install(typed=honest))
    assert "'south'" in nothing_happened(world, world.install("--fingerprints", str(world.heard)))


def test_an_added_peer_is_asked_for_even_after_the_first_install(world: InstalledWorld) -> None:
    assert world.install("--fingerprints", str(world.heard)).exit_code == 0
    before = list(world.installed)
    world.resign(lambda values: values["party"]["peers"].update(east=IdentityKey.generate().identity.to_text()))
    done = world.install(typed="\n")
    assert done.exit_code == 2
    assert "east (new)" in done.output
    assert world.installed == before


def test_the_whole_kit_of_another_hand_is_told_from_the_installed_one(world: InstalledWorld) -> None:
    assert world.install("--fingerprints", str(world.heard)).exit_code == 0
    before = list(world.installed)
    shutil.rmtree(world.folder / "out")
    world.provision()  # the same parties, another authority and another key that signs
    done = world.install(typed="\n")
    assert done.exit_code == 2
    assert "the federation (CHANGED)" in done.output
    assert world.installed == before


WISHES: list[dict[str, Any]] = [
    {"images": {"node": {"repository": "attacker.example.org/node"}}},
    {"policy": {"auto_approve": ["0" * 64]}},
    {"policy": {"allow_unproven": True}},
    {"networkPolicy": {"enabled": False}},
    {"pod": {"hostAliases": [{"ip": "203.0.113.9", "hostnames": ["fed.example.org"]}]}},
    {"proxy": {"url": "http://attacker.example.org:3128"}},
    {"party": {"debugValues": True}},
    {"data": {"source": {"kind": "csv", "path": "/etc/passwd"}}},
    {"metrics": {"enabled": True}},
    {"keys": {"existingSecret": "another"}},
    {"keys": {"madeBy": "party"}},
    {"global": {"anything": 1}},
    {"aggregator": {"endpoint": "fed.example.org:443\n  x: y"}},
    {"aggregator": {"endpoint": "-x:1 --insecure"}},
    {"party": {"name": "north\x1b[2J"}},
    {"party": {"peers": {"the authority": IdentityKey.from_bytes(b"7" * 32).identity.to_text()}}},
    {"party": {"peers": {"east": "ed25519:AAAA"}}},
]


@pytest.mark.parametrize("wish", WISHES, ids=lambda wish: json.dumps(wish)[:60])
def test_what_an_operator_has_no_say_in_is_refused_by_its_name(world: InstalledWorld, wish: dict[str, Any]) -> None:
    """Signed with the real key, and everything else made to fit."""
    values = world.values()
    for section, content in wish.items():
        if isinstance(content, dict) and isinstance(values.get(section), dict):
            old = values[section]
            merged = {key: old.get(key) | value if key == "peers" else value for key, value in content.items()}
            values[section] = old | merged
        else:
            values[section] = content
    (world.kit / "values.yaml").write_text(write_yaml(values))
    key = IdentityKey.from_pem((world.folder / "out/authority/federation.key").read_bytes())
    content = {path.name: path.read_bytes() for path in world.kit.iterdir() if path.name != "signature.json"}
    (world.kit / "signature.json").write_text(signed(content, "coast", values["party"]["name"], key))
    told = nothing_happened(world, world.install("--fingerprints", str(world.heard)))
    assert next(iter(wish)) in told
    assert "\x1b" not in told


def a_secret(**changes: Any) -> str:
    entries = {"node.key": "x", "identity.key": "y"}
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "fed-node-keys"}, "type": "Opaque"}
    return write_yaml(manifest | {"stringData": entries} | changes)


MANIFESTS = {
    "another kind": a_secret(kind="ConfigMap"),
    "another name": a_secret(metadata={"name": "database"}),
    "another namespace": a_secret(metadata={"name": "fed-node-keys", "namespace": "kube-system"}),
    "more entries": a_secret(stringData={"node.key": "x", "identity.key": "y", "url": "z"}),
    "data beside": a_secret(data={"url": "eA=="}),
    "two": a_secret() + "---\n" + a_secret(kind="ConfigMap", metadata={"name": "fed-node"}),
    "no manifest": "just text",
}


@pytest.mark.parametrize("manifest", MANIFESTS.values(), ids=MANIFESTS)
def test_a_kit_writes_nothing_but_the_partys_keys(world: InstalledWorld, manifest: str) -> None:
    world.resign(lambda values: values.update(keys={"madeBy": "operator"}), {"secrets.yaml": manifest})
    told = nothing_happened(world, world.install("--fingerprints", str(world.heard), "--accept-operator-keys"))
    assert "secrets.yaml" in told


def test_keys_that_the_operator_made_are_said_so_and_taken_only_if_the_party_agrees(world: InstalledWorld) -> None:
    world.resign(lambda values: None, {"secrets.yaml": a_secret()})  # does not say who made them
    assert "who made them" in nothing_happened(world, world.install("--fingerprints", str(world.heard)))
    shutil.rmtree(world.folder / "out")
    world.provision(make_keys=("north",))
    world.heard.write_text((world.folder / "out/fingerprints.txt").read_text())
    assert "--accept-operator-keys" in nothing_happened(world, world.install("--fingerprints", str(world.heard)))
    done = world.install("--fingerprints", str(world.heard), "--accept-operator-keys")
    assert done.exit_code == 0, done.output
    assert world.installed[0]["keys"] == {"madeBy": "operator"}


def test_a_stranger_in_this_partys_name_is_noticed(world: InstalledWorld) -> None:
    """The others would pin a key of the operator's as north's."""
    own_keys(world.folder / "other")
    done = world.install("--keys", str(world.folder / "other"), "--fingerprints", str(world.heard))
    assert "in your name" in nothing_happened(world, done)


@pytest.mark.parametrize("name", ["values.yaml", "ca.crt", "keys.yaml", "fingerprints.txt", "signature.json"])
@pytest.mark.parametrize("how", ["change", "remove", "link"])
def test_a_file_that_was_changed_on_the_way_is_noticed(world: InstalledWorld, name: str, how: str) -> None:
    path = world.kit / name
    if how == "change":
        path.write_text(path.read_text() + "\n")
    elif how == "remove":
        path.unlink()
    else:
        path.rename(world.folder / name)
        path.symlink_to(world.folder / name)
    if (name, how) == ("signature.json", "change"):  # a blank line says nothing
        path.write_text(path.read_text().replace("coast", "coasts", 1).replace('"signature": "', '"signature": "00'))
    nothing_happened(world, world.install("--fingerprints", str(world.heard)))


@pytest.mark.parametrize("name", ["deployment.yaml", ".hidden", "crds/x.yaml", "mine.yaml"])
def test_an_unknown_file_is_refused_by_its_name(world: InstalledWorld, name: str) -> None:
    (world.kit / name).parent.mkdir(exist_ok=True)
    (world.kit / name).write_text("kind: Secret")
    told = nothing_happened(world, world.install("--fingerprints", str(world.heard)))
    assert name.split("/")[0] in told


def test_files_that_contradict_each_other_are_refused_even_if_signed(world: InstalledWorld) -> None:
    page_of_another = (world.folder / "out/parties/south/fingerprints.txt").read_text()
    world.resign(lambda values: None, {"fingerprints.txt": page_of_another})
    assert "does not say what" in nothing_happened(world, world.install("--fingerprints", str(world.heard)))
    world.resign(lambda values: None, {"ca.crt": "another"})
    assert "ca.crt" in nothing_happened(world, world.install("--fingerprints", str(world.heard)))


@pytest.mark.parametrize("text", ["[" * 50_000, "a: &a [*a, *a]\n", "\x00", "2026-99-99", "- &x [1]\n- *y", "\ud800"])
def test_values_that_are_no_yaml_give_no_traceback(world: InstalledWorld, text: str) -> None:
    (world.kit / "values.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    nothing_happened(world, world.install("--fingerprints", str(world.heard)))


def test_the_kit_of_another_party_is_refused(world: InstalledWorld) -> None:
    signature = world.folder / "out/parties/south/signature.json"
    shutil.copy(signature, world.kit / "signature.json")
    nothing_happened(world, world.install("--fingerprints", str(world.heard)))


def test_what_is_compared_is_what_is_installed_whoever_wrote_it(world: InstalledWorld) -> None:
    """The party's own values come last; a peer there is shown and asked for like any other."""
    mine = world.folder / "mine.yaml"
    mine.write_text(write_yaml({"party": {"peers": {"south": IdentityKey.generate().identity.to_text()}}}))
    told = nothing_happened(world, world.install("-f", str(mine), "--fingerprints", str(world.heard)))
    assert "'south'" in told
    mine.write_text(write_yaml({"policy": {"maximum_rounds": 5}, "images": {"tag": "mine"}}))
    assert world.install("-f", str(mine), "--fingerprints", str(world.heard)).exit_code == 0
    assert world.installed[0] == world.values() | {"policy": {"maximum_rounds": 5}, "images": {"tag": "mine"}}
