"""Files that are always fresh: status.json for `fedsynth status`, metrics.prom for Prometheus, runs.json for webhooks.

The runner writes them in a thread of its own, so whoever looks starts no process in the pod and waits for nobody; and
they tell of runs whose process is gone, and of a SuperLink that is away.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import httpx
from cryptography import x509

from aggregator.server.control import Control, overview
from aggregator.server.prometheus import metrics_text
from aggregator.server.run_folder import all_runs
from aggregator.states import now_text

EVERY_SECONDS = 2.0
STATUS, RUNS = "status.json", "runs.json"  # beside the metrics


class Snapshot:
    """What is known now, and since when the SuperLink is away."""

    def __init__(self, path: Path, control: Control, state: Path) -> None:
        self.path, self.control, self.state = path, control, state
        self.nodes: list[dict[str, Any]] = []
        self.away_since: str | None = None

    def write(self) -> None:
        try:
            found = overview(self.control, self.state)
            self.nodes, self.away_since = found["nodes"], None
        except (httpx.HTTPError, OSError):  # it restarts; the runs are told of all the same
            self.away_since = self.away_since or now_text()
            found = {"time": now_text(), "superlink": False, "away_since": self.away_since, "nodes": []}
            found["runs"] = [standing.to_json() for run in all_runs(self.state) if (standing := run.standing)]
        found |= {"certificate_days": certificate_days(), "not_registered": self._not_registered(found)}
        _replace(self.path.with_name(STATUS), json.dumps(found))
        _replace(self.path, metrics_text(found))
        _replace(self.path.with_name(RUNS), json.dumps(_public_runs(found)))

    def _not_registered(self, found: dict[str, Any]) -> list[str]:
        """Parties of the chart's values that the SuperLink did not take: their keys were revoked before."""
        given = os.environ.get("FEDSYNTH_PARTIES")
        if not found["superlink"] or not given:
            return []
        return sorted(set(json.loads(Path(given).read_bytes())) - {node["party"] for node in found["nodes"]})

    def keep(self) -> None:
        while True:
            self.write()
            time.sleep(EVERY_SECONDS)


def certificate_days() -> float | None:
    """How long the certificate that parties see is valid still; None where it is not mounted or cannot be read."""
    if not (path := os.environ.get("FEDSYNTH_SERVER_CERTIFICATE")):
        return None
    try:
        ends = x509.load_pem_x509_certificate(Path(path).read_bytes()).not_valid_after_utc
    except (OSError, ValueError):
        return None
    return round((ends - dt.datetime.now(dt.UTC)).total_seconds() / 86400, 2)


def _public_runs(found: dict[str, Any]) -> dict[str, Any]:
    """Which run is in which state since when: all that another pod of the release may know of them."""
    names = ("plan", "digest", "state", "since")
    return {"time": found["time"], "runs": [{name: run[name] for name in names} for run in found["runs"]]}


def _replace(path: Path, text: str) -> None:
    """Whole at every moment; not durable, as it is written anew in a moment."""
    partial = path.with_name(f".{path.name}")
    partial.write_text(text)
    partial.chmod(0o644)  # the edge is another user's process
    partial.replace(path)


def start_if_asked(control: Control) -> None:
    """FEDSYNTH_METRICS names the file, in the pod that also has FEDSYNTH_STATE."""
    if path := os.environ.get("FEDSYNTH_METRICS"):
        snapshot = Snapshot(Path(path), control, Path(os.environ["FEDSYNTH_STATE"]))
        threading.Thread(target=snapshot.keep, daemon=True).start()
