"""Why a pod does not run, in one sentence with the remedy. Kubernetes knows; it does not say it where people look."""

from __future__ import annotations

from typing import Any

IMAGE = {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"}
CRASH = {"CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "RunContainerError"}


def is_ready(pod: Any) -> bool:
    conditions = {each.type: each.status for each in pod.status.conditions or []}
    return conditions.get("Ready") == "True" and pod.metadata.deletion_timestamp is None


def trouble(pod: Any) -> str | None:
    """What keeps a pod from running, if waiting will not help."""
    for condition in pod.status.conditions or []:
        if condition.type == "PodScheduled" and condition.status == "False":
            return _unscheduled(pod.metadata.name, condition.message or "")
    for status in [*(pod.status.init_container_statuses or []), *(pod.status.container_statuses or [])]:
        if (out_of_memory := _out_of_memory(pod, status)) is not None:
            return out_of_memory
        waiting = status.state.waiting if status.state else None
        if waiting is None:
            continue
        if waiting.reason in IMAGE:
            return (
                f"pod {pod.metadata.name} cannot pull the image {status.image}; push or load it, or correct "
                "images.tag, repository and pullSecrets"
            )
        if waiting.reason in CRASH:
            return (
                f"container {status.name} of pod {pod.metadata.name} does not start ({waiting.reason}: "
                f"{waiting.message or 'see its log'}); {_its_log(pod, status)}"
            )
    return None


def _out_of_memory(pod: Any, status: Any) -> str | None:
    """Killed for want of memory, now or the last time; a container that is ready again is left alone."""
    ended = [getattr(state, "terminated", None) for state in (status.state, status.last_state) if state]
    if status.ready or not any(each is not None and each.reason == "OOMKilled" for each in ended):
        return None
    limits = {each.name: (each.resources.limits or {}).get("memory") for each in pod.spec.containers if each.resources}
    return (
        f"container {status.name} of pod {pod.metadata.name} was killed for want of memory (OOMKilled; its limit is "
        f"{limits.get(status.name) or 'unknown'}); raise resources.{status.name}.limits.memory. A worker needs about "
        "250 MB and five times its table"
    )


def _its_log(pod: Any, status: Any) -> str:
    place = f"-n {pod.metadata.namespace} {pod.metadata.name} -c {status.name}"
    return f"see `kubectl logs {place} --previous`"


def missing_volume(events: list[Any]) -> str | None:
    """A Secret, ConfigMap or volume that a pod names and that is not there: it would be ContainerCreating for ever."""
    for event in events:
        if event.reason in ("FailedMount", "FailedAttachVolume") and "not found" in (event.message or ""):
            return f"pod {event.involved_object.name} cannot start: {' '.join(event.message.split())}"
    return None


def _unscheduled(pod: str, message: str) -> str:
    if "nvidia.com/gpu" in message or "/gpu" in message:
        return f"pod {pod} waits for a GPU that no node offers; add one, or set gpu.enabled to false ({message})"
    if "Insufficient" in message:
        return f"pod {pod} waits for room: {message} Lower resources.*.requests or add a node"
    if "PersistentVolumeClaim" in message or "persistentvolumeclaim" in message:
        return f"pod {pod} waits for its volume: {message} Check storage.storageClass and `kubectl get pvc`"
    return f"pod {pod} cannot be placed: {message}"
