"""What is installed and run is named by its digest: packages, base images, actions."""

from __future__ import annotations

import importlib.util
import io
import re
import tarfile
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "images" / "locks"
PIN = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[a-z]+\])?==([^\s;]+)", re.MULTILINE)


def _pins(text: str) -> dict[str, str]:
    return {name.lower().replace("_", "-"): version for name, version in PIN.findall(text)}


def _name(requirement: str) -> str:
    return re.split(r"[\[<>=~! ]", requirement)[0].lower().replace("_", "-")


def _parts(project: dict[str, Any]) -> list[list[str]]:
    """What is needed anywhere, but for the developers' tools."""
    extras = project["optional-dependencies"]
    return [project["dependencies"], *(extras[name] for name in ("formats", "node", "neural", "cluster", "sources"))]


def test_what_is_installed_beside_other_things_has_a_range() -> None:
    """An exact version would keep everybody else from having another; Flower alone must be alike on both sides."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    exact = {_name(each) for part in _parts(project) for each in part if "==" in each}
    assert exact == {"flwr"}


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "images" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("lock", ["cpu", "cuda", "build"])
def test_every_locked_package_has_hashes(lock: str) -> None:
    entries = re.split(r"\n(?=[A-Za-z])", (LOCKS / f"{lock}.txt").read_text().split("\n", 1)[1])
    packages = [entry for entry in entries if PIN.match(entry)]
    assert packages
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in packages)


@pytest.mark.parametrize("lock", ["cpu", "cuda"])
def test_locks_hold_the_versions_that_are_tested(lock: str) -> None:
    """`make lock` brings them up to date."""
    locked, tested = _pins((LOCKS / f"{lock}.txt").read_text()), _pins((ROOT / "constraints.txt").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {_name(each) for part in _parts(project) for each in part} - {"fedsynth"}  # which names its own extras
    assert wanted
    assert wanted <= locked.keys()
    assert wanted <= tested.keys()
    for name, version in locked.items():
        assert version.removesuffix("+cpu") == tested.get(name, version), name


def test_images_install_by_hash_and_start_from_a_digest() -> None:
    base = (ROOT / "Dockerfile").read_text()
    for install in re.findall(r"pip [^&]*? install [^&]*", base):
        assert "--require-hashes" in install or "--no-index" in install, install
    for dockerfile in [ROOT / "Dockerfile", *ROOT.glob("images/*/Dockerfile")]:
        for name, default in re.findall(r"^ARG (PYTHON|DEBIAN)=(.*)$", dockerfile.read_text(), re.MULTILINE):
            assert re.fullmatch(r"\S+@sha256:[0-9a-f]{64}", default), (dockerfile, name)
        for image in re.findall(r"^FROM (\S+)", dockerfile.read_text(), re.MULTILINE):
            assert image in ("scratch", "build", "${PYTHON}", "${DEBIAN}", "${BASE}"), image


def test_actions_are_pinned_by_commit() -> None:
    for workflow in ROOT.glob(".github/workflows/*.yaml"):
        for job in yaml.safe_load(workflow.read_text())["jobs"].values():
            for step in job["steps"]:
                assert re.search(r"@[0-9a-f]{40}$", step.get("uses", "@" + "0" * 40)), step


def test_the_policy_example_admits_signed_digests_only() -> None:
    policy = yaml.safe_load((ROOT / "examples" / "policies" / "signed-images.yaml").read_text())
    (rule,) = policy["spec"]["rules"]
    (images,) = rule["verifyImages"]
    assert policy["spec"]["validationFailureAction"] == "Enforce"
    assert images["required"]
    assert images["verifyDigest"]
    labels = rule["match"]["any"][0]["resources"]["selector"]["matchLabels"]
    for chart in ("aggregator", "fed-node"):
        names = (ROOT / "charts" / chart / "templates" / "_names.tpl").read_text()
        assert all(f"{name}: {value}" in names for name, value in labels.items())


def test_an_image_is_listed_by_what_is_in_it() -> None:
    sbom, content = _script("sbom"), io.BytesIO()
    files = {
        "var/lib/dpkg/status": "Package: bash\nStatus: install ok installed\nArchitecture: amd64\nVersion: 5.2+1\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 1\n",
        "opt/x/numpy-2.4.6.dist-info/METADATA": "Metadata-Version: 2.1\nName: numpy\nVersion: 2.4.6\n\ntext",
        "usr/share/sbom/packages": "nginx 1.22.1-9 amd64\n",
    }
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    content.seek(0)
    with tarfile.open(fileobj=content) as archive:
        found = sbom.document("image", "sha256:0", list(sbom.components(archive)))
    assert [each["purl"] for each in found["components"]] == [
        "pkg:deb/debian/bash@5.2%2B1?arch=amd64",
        "pkg:deb/debian/nginx@1.22.1-9?arch=amd64",
        "pkg:pypi/numpy@2.4.6",
    ]
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.5")
