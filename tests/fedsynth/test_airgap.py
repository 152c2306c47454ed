"""A release in one file: made, checked, loaded; whatever somebody slips in is refused before anything is loaded."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from crypto.keys import IdentityKey
from fedsynth.airgap.contents import CONTENTS, IMAGES, SIGNATURE, Contents, ParcelRefused, signed
from fedsynth.airgap.opening import LARGEST_HEAD, check, unpack
from fedsynth.airgap.packing import make
from fedsynth.cli import assembled
from synth.errors import InputError
from tests.charts.tools import CHARTS, helm, run_helm
from tests.fedsynth.standin_engine import REFERENCES, StandIn

KEY = IdentityKey.from_bytes(b"r" * 32)
OTHER = IdentityKey.from_bytes(b"o" * 32)
Members = dict[str, bytes]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    found = StandIn(tmp_path / "bin")
    monkeypatch.setenv("PATH", os.pathsep.join([str(found.folder), str(Path(helm()).parent), os.environ["PATH"]]))
    return found


@pytest.fixture
def parcel(tmp_path: Path, engine: StandIn) -> Path:
    for name in ("wheels", "docs", "sbom"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / f"{name}-1.0+cpu.txt").write_text(name)
    folders = {name: tmp_path / name for name in ("wheels", "docs", "sbom")} | {"charts": CHARTS["aggregator"].parent}
    make(tmp_path / "parcel.tar", KEY, REFERENCES, folders)
    return tmp_path / "parcel.tar"


def _members(path: Path) -> Members:
    with tarfile.open(path) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]


def _written(path: Path, members: Members, *more: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for member, content in more:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def _signed_anew(members: Members, change: Callable[[dict[str, object]], None], key: IdentityKey = KEY) -> Members:
    """What somebody with the key could write: the list changed, and the signature right."""
    contents = json.loads(members[CONTENTS])
    change(contents)
    text = json.dumps(contents).encode()
    return {CONTENTS: text, SIGNATURE: signed(text, key)} | {
        name: content for name, content in members.items() if name not in (CONTENTS, SIGNATURE)
    }


def test_a_parcel_holds_everything_and_unpacks_to_the_letter(parcel: Path, tmp_path: Path) -> None:
    contents = unpack(parcel, KEY.identity, tmp_path / "out")
    assert set(contents.images) == set(REFERENCES)
    assert {path.split("/")[0] for path in contents.files} == {
        "images",
        "charts",
        "wheels",
        "manifests",
        "docs",
        "sbom",
    }
    for path in contents.files:
        assert (tmp_path / "out" / path).read_bytes() == _members(parcel)[path]
    for manifest in yaml.safe_load_all((tmp_path / "out/manifests/aggregator.yaml").read_text()):
        assert "monitoring.coreos.com" not in manifest["apiVersion"]
    done = run_helm("template", "x", str(tmp_path / "out/charts/aggregator"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "place", [CONTENTS, SIGNATURE, IMAGES, "charts/fed-node/values.yaml", "docs/deep/docs-1.0+cpu.txt"]
)
def test_a_changed_byte_anywhere_is_refused(parcel: Path, place: str, tmp_path: Path) -> None:
    members = _members(parcel)
    content = bytearray(members[place])
    content[len(content) // 2] ^= 1
    members[place] = bytes(content)
    with pytest.raises(ParcelRefused):
        unpack(_written(parcel, members), KEY.identity, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".parcel-*"))


def test_another_key_is_refused_though_its_signature_is_right(parcel: Path) -> None:
    mine = _signed_anew(_members(parcel), lambda contents: None, OTHER)
    with pytest.raises(ParcelRefused, match="not signed by the key"):
        check(_written(parcel, mine), KEY.identity)


def test_a_kits_signature_is_none_for_a_parcel(parcel: Path) -> None:
    members = _members(parcel)
    members[SIGNATURE] = json.dumps(
        {"key": KEY.identity.to_text(), "signature": KEY.sign(members[CONTENTS]).hex()}
    ).encode()
    with pytest.raises(ParcelRefused, match="not signed by the key"):
        check(_written(parcel, members), KEY.identity)


@pytest.mark.parametrize("gone", [SIGNATURE, CONTENTS, IMAGES, "sbom/deep/sbom-1.0+cpu.txt"])
def test_what_is_missing_is_refused(parcel: Path, gone: str) -> None:
    members = _members(parcel)
    del members[gone]
    with pytest.raises(ParcelRefused, match=r"does not begin with|lacks"):
        check(_written(parcel, members), KEY.identity)


@pytest.mark.parametrize(
    "path", ["../evil", "/etc/evil", "charts/../../evil", "docs/./x", "elsewhere/x", "docs/a\nb", "docs"]
)
def test_a_signed_way_out_of_the_folder_is_refused(parcel: Path, path: str, tmp_path: Path) -> None:
    def lead_out(contents: dict[str, object]) -> None:
        contents["files"][path] = {"sha256": "0" * 64, "bytes": 1}  # type: ignore[index]

    with pytest.raises(ParcelRefused, match="no place in a parcel"):
        unpack(
            _written(parcel, _signed_anew(_members(parcel), lead_out) | {path: b"x"}), KEY.identity, tmp_path / "out"
        )


def _link(name: str, kind: bytes, target: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


@pytest.mark.parametrize(
    "member",
    [
        tarfile.TarInfo("docs/added.md"),
        tarfile.TarInfo("../evil"),
        tarfile.TarInfo("contents.json"),
        tarfile.TarInfo("charts/aggregator/values.yaml"),  # a second time
        _link("docs/link", tarfile.SYMTYPE, "/etc/passwd"),
        _link("docs/link", tarfile.LNKTYPE, "contents.json"),
        _link("docs/pipe", tarfile.FIFOTYPE, ""),
    ],
    ids=["added", "traversal", "list", "twice", "symlink", "hardlink", "fifo"],
)
def test_what_is_not_on_the_list_is_refused(parcel: Path, member: tarfile.TarInfo, tmp_path: Path) -> None:
    content = b"x" if member.isreg() else b""
    with pytest.raises(ParcelRefused, match="which its list does not"):
        unpack(_written(parcel, _members(parcel), (member, content)), KEY.identity, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_link_in_the_place_of_a_listed_file_is_refused(parcel: Path) -> None:
    members = _members(parcel)
    del members["charts/fed-node/values.yaml"]
    link = _link("charts/fed-node/values.yaml", tarfile.SYMTYPE, "/etc/passwd")
    with pytest.raises(ParcelRefused, match="which its list does not"):
        check(_written(parcel, members, (link, b"")), KEY.identity)


def test_a_header_of_any_size_costs_nothing(parcel: Path) -> None:
    """A name of a gigabyte would be read into memory before anything is verified."""
    giant = tarfile.TarInfo("././@PaxHeader")
    giant.type, giant.size = tarfile.XHDTYPE, LARGEST_HEAD * 100
    parcel.write_bytes(giant.tobuf(tarfile.USTAR_FORMAT) + parcel.read_bytes())
    with pytest.raises(ParcelRefused, match="absurd size"):
        check(parcel, KEY.identity)


@pytest.mark.parametrize(
    "header", [{"GNU.sparse.map": "a,b"}, {"GNU.sparse.size": "zz"}, {"size": "-5"}, {"path": "../x"}]
)
def test_headers_that_python_stumbles_over_are_refused(parcel: Path, header: dict[str, str], tmp_path: Path) -> None:
    members = _members(parcel)
    last = list(members)[-1]
    odd = tarfile.TarInfo(last)
    odd.pax_headers = header
    with pytest.raises(ParcelRefused):
        unpack(
            _written(tmp_path / "odd", {name: members[name] for name in list(members)[:-1]}, (odd, members[last])),
            KEY.identity,
            tmp_path / "out",
        )
    assert not (tmp_path / "out").exists()


def test_cut_files_and_other_files_are_refused(parcel: Path, tmp_path: Path) -> None:
    parcel.write_bytes(parcel.read_bytes()[:-40_000])
    with pytest.raises(ParcelRefused):
        check(parcel, KEY.identity)
    (tmp_path / "other").write_bytes(b"no archive" * 1000)
    with pytest.raises(ParcelRefused, match="no parcel"):
        check(tmp_path / "other", KEY.identity)


def test_an_image_that_docker_did_not_save_is_told(tmp_path: Path, engine: StandIn) -> None:
    folders = dict.fromkeys(("charts", "wheels", "docs", "sbom"), CHARTS["aggregator"].parent)
    with pytest.raises(InputError, match="other/image:1 is not in what docker saved"):
        make(tmp_path / "p.tar", KEY, ["other/image:1"], folders)
    with pytest.raises(InputError, match="no folder"):
        make(tmp_path / "p.tar", KEY, REFERENCES, folders | {"sbom": tmp_path / "none"})
    assert not (tmp_path / "p.tar").exists()


def _airgap(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(assembled(["airgap"]), ["airgap", *words])
    complaint = "" if done.exception is None or isinstance(done.exception, SystemExit) else str(done.exception)
    return done.exit_code, done.output + complaint


def test_nothing_is_loaded_from_a_parcel_that_does_not_hold(parcel: Path, engine: StandIn, tmp_path: Path) -> None:
    before, members = len(engine.told), _members(parcel)
    members["docs/deep/docs-1.0+cpu.txt"] = b"DOCS"
    _written(parcel, members)
    code, words = _airgap(
        "load", str(parcel), "--key", KEY.identity.to_text(), "-o", str(tmp_path / "out"), "--into", "docker"
    )
    assert code != 0
    assert "not the file that was signed" in words
    assert len(engine.told) == before


def test_what_was_loaded_is_what_charts_ask_for(parcel: Path, engine: StandIn, tmp_path: Path) -> None:
    out, key = tmp_path / "out", KEY.identity.to_text()
    assert _airgap("load", str(parcel), "--key", key, "-o", str(out), "--into", "kind", "--cluster", "far")[0] == 0
    assert engine.told[-1] == ["kind", "load", "image-archive", str(out / IMAGES), "--name", "far"]
    shutil.rmtree(out)
    pushed = ["--into", "docker", "--registry", "registry.example.org/mirror"]
    assert _airgap("load", str(parcel), "--key", key, "-o", str(out), *pushed)[0] == 0
    for chart, image in (("aggregator", "aggregator"), ("fed-node", "fed-node")):
        smallest = str(CHARTS[chart] / "lint-values" / "smallest.yaml")
        done = run_helm(
            "template", "x", str(out / "charts" / chart), "-f", smallest, "-f", str(out / f"{chart}-images.yaml")
        )
        assert f"image: registry.example.org/mirror/fedsynth/{image}@sha256:{'e' * 64}" in done.stdout, done.stderr


def test_an_engine_that_has_something_else_under_the_name_is_noticed(
    parcel: Path, engine: StandIn, tmp_path: Path
) -> None:
    engine.say(dict.fromkeys(REFERENCES, "sha256:" + "f" * 64))
    words = ["load", str(parcel), "--key", KEY.identity.to_text(), "-o", str(tmp_path / "out"), "--into", "docker"]
    code, told = _airgap(*words)
    assert code != 0
    assert "not what was signed" in told


def test_keys_are_made_once_and_a_parcel_is_checked_by_the_printed_one(parcel: Path, tmp_path: Path) -> None:
    code, words = _airgap("keygen", "-o", str(tmp_path / "release.key"), "--json")
    assert code == 0
    assert (tmp_path / "release.key").stat().st_mode & 0o077 == 0
    assert _airgap("keygen", "-o", str(tmp_path / "release.key"))[0] != 0
    assert _airgap("check", str(parcel), "--key", json.loads(words)["key"])[0] != 0
    code, words = _airgap("check", str(parcel), "--key", KEY.identity.to_text())
    assert code == 0
    assert "It holds: fedsynth" in words
    assert _airgap("check", str(parcel), "--key", "north")[0] != 0


def test_contents_name_images_and_files() -> None:
    with pytest.raises(ValueError, match="lists no images"):
        Contents.model_validate({"release": "0", "made": "", "images": {}, "files": {}})
