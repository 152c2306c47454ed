"""The consoles open no door: loopback, no port, no Service, nothing in a policy; and they can touch almost nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.charts.tools import CHARTS, rendered

PORTS = {"aggregator": "8600", "fed-node": "8601"}


def _pod(chart: str, values: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    manifests = rendered(chart, CHARTS[chart] / "lint-values" / values)
    deployment = next(each for each in manifests if each["kind"] == "Deployment")
    return deployment["spec"]["template"]["spec"], manifests


def _console(chart: str) -> dict[str, Any]:
    pod, _ = _pod(chart, "production.yaml")
    return next(each for each in pod["containers"] if each["name"] == "console")


@pytest.mark.parametrize("chart", PORTS)
def test_there_is_none_unless_it_is_asked_for(chart: str) -> None:
    pod, _ = _pod(chart, "smallest.yaml")
    assert "console" not in {each["name"] for each in pod["containers"]}


@pytest.mark.parametrize("chart", PORTS)
def test_nothing_outside_the_pod_reaches_it(chart: str) -> None:
    _, manifests = _pod(chart, "production.yaml")
    assert "ports" not in _console(chart)
    for each in manifests:
        if each["kind"] in ("Service", "NetworkPolicy", "Ingress"):
            assert PORTS[chart] not in str(each)


def test_the_operators_page_only_reads() -> None:
    mounts = {each["name"]: each for each in _console("aggregator")["volumeMounts"]}
    assert mounts.keys() == {"state", "metrics", "console", "tmp-console"}  # no key, no door to the SuperLink
    assert mounts["state"]["readOnly"]
    assert mounts["metrics"]["readOnly"]


def test_the_partys_page_sees_no_row_and_no_key() -> None:
    mounts = _console("fed-node")["volumeMounts"]
    assert {each["name"] for each in mounts} == {"home", "settings", "administration", "console", "tmp-console"}
    assert all(each.get("readOnly") for each in mounts if each["name"] in ("home", "settings"))
    pod, _ = _pod("fed-node", "production.yaml")
    reaching = {c["name"] for c in pod["containers"] for m in c["volumeMounts"] if m["name"] == "administration"}
    assert reaching == {"worker", "console"}  # nobody who decodes the aggregator's messages


@pytest.mark.parametrize("chart", PORTS)
def test_it_is_as_confined_as_the_others(chart: str) -> None:
    security = _console(chart)["securityContext"]
    assert security["readOnlyRootFilesystem"]
    assert not security["allowPrivilegeEscalation"]
    assert security["capabilities"] == {"drop": ["ALL"]}
