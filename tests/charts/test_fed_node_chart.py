"""What a party's chart promises: nothing comes in, one thing goes out, and the ledger stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from fed_node.consent.policy import Policy
from fed_node.settings import PartySettings
from tests.charts.tools import CHARTS, rendered, run_helm

VALUES = CHARTS["fed-node"] / "lint-values"


def _of_kind(kind: str, values: str = "smallest") -> list[dict[str, Any]]:
    return [each for each in rendered("fed-node", VALUES / f"{values}.yaml") if each["kind"] == kind]


def _container(name: str, values: str = "smallest") -> dict[str, Any]:
    pod = _of_kind("Deployment", values)[0]["spec"]["template"]["spec"]
    return next(each for each in pod["containers"] if each["name"] == name)


def test_nothing_comes_in() -> None:
    assert not _of_kind("Service")
    assert _of_kind("NetworkPolicy")[0]["spec"]["ingress"] == []
    assert all("ports" not in _container(name) for name in ("supernode", "tasks", "worker"))
    assert "--host=127.0.0.1" in _container("supernode")["command"]


def test_one_replica_that_is_recreated() -> None:
    spec = _of_kind("Deployment")[0]["spec"]
    assert (spec["replicas"], spec["strategy"]["type"]) == (1, "Recreate")


def test_the_ledger_outlives_the_release() -> None:
    assert _of_kind("PersistentVolumeClaim")[0]["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_only_the_worker_sees_rows_ledger_and_identity() -> None:
    for name in ("supernode", "tasks"):
        assert not {"home", "data", "identity-key"} & {mount["name"] for mount in _container(name)["volumeMounts"]}
    rows = next(mount for mount in _container("worker")["volumeMounts"] if mount["name"] == "data")
    assert rows["readOnly"] is True


@pytest.mark.parametrize("values", ["smallest", "production", "database", "csi"])
def test_settings_and_policy_are_what_the_worker_reads(values: str, tmp_path: Path) -> None:
    data = _of_kind("ConfigMap", values)[0]["data"]
    (tmp_path / "party.yaml").write_text(data["party.yaml"])
    (tmp_path / "policy.yaml").write_text(data["policy.yaml"])
    given = yaml.safe_load((VALUES / f"{values}.yaml").read_text())
    assert PartySettings.load(tmp_path).name == given["party"]["name"]
    policy = Policy.load(tmp_path / "policy.yaml")
    assert policy.maximum_epsilon_per_run == given.get("policy", {}).get("maximum_epsilon_per_run", 1)


def test_every_limit_of_a_policy_can_be_set() -> None:
    schema = yaml.safe_load((CHARTS["fed-node"] / "values.schema.json").read_text())
    assert set(schema["properties"]["policy"]["properties"]) == set(Policy.model_fields)


def test_a_gpu_is_asked_for_by_values() -> None:
    assert "nvidia.com/gpu" not in _container("worker")["resources"]["limits"]
    worker = _container("worker", "production")
    assert worker["resources"]["limits"]["nvidia.com/gpu"] == "2"  # server-side apply takes no number
    pod = _of_kind("Deployment", "production")[0]["spec"]["template"]["spec"]
    assert pod["runtimeClassName"] == "nvidia"
    assert pod["nodeSelector"]["accelerator"] == "a100"


def test_a_gpu_takes_the_image_with_cuda() -> None:
    values = str(VALUES / "smallest.yaml")
    done = run_helm("template", "demo", str(CHARTS["fed-node"]), "-f", values, "--set", "gpu.enabled=true")
    assert "image: fedsynth/fed-node:0.2.0-cuda" in done.stdout


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("party.name=", "party.name is required"),
        ("aggregator.endpoint=", "aggregator.endpoint is required"),
        ("aggregator.ca=", "aggregator.ca is required"),
        ("data.source=null", "data.source is required"),
        ("policy.maximum_epsilon_per_run=0", "maximum_epsilon_per_run"),
        ("policy.auto_approve=true", "name the schemas, [DIGEST]"),
    ],
)
def test_what_is_missing_is_told(setting: str, told: str) -> None:
    done = run_helm(
        "template",
        "demo",
        str(CHARTS["fed-node"]),
        "-f",
        str(VALUES / "smallest.yaml"),
        "--set-json" if "0" in setting else "--set",
        setting,
    )
    assert done.returncode != 0
    assert told in done.stderr
