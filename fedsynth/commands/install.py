"""`fedsynth install` and `uninstall`: one side of a federation, from its kit, once a person compared what it believes.

The order is the safety: everything is read and checked, then compared by people, and only then anything is written to
the cluster.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from fedsynth.commands.comparing import compare
from fedsynth.commands.options import Context, Json, Namespace, say
from fedsynth.documents import read_document
from fedsynth.provision.errors import KitRefused
from fedsynth.provision.material import Material, aggregator_material, party_material
from synth.errors import InputError

DIAGNOSIS_SECONDS = 15.0  # for Kubernetes to say why a pod does not start


class Chart(StrEnum):
    aggregator = "aggregator"
    fed_node = "fed-node"


def install(
    chart: Annotated[Chart, typer.Argument(help="Which side.")],
    kit: Annotated[Path, typer.Option(help="Folder that `fedsynth provision` made for it.")],
    keys: Annotated[
        Path | None, typer.Option(help="For a party: the folder of its own keys, from `fedsynth node keygen`.")
    ] = None,
    accept_operator_keys: Annotated[
        bool, typer.Option("--accept-operator-keys", help="For a party: use keys that the operator made for it.")
    ] = False,
    values: Annotated[
        list[Path] | None, typer.Option("--values", "-f", help="Further values. May be repeated.")
    ] = None,
    fingerprints: Annotated[
        Path | None,
        typer.Option(help="For a party: fingerprints as you heard them, in place of typing. Never a file of the kit."),
    ] = None,
    namespace: Namespace = "fedsynth",
    release: Annotated[str | None, typer.Option(help="Name of the release; the chart's if left out.")] = None,
    charts: Annotated[Path, typer.Option(help="Folder with the charts.")] = Path("charts"),
    wait_seconds: Annotated[int, typer.Option(min=1, help="How long to wait until it is ready.")] = 300,
    context: Context = None,
    as_json: Json = False,
) -> None:
    """Install or upgrade one side from its kit, and wait until it is ready.

    A party's kit must be signed, whole, and say nothing that an operator has no say in. What the release would believe
    is printed as fingerprints, and you type the end of each as its owner read it to you by telephone; what is pinned in
    the installed release already is not asked again. Anything that does not match, and nothing is installed.

    Exit codes: 0 ready, 2 a file or a kit that is refused, 8 the cluster.
    """
    folder, name = charts / chart.value, release or chart.value
    if not (folder / "Chart.yaml").exists():
        raise InputError(f"there is no chart at {folder}; say where they are with --charts")
    if fingerprints is not None and fingerprints.resolve().is_relative_to(kit.resolve()):
        raise KitRefused(f"{fingerprints} is the kit's own word; compare it with what others told you by telephone.")
    own = [read_document(path) or {} for path in values or []]
    if chart is Chart.aggregator:
        material = aggregator_material(kit, own)
    else:
        material = party_material(kit, keys, own, accept_operator_keys)
        compare(material.values, _installed(namespace, name, context), fingerprints)
    revision = _apply(material, folder, name, namespace, context, wait_seconds)
    facts = {"release": name, "namespace": namespace, "revision": revision}
    notes = f"`helm get notes {name} -n {namespace}` says what comes next."
    say(facts, as_json, f"{name} is ready (revision {revision}).\n{notes}")


def uninstall(
    chart: Annotated[Chart, typer.Argument(help="Which side.")],
    namespace: Namespace = "fedsynth",
    release: Annotated[str | None, typer.Option(help="Name of the release; the chart's if left out.")] = None,
    secrets: Annotated[bool, typer.Option("--secrets", help="Also remove the Secrets that came from the kit.")] = False,
    context: Context = None,
    as_json: Json = False,
) -> None:
    """Remove a release and what its runs and tests left. Its volume stays, and its Secrets unless --secrets is said.

    What stays is listed: ledgers and releases are on the volume, private keys in the Secrets.

    Exit codes: 0 removed, 8 the cluster or no such release.
    """
    from fedsynth.cluster import leftovers
    from fedsynth.cluster.api import Cluster
    from fedsynth.cluster.releases import Releases

    name, cluster = release or chart.value, Cluster(namespace, context)
    Releases(namespace, context).uninstall(name)
    gone = leftovers.remove(cluster, name) + (leftovers.remove_secrets(cluster, chart.value) if secrets else [])
    stays = leftovers.kept(cluster, chart.value, name)
    facts = {"release": name, "namespace": namespace, "removed": gone, "kept": stays}
    words = f"{name} was removed, and {len(gone)} things that its runs and tests left. Still there:"
    say(facts, as_json, "\n".join([words, *(f"  {each}" for each in stays)]))


def _installed(namespace: str, release: str, context: str | None) -> dict[str, Any]:
    """The values of the release as it is, {} if there is none."""
    from fedsynth.cluster.releases import Releases

    return Releases(namespace, context).values(release)


def _apply(
    material: Material, chart: Path, release: str, namespace: str, context: str | None, wait_seconds: int
) -> int:
    from fedsynth.cluster.api import Cluster
    from fedsynth.cluster.errors import ClusterError, Stuck
    from fedsynth.cluster.releases import Releases

    cluster = Cluster(namespace, context)
    cluster.ensure_namespace()
    layers = [material.values]
    if material.secrets is not None:
        cluster.apply(material.secrets)
        digest = hashlib.sha256(material.secrets.encode()).hexdigest()  # new keys or certificates: new pods
        layers.append({"pod": {"annotations": {"checksum/secrets": digest}}})
    try:
        return Releases(namespace, context).install(release, chart, layers, wait_seconds)
    except ClusterError:
        if reason := cluster.trouble(f"app.kubernetes.io/instance={release}", DIAGNOSIS_SECONDS):
            raise Stuck(f"{release} was installed and is not ready: {reason}") from None
        raise
