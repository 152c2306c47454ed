"""The charts, without a cluster: they lint, render under every lint-values file, and are what Kubernetes accepts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.charts.tools import CHARTS, CURRENT, OLDEST, pod_specs, rendered, run_helm, validate

CASES = [
    (chart, values) for chart, folder in CHARTS.items() for values in sorted((folder / "lint-values").glob("*.yaml"))
]
each_case = pytest.mark.parametrize(("chart", "values"), CASES, ids=[f"{c}-{v.stem}" for c, v in CASES])
each_chart = pytest.mark.parametrize("chart", CHARTS)


@each_case
def test_lints(chart: str, values: Path) -> None:
    done = run_helm("lint", "--strict", str(CHARTS[chart]), "-f", str(values))
    assert done.returncode == 0, done.stdout + done.stderr


@each_case
@pytest.mark.parametrize("kubernetes", [OLDEST, CURRENT])
def test_is_valid_kubernetes(chart: str, values: Path, kubernetes: str) -> None:
    for manifest in rendered(chart, values, kubernetes):
        validate(manifest, kubernetes)


def test_validation_refuses_an_unknown_field() -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "dta": {}}
    for kubernetes in (OLDEST, CURRENT):
        with pytest.raises(Exception, match="dta"):
            validate(manifest, kubernetes)


@each_case
def test_pods_keep_the_restricted_pod_security_standard(chart: str, values: Path) -> None:
    pods = pod_specs(rendered(chart, values))
    assert pods
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
        assert not any(pod.get(key) for key in ("hostNetwork", "hostPID", "hostIPC"))
        allowed = {"configMap", "csi", "emptyDir", "persistentVolumeClaim", "secret"}
        assert all(set(volume) - {"name"} <= allowed for volume in pod["volumes"])
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            security = container["securityContext"]
            assert security["allowPrivilegeEscalation"] is False
            assert security["capabilities"] == {"drop": ["ALL"]}
            assert security["readOnlyRootFilesystem"] is True
            assert not any("hostPort" in port for port in container.get("ports", []))


@each_case
def test_pods_have_no_api_token_and_say_what_they_need(chart: str, values: Path) -> None:
    for pod in pod_specs(rendered(chart, values)):
        assert pod["automountServiceAccountToken"] is False
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            assert {"cpu", "memory"} <= set(container["resources"]["requests"])
            assert "memory" in container["resources"]["limits"]


@each_case
def test_ports_name_their_protocol(chart: str, values: Path) -> None:
    """Helm 4 applies on the server's side, where Kubernetes 1.20 knows no default for it."""
    manifests = rendered(chart, values)
    services = [port for each in manifests if each["kind"] == "Service" for port in each["spec"]["ports"]]
    containers = [container for pod in pod_specs(manifests) for container in pod["containers"]]
    for port in services + [port for container in containers for port in container.get("ports", [])]:
        assert port["protocol"] == "TCP"


@each_case
def test_what_is_probed_at_its_start_is_probed_for_readiness(chart: str, values: Path) -> None:
    """A kubelet of 1.20 notes a passed startup probe at its next round only, 90 seconds later; readiness at once."""
    for pod in pod_specs(rendered(chart, values)):
        for container in pod["containers"]:
            assert "startupProbe" not in container or "readinessProbe" in container


@each_chart
def test_no_template_bypasses_the_image_pin(chart: str) -> None:
    """Every image in every template comes from the one helper that knows digest and tag."""
    for template in CHARTS[chart].rglob("templates/**/*"):
        if template.is_file() and template.name != "_names.tpl":
            lines = [line for line in template.read_text().splitlines() if line.strip().startswith("image:")]
            assert all(f'include "{chart}.image"' in line for line in lines), template


@each_chart
def test_a_digest_pins_every_image(chart: str) -> None:
    pods = pod_specs(rendered(chart, CHARTS[chart] / "lint-values" / "production.yaml"))
    images = {container["image"] for pod in pods for container in [*pod["containers"], *pod.get("initContainers", [])]}
    assert images
    assert all("@sha256:" in image for image in images)


@each_chart
def test_flower_flags_live_in_one_helper(chart: str) -> None:
    for template in CHARTS[chart].rglob("templates/**/*.yaml"):
        assert "FLWR_" not in template.read_text(), template
        assert "flower-super" not in template.read_text(), template


@each_chart
def test_values_and_schema_name_the_same_keys(chart: str) -> None:
    values = yaml.safe_load((CHARTS[chart] / "values.yaml").read_text())
    schema = json.loads((CHARTS[chart] / "values.schema.json").read_text())
    missing, unknown = _differences(values, schema)
    # Limits of a policy that a party may leave out have no default.
    optional = {"policy.synthesizers", "policy.columns", "policy.statistics_modes", "policy.update_modes"}
    optional |= {"policy.allow_unproven", "global"}
    assert not unknown
    assert missing <= optional


@each_chart
def test_production_values_set_every_key(chart: str) -> None:
    values = yaml.safe_load((CHARTS[chart] / "lint-values" / "production.yaml").read_text())
    schema = json.loads((CHARTS[chart] / "values.schema.json").read_text())
    missing, unknown = _differences(values, schema)
    assert not unknown
    assert missing <= {"global"}


@each_chart
def test_an_unknown_value_is_refused(chart: str) -> None:
    smallest = str(CHARTS[chart] / "lint-values" / "smallest.yaml")
    done = run_helm("template", "demo", str(CHARTS[chart]), "-f", smallest, "--set", "storage.sise=1Gi")
    assert done.returncode != 0
    assert "sise" in done.stderr


def _differences(values: Any, schema: dict[str, Any], place: str = "") -> tuple[set[str], set[str]]:
    """Keys of the schema that the values lack, and the other way round, where the schema names its keys."""
    if schema.get("additionalProperties") is not False or not isinstance(values, dict):
        return set(), set()
    names = set(schema["properties"])
    missing = {f"{place}{name}" for name in names - set(values)}
    unknown = {f"{place}{name}" for name in set(values) - names}
    for name in names & set(values):
        below = _differences(values[name], schema["properties"][name], f"{place}{name}.")
        missing, unknown = missing | below[0], unknown | below[1]
    # requests and limits are free where a container needs none
    return {name for name in missing if not name.endswith((".requests", ".limits"))}, unknown
