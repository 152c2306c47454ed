"""A site without a network: a federation installed from one signed file, in a cluster that was given nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from tests.e2e.federation import AGGREGATOR, CLUSTER, IMAGES, TAG, Federation, a_cluster, fedsynth
from tests.small import plan_of, table

PARTIES = ["party-1", "party-2", "party-3"]


@pytest.mark.kind
@pytest.mark.nightly
@pytest.mark.skipif("KUBECONFIG" in os.environ, reason="loads images into the nodes of a kind cluster of its own")
def test_a_federation_is_installed_from_a_parcel(tmp_path: Path) -> None:
    with a_cluster(images=False):
        federation = Federation(tmp_path, PARTIES)
        release = _unpacked(tmp_path)
        federation.charts = release / "charts"
        federation.images = {
            chart: yaml.safe_load((release / f"{chart}-images.yaml").read_text()) for chart in federation.images
        }
        assert all(values["images"]["pullPolicy"] == "Never" for values in federation.images.values())
        federation.provision()
        federation.install({party: table(200, seed=n).to_csv(index=False).encode() for n, party in enumerate(PARTIES)})
        plan = plan_of({"name": "marginals"}, name="from-a-parcel")
        federation.approve(plan)
        assert federation.run(plan, "--wait").returncode == 0
        fedsynth("fetch", plan.name, "--out", str(tmp_path / "out"), "-n", AGGREGATOR)
        keys = str(federation.kits / "keys.yaml")
        assert "plan" in fedsynth("verify", str(tmp_path / "out" / "certificate.json"), "--keys", keys)


def _unpacked(folder: Path) -> Path:
    """What `airgap load` leaves, its images in the cluster. Wheels and SBOM are stand-ins."""
    for name in ("wheels", "docs", "sbom"):
        (folder / name).mkdir()
        (folder / name / "note.txt").write_text("stands in")
    key, parcel, release = folder / "release.key", folder / "fedsynth.parcel", folder / "release"
    public = json.loads(fedsynth("airgap", "keygen", "--out", str(key), "--json"))["key"]
    images = [word for name in IMAGES for word in ("--image", f"fedsynth/{name}:{TAG}")]
    parts = [word for name in ("wheels", "docs", "sbom") for word in (f"--{name}", str(folder / name))]
    fedsynth("airgap", "make", "--out", str(parcel), "--key", str(key), *images, *parts)
    where = ["--out", str(release), "--into", "kind", "--cluster", CLUSTER]
    fedsynth("airgap", "load", str(parcel), "--key", public, *where)
    return release
