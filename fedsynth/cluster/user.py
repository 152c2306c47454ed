"""What the cluster calls the person at the terminal, for audit logs.

The API server says it where it can (SelfSubjectReview, Kubernetes 1.28); with an older one the name is that of the
kubeconfig's entry. Either way it reaches the aggregator by the caller's word. Who created a job or opened a shell in a
pod is known to the API server's own audit log.
"""

from __future__ import annotations

import os

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from urllib3.exceptions import HTTPError


def kubernetes_user(context: str | None) -> str:
    try:
        review = client.AuthenticationV1Api().create_self_subject_review({})
        return f"kubernetes:{review.status.user_info.username}"
    except (ApiException, HTTPError, AttributeError):
        return f"kubeconfig:{_configured_user(context)}"


def _configured_user(context: str | None) -> str:
    try:
        known, active = config.list_kube_config_contexts(os.environ.get("KUBECONFIG"))
    except ConfigException:
        return "unknown"
    chosen = next((each for each in known if each["name"] == context), active)
    return str(chosen["context"].get("user", "unknown"))
