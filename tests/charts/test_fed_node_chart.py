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
CONTAINERS = ("supernode", "tasks", "worker")


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


def test_only_the_worker_mounts_the_administrators_socket() -> None:
    """The SuperNode and `tasks` decode what the aggregator sends; whoever takes them over must not approve."""
    mounts = {name: {each["mountPath"] for each in _container(name)["volumeMounts"]} for name in CONTAINERS}
    command = _container("worker")["command"]
    place = str(Path(command[command.index("--administration") + 1]).parent)
    assert place in mounts["worker"]
    assert not {place, "/var/lib/fedsynth"} & (mounts["supernode"] | mounts["tasks"])
    pod = _of_kind("Deployment")[0]["spec"]["template"]["spec"]
    shared = {each["name"] for each in _container("worker")["volumeMounts"]} & {
        each["name"] for name in ("supernode", "tasks") for each in _container(name)["volumeMounts"]
    }
    assert shared == {"settings", "socket"}  # and the settings are public, and read-only
    assert not pod.get("shareProcessNamespace")
    assert str(Path(command[command.index("--socket") + 1]).parent) != place


def _egress(*more: str, kubernetes: str = "1.25.0", values: str = "smallest") -> list[dict[str, Any]]:
    words = ["--show-only", "templates/network-policy.yaml", "--kube-version", kubernetes]
    done = run_helm("template", "demo", str(CHARTS["fed-node"]), "-f", str(VALUES / f"{values}.yaml"), *words, *more)
    assert done.returncode == 0, done.stderr
    rules: list[dict[str, Any]] = yaml.safe_load(done.stdout)["spec"]["egress"]
    return rules


def test_the_way_out_is_the_aggregators_addresses_and_one_port() -> None:
    aggregator, _ = _egress("--set", "networkPolicy.aggregatorCidrs={198.51.100.7/32}")
    assert aggregator["to"] == [{"ipBlock": {"cidr": "198.51.100.7/32"}}]
    assert [port["port"] for port in aggregator["ports"]] == [443]  # 8443 is the edge's, inside a cluster only
    anywhere, _ = _egress()
    assert "to" not in anywhere
    assert [port["port"] for port in anywhere["ports"]] == [443]


def test_an_aggregator_of_this_cluster_is_its_pods_not_any_address() -> None:
    inside = ("--set", "aggregator.endpoint=aggregator.trust.svc:443")
    aggregator, _ = _egress(*inside)
    pods = {"matchLabels": {"app.kubernetes.io/name": "aggregator"}}
    namespace = {"matchLabels": {"kubernetes.io/metadata.name": "trust"}}
    assert aggregator["to"] == [{"namespaceSelector": namespace, "podSelector": pods}]
    assert [port["port"] for port in aggregator["ports"]] == [443, 8443]
    old, _ = _egress(*inside, kubernetes="1.20.0")  # namespaces have no label of their name
    assert old["to"] == [{"namespaceSelector": {}, "podSelector": pods}]
    proxied, _ = _egress(*inside, "--set", "proxy.url=http://proxy.example.org:3128")
    assert [port["port"] for port in proxied["ports"]] == [3128]


def test_dns_is_asked_of_the_clusters_own_only() -> None:
    for kubernetes, namespace in (
        ("1.25.0", {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}),
        ("1.20.0", {}),
    ):
        (dns,) = _egress(kubernetes=kubernetes)[1]["to"]
        assert dns == {"namespaceSelector": namespace, "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}}
    (dns,) = _egress("--set", "networkPolicy.dnsNamespaceLabels.dns=ours")[1]["to"]
    assert dns == {"namespaceSelector": {"matchLabels": {"dns": "ours"}}}


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ("smallest", "ANY address on the endpoint's or the proxy's port"),
        ("production", "198.51.100.7/32 on the endpoint's"),
        ("csi", "anything: networkPolicy.enabled is false"),
        ("database", "needs the network for its database"),
    ],
)
def test_the_notes_say_what_the_pod_may_really_call(values: str, told: str) -> None:
    chart, given = str(CHARTS["fed-node"]), str(VALUES / f"{values}.yaml")
    done = run_helm("install", "demo", chart, "-f", given, "--dry-run=client")
    assert told in done.stdout.partition("NOTES:")[2], done.stderr


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


def test_the_device_comes_from_the_partys_own_values() -> None:
    def devices(values: str) -> dict[str, str]:
        environments = {name: _container(name, values).get("env", []) for name in CONTAINERS}
        return {
            name: each["value"]
            for name, env in environments.items()
            for each in env
            if each["name"] == "FEDSYNTH_DEVICE"
        }

    assert devices("smallest") == {"worker": "cpu"}
    assert devices("production") == {"worker": "cuda:1"}


@pytest.mark.parametrize(
    ("setting", "good"),
    [
        ("gpu.resource=nvidia.com/mig-1g.10gb", True),
        ("gpu.resource=gpu", False),
        ("gpu.device=cuda", True),
        ("gpu.device=tpu", False),
    ],
)
def test_part_of_a_gpu_is_asked_for_by_its_profile(setting: str, good: bool) -> None:
    words = ["-f", str(VALUES / "smallest.yaml"), "--set", "gpu.enabled=true", "--set", setting]
    done = run_helm("template", "demo", str(CHARTS["fed-node"]), *words)
    assert (done.returncode == 0) is good
    if "mig" in setting:
        assert 'nvidia.com/mig-1g.10gb: "1"' in done.stdout


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
