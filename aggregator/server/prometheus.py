"""The aggregator for its operator's monitoring, in Prometheus' text format: who is connected, where the runs stand.

Everything here is public: computed from plans and opened sums. One gauge of value 1 names a run's state; a run that is
forgotten (`fedsynth forget`) is gone from here, too.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from typing import Any

from aggregator.states import RunState

HELP = {
    "fedsynth_up": "Whether the SuperLink answers.",
    "fedsynth_party_connected": "Whether a registered party's node is connected.",
    "fedsynth_party_registered": "0 for a party of the values whose key the SuperLink refuses.",
    "fedsynth_server_certificate_expiry_days": "Days until the certificate that parties see ends.",
    "fedsynth_run_state": "1 for the state that a run is in, 0 for the others.",
    "fedsynth_run_state_since_timestamp_seconds": "When a run entered its state.",
    "fedsynth_run_waiting_for": "1 for each party that a run waits for.",
    "fedsynth_run_round": "Rounds of training that are done.",
    "fedsynth_run_rounds": "Rounds of training that the plan has.",
    "fedsynth_run_round_seconds": "What the last round took.",
    "fedsynth_run_resumed": "How often the supervisor took the run up again.",
    "fedsynth_run_epsilon": "Epsilon that the most exposed party has spent so far.",
    "fedsynth_run_updated_timestamp_seconds": "When a run last reported.",
}

Samples = dict[str, list[tuple[dict[str, str], float]]]


def metrics_text(status: dict[str, Any]) -> str:
    """Of what `fedsynth status` shows."""
    samples: Samples = defaultdict(list)
    samples["fedsynth_up"].append(({}, int(status["superlink"])))
    if status.get("certificate_days") is not None:
        samples["fedsynth_server_certificate_expiry_days"].append(({}, status["certificate_days"]))
    for node in status["nodes"]:
        samples["fedsynth_party_connected"].append(({"party": node["party"]}, int(node["online"])))
        samples["fedsynth_party_registered"].append(({"party": node["party"]}, 1))
    for party in status.get("not_registered", []):
        samples["fedsynth_party_registered"].append(({"party": party}, 0))
    for run in status["runs"]:
        _add_run(samples, run)
    return "".join(_family(name, samples[name]) for name in HELP if samples[name])


def _add_run(samples: Samples, run: dict[str, Any]) -> None:
    labels = {"plan": run["plan"], "digest": run["digest"][:12]}
    for state in RunState:
        samples["fedsynth_run_state"].append((labels | {"state": state}, int(run["state"] == state)))
    for party in run["waiting_for"]:
        samples["fedsynth_run_waiting_for"].append((labels | {"party": party}, 1))
    values = {
        "state_since_timestamp_seconds": _timestamp(run["since"]),
        "round": run["round"],
        "rounds": run["rounds"],
        "round_seconds": run["round_seconds"],
        "resumed": run["resumed"],
        "epsilon": run["epsilon"],
        "updated_timestamp_seconds": _timestamp(run["updated"]),
    }
    for name, value in values.items():
        if value is not None:
            samples[f"fedsynth_run_{name}"].append((labels, value))


def _family(name: str, samples: list[tuple[dict[str, str], float]]) -> str:
    lines = [f"# HELP {name} {HELP[name]}", f"# TYPE {name} gauge"]
    for labels, value in samples:
        inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        lines.append(f"{name}{{{inside}}} {value}" if inside else f"{name} {value}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _timestamp(time: str) -> int:
    return int(dt.datetime.fromisoformat(time).timestamp())
