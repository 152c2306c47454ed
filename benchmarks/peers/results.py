"""benchmarks/RESULTS.md from the results there are; a peer that could not run is listed with its error."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.environments import ROOT
from benchmarks.peers.programs.job import AIM_MODEL_MB
from benchmarks.peers.roster import ROSTER, Peer

REAL_ROWS = "real-rows"
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
FIGURES = ("lr", "gb", "four", "jsd", "wd", "tvd1", "tvd2")
INTRODUCTION = """\
# Peers, measured

`make bench-peers` wrote this page on {date}, on {cores} cores ({machine}, Python {python}).

Adult's published split: 32,561 training rows, 16,281 test rows, 15 columns. δ = 1e-5, one seed, as many rows drawn as
there are real ones. Every peer ran alone in a process and an environment of its own and was told what is public:
bounds, labels, and (MST and AIM of opendp and smartnoise) one cell for a number's lowest value and 31 equal ones. AIM
chooses among all pairs while its model stays below {aim_mb} MB, not below 80 MB as the packages propose: with that it
"can take many hours to run" (dpmm). A larger model may do better. The rest is as the packages have it.

One run each, and not every package lets its noise be seeded: on 16 November the three MSTs scored 0.864 (opendp), 0.817
(dpmm) and 0.766 (smartnoise) with four classifiers at ε = 1. A few hundredths between two peers may be chance.

- **LR, GB, four**: AUROC on the real test rows of logistic regression, gradient boosting, and the mean of the four
  classifiers of the CTGAN paper, trained on the synthetic rows. Higher is better.
- **JSD, WD, TVD₁, TVD₂**: distances to the training rows (Jensen-Shannon of discrete columns, Wasserstein of numeric
  ones, total variation of columns and of pairs). Lower is better.
- **CPU s** are processor seconds for fitting and drawing; the machine was shared, so seconds of the clock would say
  nothing. **MB** is the peak of the process.
"""


def write_results(folder: Path) -> Path:
    found = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json") if path.suffixes == [".json"]}
    rows = [(peer, epsilon, found.get(key(peer, epsilon))) for peer in ROSTER for epsilon in peer.epsilons]
    rows.sort(key=lambda row: (row[1] is None, -(row[1] or 0.0), row[2] is None or "four" not in row[2]))
    lines = [
        INTRODUCTION.format(
            date=datetime.now(UTC).date(),
            cores=os.cpu_count(),
            machine=platform.machine(),
            python=platform.python_version(),
            aim_mb=AIM_MODEL_MB,
        ),
        "| synthesizer | ε | LR | GB | four | JSD | WD | TVD₁ | TVD₂ | CPU s | MB |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    if REAL_ROWS in found:
        lines.append(f"| real rows | – | {_figures(found[REAL_ROWS])} | | |")
    ran = [(peer, epsilon, result) for peer, epsilon, result in rows if result is not None]
    lines += [_line(peer, epsilon, result) for peer, epsilon, result in ran]
    waiting = [f"{peer.name} ({_asked(epsilon)})" for peer, epsilon, result in rows if result is None]
    lines += ["", *_failed(ran), *_waiting(waiting), *_provable(), *_versions(found), ""]
    RESULTS.write_text("\n".join(lines))
    return RESULTS


def key(peer: Peer, epsilon: float | None) -> str:
    """A result's file name, without its ending."""
    return f"{peer.name.replace(',', '').replace(' ', '-')}-{'none' if epsilon is None else f'{epsilon:g}'}"


def _line(peer: Peer, epsilon: float | None, result: dict[str, Any]) -> str:
    figures = _figures(result) if result["error"] is None else " | ".join("–" * len(FIGURES))
    asked = "none" if epsilon is None else f"{epsilon:g}"
    return f"| {peer.name} | {asked} | {figures} | {result['cpu_seconds']:.0f} | {result['peak_mb']:.0f} |"


def _figures(result: dict[str, Any]) -> str:
    return " | ".join(f"{result[name]:.3f}" if name != "wd" else f"{result[name]:.4f}" for name in FIGURES)


def _failed(rows: list[tuple[Peer, float | None, dict[str, Any]]]) -> list[str]:
    errors = [f"- {peer.name}, {_asked(e)}: {r['error']}" for peer, e, r in rows if r["error"] is not None]
    title = "## Without a result (a cut is our limit, not the peer's failure)"
    return [title, "", *errors, ""] if errors else []


def _waiting(names: list[str]) -> list[str]:
    return [f"Not run yet (`make bench-peers` goes on where it stopped): {', '.join(names)}.", ""] if names else []


def _asked(epsilon: float | None) -> str:
    return "no ε" if epsilon is None else f"ε = {epsilon:g}"


def _provable() -> list[str]:
    """What the ε in the table covers, as far as a proof would go."""
    lines = [f"| {peer.name} | {peer.provable} |" for peer in ROSTER]
    return ["## The ε that is provable", "", "| synthesizer | what its accounting covers |", "|---|---|", *lines, ""]


def _versions(found: dict[str, dict[str, Any]]) -> list[str]:
    versions = sorted({result["version"] for result in found.values() if "version" in result})
    return ["## Versions", "", ", ".join(versions) or "none yet"]
