"""Does a cluster have what the charts need, and may you use it?"""

from __future__ import annotations

from collections.abc import Iterator

from kubernetes import client

from fedsynth.cluster.api import Cluster, told
from fedsynth.cluster.policy_probe import are_enforced
from fedsynth.preflight import Finding

OLDEST = (1, 20)
NEEDED = [  # what installing and running takes: verb, group, resource
    ("create", "apps", "deployments"),
    ("create", "", "secrets"),
    ("create", "", "persistentvolumeclaims"),
    ("create", "networking.k8s.io", "networkpolicies"),
    ("create", "batch", "jobs"),
    ("create", "", "pods/exec"),
    ("get", "", "pods/log"),
]
TRY = "try it with --probe-image"
WITHOUT = "parties still reach the Fleet API only, but nothing keeps a pod from calling out"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def check_cluster(namespace: str, context: str | None, gpu: str | None, image: str | None) -> Iterator[Finding]:
    cluster = Cluster(namespace, context)
    yield _version()
    yield _rights(namespace)
    yield _storage()
    if gpu is not None:
        yield _gpu(cluster, gpu)
    yield _policies() if image is None else _tried_policies(cluster, image)


def _version() -> Finding:
    with told("ask the cluster for its version"):
        found = client.VersionApi().get_code()
    version = (int(found.major), int(found.minor.rstrip("+")))
    good = version >= OLDEST
    return Finding("version", good, f"Kubernetes {found.git_version}" + ("" if good else "; 1.20 or newer is needed"))


def _rights(namespace: str) -> Finding:
    missing = []
    for verb, group, resource in NEEDED:
        kind, _, part = resource.partition("/")
        attributes = client.V1ResourceAttributes(
            namespace=namespace, verb=verb, group=group, resource=kind, subresource=part or None
        )
        spec = client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes)
        with told("ask what you may do"):
            review = client.AuthorizationV1Api().create_self_subject_access_review(
                client.V1SelfSubjectAccessReview(spec=spec)
            )
        if not review.status.allowed:
            missing.append(f"{verb} {resource}")
    words = f"you may not: {', '.join(missing)}; ask for a role" if missing else "you may install, run and fetch"
    return Finding("rights", not missing, words)


def _storage() -> Finding:
    with told("list storage classes"):
        classes = client.StorageV1Api().list_storage_class().items
    default = [each.metadata.name for each in classes if (each.metadata.annotations or {}).get(DEFAULT_CLASS) == "true"]
    if default:
        return Finding("storage", True, f"volumes come from {default[0]}")
    names = ", ".join(each.metadata.name for each in classes) or "none"
    return Finding(
        "storage", False, f"there is no default storage class; set storage.storageClass (there are: {names})"
    )


def _gpu(cluster: Cluster, resource: str) -> Finding:
    with told("list nodes"):
        nodes = cluster.core.list_node().items
    count = sum(int((node.status.allocatable or {}).get(resource, "0")) for node in nodes)
    remedy = "" if count else "; install the device plugin, or set gpu.enabled to false"
    return Finding("gpu", count > 0, f"{count} × {resource} can be allocated{remedy}")


def _tried_policies(cluster: Cluster, image: str) -> Finding:
    """Told, not demanded: what the charts promise holds without them."""
    cluster.ensure_namespace()
    enforced = are_enforced(cluster, image)
    words = "enforced, as tried" if enforced else f"not enforced, as tried; {WITHOUT}"
    return Finding("network policies", True, words, warning=not enforced)


def _policies() -> Finding:
    """Kubernetes accepts policies that nothing enforces; who enforces them runs as a daemon set of a known name."""
    with told("list daemon sets"):
        names = {each.metadata.name for each in client.AppsV1Api().list_daemon_set_for_all_namespaces().items}
    known = ("calico-node", "cilium", "antrea-agent", "kube-router", "weave-net", "ovnkube-node", "aws-node", "anetd")
    found = sorted(name for name in names if name in known)
    words = f"enforced by {found[0]}" if found else f"nothing here is known to enforce them; {TRY}"
    return Finding("network policies", True, words, warning=not found)
