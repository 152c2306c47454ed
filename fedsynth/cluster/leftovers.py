"""What Helm does not remove with a release: jobs that started runs, pods of `helm test`, plans in ConfigMaps, Secrets.

Helm removes what it made. What was made beside it carries the release's label and is removed here, but for two things
that are worth more than the release: volumes (ledgers, releases) and Secrets with private keys. These are listed.
"""

from __future__ import annotations

from fedsynth.cluster.api import Cluster, told

KEPT_SECRETS = {
    "aggregator": ("aggregator-tls", "aggregator-control", "aggregator-identity"),
    "fed-node": ("fed-node-keys",),
}


def remove(cluster: Cluster, release: str) -> list[str]:
    """Delete what runs and tests left behind; what was deleted."""
    labels, gone = f"app.kubernetes.io/instance={release}", []
    with told(f"remove what is left of {release}"):
        for job in cluster.batch.list_namespaced_job(cluster.namespace, label_selector=labels).items:
            cluster.batch.delete_namespaced_job(job.metadata.name, cluster.namespace, propagation_policy="Background")
            gone.append(f"job {job.metadata.name}")
        for pod in cluster.core.list_namespaced_pod(cluster.namespace, label_selector=labels).items:
            if pod.status.phase in ("Succeeded", "Failed") and not pod.metadata.owner_references:
                cluster.core.delete_namespaced_pod(pod.metadata.name, cluster.namespace)
                gone.append(f"pod {pod.metadata.name}")
        for plan in cluster.core.list_namespaced_config_map(cluster.namespace, label_selector=labels).items:
            cluster.core.delete_namespaced_config_map(plan.metadata.name, cluster.namespace)
            gone.append(f"configmap {plan.metadata.name}")
    return gone


def remove_secrets(cluster: Cluster, chart: str) -> list[str]:
    """Delete the Secrets that `fedsynth install` made from a kit."""
    with told(f"remove Secrets in namespace {cluster.namespace}"):
        there = _secrets(cluster, chart)
        for name in there:
            cluster.core.delete_namespaced_secret(name, cluster.namespace)
    return [f"secret {name}" for name in there]


def kept(cluster: Cluster, chart: str, release: str) -> list[str]:
    """What stays on purpose."""
    labels = f"app.kubernetes.io/instance={release}"
    with told(f"list what is left of {release}"):
        claims = cluster.core.list_namespaced_persistent_volume_claim(cluster.namespace, label_selector=labels).items
        secrets = _secrets(cluster, chart)
    return [f"volume {each.metadata.name}" for each in claims] + [f"secret {name}" for name in secrets]


def _secrets(cluster: Cluster, chart: str) -> list[str]:
    names = {each.metadata.name for each in cluster.core.list_namespaced_secret(cluster.namespace).items}
    return [name for name in KEPT_SECRETS[chart] if name in names]
