"""The federation as containers: the commands of the sandbox, and for every container its own folders and network."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from fedsynth.sandbox.compose import write_compose
from fedsynth.sandbox.layout import Layout
from fedsynth.sandbox.making import make

PARTIES = ("north", "south", "west")


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    found = Layout(tmp_path_factory.mktemp("place") / "sandbox")
    make(found, None, None, None)
    write_compose(found, "dev")
    return found


@pytest.fixture
def services(layout: Layout) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load((layout.folder / "compose.yaml").read_text())["services"]
    return found


def mounted(service: dict[str, Any]) -> set[Path]:
    return {Path(each.split(":")[0]) for each in service["volumes"]}


def test_no_container_sees_what_is_not_its_own(layout: Layout, services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        party = name.partition("-")[0] if name.startswith(PARTIES) else None
        for path in mounted(service):
            assert path.exists(), path
            for other in {*PARTIES} - {party}:
                assert not path.is_relative_to(layout.home(other)), (name, path)
                assert not layout.home(other).is_relative_to(path), (name, path)
            if party is not None:
                assert not path.is_relative_to(layout.kits / "aggregator"), (name, path)
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert not service["user"].startswith("0:")


def test_control_is_reached_from_inside_the_aggregator_only(
    layout: Layout, services: dict[str, dict[str, Any]]
) -> None:
    """The SuperLink listens on loopback of a network that its own services share; parties meet the edge, which passes
    Fleet and health, and each on a network of its own without a way out."""
    assert "--host=127.0.0.1" in services["superlink"]["entrypoint"]
    inside = {name for name, each in services.items() if each.get("network_mode") == "service:aggregator"}
    assert inside == {"superlink", "runner", "operator"}
    networks = yaml.safe_load((layout.folder / "compose.yaml").read_text())["networks"]
    assert networks == {party: {"internal": True} for party in PARTIES}
    for party in PARTIES:
        assert services[party]["networks"] == [party]
        assert services[f"{party}-worker"]["network_mode"] == "none"
    passed = [
        line.split()[1] for line in (layout.folder / "edge.conf").read_text().splitlines() if "proxy_pass h" in line
    ]
    assert passed == ["/v1/fleet/", "="]
    assert not any("ports" in each for each in services.values())


def test_programs_are_those_of_the_sandbox(layout: Layout, services: dict[str, dict[str, Any]]) -> None:
    node = services["north"]["entrypoint"]
    assert node[:3] == ["python", "-m", "fed_node.process.supernode"]
    assert "--superlink=aggregator:8443" in node
    assert "aggregator" in layout.federation.read_text()  # the certificate is made out to that name, too
    assert services["north-worker"]["entrypoint"][:4] == ["python", "-m", "fedsynth", "node"]
    assert services["runner"]["environment"]["FEDSYNTH_PARTIES"] == str(layout.register)


def test_docker_compose_takes_the_file(layout: Layout) -> None:
    """Where there is a docker with compose; elsewhere the tests above say what must be in it."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]) and not subprocess.run([*command, "version"], capture_output=True).returncode:
            file = str(layout.folder / "compose.yaml")
            said = subprocess.run([*command, "-f", file, "config", "-q"], capture_output=True, text=True)
            assert said.returncode == 0, said.stderr
            return
    pytest.skip("no docker compose on this machine")
