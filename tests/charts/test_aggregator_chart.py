"""What the aggregator's chart promises: one door for parties, another for the operator, and no third."""

from __future__ import annotations

import json
import re
from typing import Any

from aggregator.server import webhook
from aggregator.server.prometheus import HELP
from tests.charts.tools import CHARTS, CURRENT, OLDEST, rendered, run_helm

SMALLEST = CHARTS["aggregator"] / "lint-values" / "smallest.yaml"
PRODUCTION = CHARTS["aggregator"] / "lint-values" / "production.yaml"


def _named(kind: str, name: str, manifests: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    manifests = rendered("aggregator", SMALLEST) if manifests is None else manifests
    return next(each for each in manifests if (each["kind"], each["metadata"]["name"]) == (kind, name))


def test_superlink_listens_on_loopback_only() -> None:
    pod = _named("Deployment", "demo-aggregator")["spec"]["template"]["spec"]
    superlink = next(each for each in pod["containers"] if each["name"] == "superlink")
    assert "--host=127.0.0.1" in superlink["command"]
    assert "--isolation=process" in superlink["command"]
    assert "--enable-supernode-auth" in superlink["command"]
    assert "ports" not in superlink


def _conf(name: str) -> str:
    conf: str = _named("ConfigMap", "demo-aggregator-edge")["data"][name]
    return conf


def test_the_party_door_passes_fleet_and_health_only() -> None:
    conf = _conf("edge.conf")
    assert re.findall(r"listen (\S+)", conf) == ["8443"]
    assert re.findall(r"location ([^{]+) \{", conf) == ["= /v1/fleet/push-object", "/v1/fleet/", "= /health", "/"]
    assert "location / { return 404; }" in conf
    assert "/v1/control/;" not in conf + _conf("inside.conf").split("listen 8445")[1]
    assert "/v1/runtime" not in conf + _conf("inside.conf")


def test_the_operator_door_asks_for_a_certificate() -> None:
    operator = _conf("inside.conf").split("listen 8444 ssl;")[1].split("listen 8445;")[0]
    assert "ssl_verify_client on;" in operator
    services = [each for each in rendered("aggregator", PRODUCTION) if each["kind"] == "Service"]
    exposed = [
        port["targetPort"] for each in services for port in each["spec"]["ports"] if each["spec"]["type"] != "ClusterIP"
    ]
    assert exposed == ["fleet"]


def test_the_aggregator_calls_nobody() -> None:
    policy = _named("NetworkPolicy", "demo-aggregator")["spec"]
    assert policy["egress"] == []
    deny = _named("NetworkPolicy", "demo-aggregator-deny")["spec"]
    assert deny["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in deny
    assert "egress" not in deny


def test_disruption_budget_speaks_the_clusters_version() -> None:
    kinds = {
        version: _named("PodDisruptionBudget", "demo-aggregator", rendered("aggregator", SMALLEST, version))
        for version in (OLDEST, CURRENT)
    }
    assert kinds[OLDEST]["apiVersion"] == "policy/v1beta1"
    assert kinds[CURRENT]["apiVersion"] == "policy/v1"


def test_releases_outlive_the_release() -> None:
    claim = _named("PersistentVolumeClaim", "demo-aggregator-state")
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_a_party_without_identity_is_refused() -> None:
    done = run_helm(
        "template", "demo", str(CHARTS["aggregator"]), "--set", "parties.north.nodeKey=ecdsa-sha2-nistp384 AAAA"
    )
    assert done.returncode != 0
    assert "identity" in done.stderr


def test_monitoring_names_only_metrics_that_exist() -> None:
    """Rules and dashboard live in the chart, metrics in Python: neither may forget the other."""
    values = CHARTS["aggregator"] / "lint-values" / "production.yaml"
    rules = next(each for each in rendered("aggregator", values) if each["kind"] == "PrometheusRule")
    alerts = rules["spec"]["groups"][0]["rules"]
    dashboard = json.loads((CHARTS["aggregator"] / "files" / "dashboard.json").read_text())
    expressions = [rule["expr"] for rule in alerts]
    expressions += [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    named = {name for text in expressions for name in re.findall(r"fedsynth_[a-z_]+", text)}
    assert len(alerts) == 6
    assert named <= set(HELP) | set(webhook.HELP)
