"""Two doors that are shut unless somebody opens them: the way out to one address, and runs by the clock."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.charts.tools import CHARTS, CURRENT, OLDEST, rendered, run_helm

VALUES = CHARTS["aggregator"] / "lint-values"


def _named(kind: str, name: str, kubernetes: str = OLDEST) -> dict[str, Any]:
    manifests = rendered("aggregator", VALUES / "production.yaml", kubernetes)
    return next(each for each in manifests if (each["kind"], each["metadata"]["name"]) == (kind, name))


def _template(*settings: str) -> tuple[int, str, str]:
    words = [word for setting in settings for word in ("--set", setting)]
    done = run_helm("template", "demo", str(CHARTS["aggregator"]), *words)
    return done.returncode, done.stdout, done.stderr


def test_neither_is_there_unless_it_is_asked_for() -> None:
    manifests = rendered("aggregator", VALUES / "smallest.yaml")
    assert not [each for each in manifests if each["kind"] == "CronJob" or "webhook" in each["metadata"]["name"]]
    assert "/runs" not in str([each["data"] for each in manifests if each["metadata"]["name"].endswith("-edge")])


def test_the_aggregators_own_pod_still_calls_nobody() -> None:
    assert _named("NetworkPolicy", "demo-aggregator")["spec"]["egress"] == []


def test_the_webhooks_pod_reaches_the_one_address_the_list_of_runs_and_dns() -> None:
    receiver, runs, dns = _named("NetworkPolicy", "demo-aggregator-webhook")["spec"]["egress"]
    assert receiver["to"] == [{"ipBlock": {"cidr": "198.51.100.9/32"}}]
    assert receiver["ports"] == [{"port": 8443, "protocol": "TCP"}]
    assert runs["to"][0]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "aggregator"
    assert [port["port"] for port in runs["ports"]] == [9090]
    assert {port["port"] for port in dns["ports"]} == {53}


def test_the_webhooks_pod_has_no_volume_and_no_key_of_the_federation() -> None:
    pod = _named("Deployment", "demo-aggregator-webhook")["spec"]["template"]["spec"]
    assert {volume["name"] for volume in pod["volumes"]} == {"key", "ca", "tmp"}
    assert pod["volumes"][0]["secret"]["secretName"] == "webhook-key"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["webhook.enabled=true"], "webhook.url is required"),
        (["webhook.enabled=true", "webhook.url=http://hooks.example.org"], "webhook/url"),
        (["webhook.enabled=true", "webhook.url=https://hooks.example.org"], "webhook.existingSecret is required"),
        (
            ["webhook.enabled=true", "webhook.url=https://hooks.example.org", "webhook.existingSecret=key"],
            "webhook.cidrs is required",
        ),
        (["schedules.daily.cron=@daily"], "plan"),
        (["schedules.daily.plan=x", "schedules.daily.cron=at noon"], "cron"),
        (["schedules.Daily.plan=x", "schedules.Daily.cron=@daily"], "Daily"),
    ],
)
def test_what_is_missing_or_wrong_is_told(settings: list[str], told: str) -> None:
    code, _, complaint = _template(*settings)
    assert code != 0
    assert told in complaint


def test_a_webhook_without_a_port_goes_to_443() -> None:
    settings = ["webhook.enabled=true", "webhook.url=https://hooks.example.org/x", "webhook.existingSecret=key"]
    code, text, complaint = _template(*settings, "webhook.cidrs={198.51.100.9/32}")
    assert code == 0, complaint
    policy = next(
        each
        for each in yaml.safe_load_all(text)
        if each and each["kind"] == "NetworkPolicy" and each["metadata"]["name"].endswith("-webhook")
    )
    assert policy["spec"]["egress"][0]["ports"] == [{"port": 443, "protocol": "TCP"}]


def test_schedules_speak_the_clusters_version() -> None:
    assert _named("CronJob", "demo-aggregator-at-monthly", OLDEST)["apiVersion"] == "batch/v1beta1"
    assert _named("CronJob", "demo-aggregator-at-monthly", CURRENT)["apiVersion"] == "batch/v1"


def test_a_schedule_never_runs_twice_at_once_and_says_who_it_is() -> None:
    spec = _named("CronJob", "demo-aggregator-at-monthly")["spec"]
    assert spec["concurrencyPolicy"] == "Forbid"
    assert spec["suspend"] is True
    given = _named("ConfigMap", "demo-aggregator-at-monthly")["data"]
    assert given == {"who": "schedule:monthly", "plan.yaml": "name: census\n"}  # to the letter: digests depend on it
    container = spec["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    assert container["command"][-2:] == ["submit-scheduled", "/etc/fedsynth/given/plan.yaml"]
    job = next(each for each in container["env"] if each["name"] == "FEDSYNTH_JOB")
    assert job["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['job-name']"
