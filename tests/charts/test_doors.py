"""What the aggregator's public door does to strangers, as the chart renders it; tests/e2e/test_edge.py knocks at it."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization

from fedsynth.provision.party_keys import new_keys
from tests.charts.tools import CHARTS, pod_specs, rendered

LINT = [(chart, values) for chart, folder in CHARTS.items() for values in sorted((folder / "lint-values").iterdir())]
CHUNK_BYTES = 5 * 1024 * 1024  # FLWR_PRIVATE_MAX_ARRAY_CHUNK_SIZE
SMALLEST = CHARTS["aggregator"] / "lint-values" / "smallest.yaml"


def _manifests(folder: Path, values: dict[str, Any]) -> list[dict[str, Any]]:
    (folder / "values.yaml").write_text(yaml.safe_dump(values))
    return rendered("aggregator", folder / "values.yaml")


def _data(manifests: list[dict[str, Any]]) -> dict[str, str]:
    data: dict[str, str] = next(
        each["data"] for each in manifests if each["metadata"]["name"] == "demo-aggregator-edge"
    )
    return data


def _containers() -> dict[str, dict[str, Any]]:
    pod = next(each for each in pod_specs(rendered("aggregator", SMALLEST)) if len(each["containers"]) > 1)
    return {each["name"]: each for each in pod["containers"]}


def test_a_party_is_told_by_the_key_that_its_node_sends(tmp_path: Path) -> None:
    """The header is base64 of the PEM that Flower's client makes of its key; the chart must find the same letters."""
    keys = {name: new_keys().public for name in ("north", "south")}
    parties = {name: {"nodeKey": key.node_key, "identity": key.identity} for name, key in keys.items()}
    conf = _data(_manifests(tmp_path, {"parties": parties}))["edge.conf"]
    for name, key in keys.items():
        public = serialization.load_ssh_public_key(key.node_key.encode())
        pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        assert f"{base64.b64encode(pem).decode()} {name};" in conf
    assert conf.count('if ($party = "") { return 403; }') == 2  # both ways to the Fleet API


def test_a_body_is_as_large_as_flowers_pieces_and_no_larger() -> None:
    conf = _data(rendered("aggregator", SMALLEST))["edge.conf"]
    large = int(re.search(r"push-object \{.*?client_max_body_size (\d+)m;", conf, re.DOTALL)[1]) * 2**20  # type: ignore[index]
    assert CHUNK_BYTES * 1.1 < large < CHUNK_BYTES * 1.3
    assert "client_max_body_size 256k;" in conf
    assert "proxy_request_buffering on;" in conf
    assert "max_conns=8" in conf


def test_strangers_are_given_little_time_and_few_requests() -> None:
    conf = _data(rendered("aggregator", SMALLEST))["edge.conf"]
    for line in ("client_header_timeout 10s;", "client_body_timeout 10s;", "send_timeout 10s;"):
        assert line in conf
    assert "limit_conn address_requests_at_once 128;" in conf
    assert "limit_req zone=address_requests burst=1600 nodelay;" in conf
    assert "limit_conn_status 503;" in conf  # a SuperNode tries again after 503, and ends itself after 401


def test_no_probe_goes_through_the_public_door() -> None:
    for name, container in _containers().items():
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            door = container.get(probe, {}).get("httpGet") or container.get(probe, {}).get("tcpSocket")
            assert door is None or door["port"] == 8445, f"{probe} of {name}"
    services = [each for each in rendered("aggregator", SMALLEST) if each["kind"] == "Service"]
    assert all(port["targetPort"] not in (8445, "health") for each in services for port in each["spec"]["ports"])


def test_the_public_door_holds_no_key_of_the_operator() -> None:
    mounted = {name: {each["name"] for each in container["volumeMounts"]} for name, container in _containers().items()}
    assert "control" not in mounted["edge"]
    assert "identity" not in mounted["edge"]
    assert "tls" not in mounted["inside"]


@pytest.mark.parametrize(("chart", "values"), LINT, ids=[f"{chart}-{values.stem}" for chart, values in LINT])
def test_every_scratch_volume_has_a_limit(chart: str, values: Path) -> None:
    for pod in pod_specs(rendered(chart, values)):
        for volume in pod["volumes"]:
            assert "emptyDir" not in volume or "sizeLimit" in volume["emptyDir"], volume["name"]


def test_tls_is_authenticated_encryption_only() -> None:
    for conf in _data(rendered("aggregator", SMALLEST)).values():
        assert "ssl_protocols TLSv1.2 TLSv1.3;" in conf
        suites = re.search(r"ssl_ciphers (\S+);", conf)[1].split(":")  # type: ignore[index]
        assert all(suite.startswith("ECDHE-") and ("GCM" in suite or "POLY1305" in suite) for suite in suites)
        assert "proxy_ssl_protocols TLSv1.3;" in conf


def test_the_access_log_has_no_words_of_strangers() -> None:
    conf = _data(rendered("aggregator", SMALLEST))["edge.conf"]
    logged = re.search(r"log_format doors (.*?);\n", conf, re.DOTALL)[1]  # type: ignore[index]
    assert "access_log /dev/stdout doors;" in conf
    worded = {"$request ", "$request_uri", "$args", "$query_string", "$request_body", "$http_", '"$uri"', "$host"}
    assert not [each for each in worded if each in logged]
