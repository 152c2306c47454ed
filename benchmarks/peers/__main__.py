"""Peers, measured: `python -m benchmarks.peers [--limit-minutes 25] [--only NAME] [--again] [--no-run]`.

Adult's published split, δ = 1e-5, one seed, as many rows drawn as there are real ones. Every peer runs alone in its own
process and environment; its table is scored by our metrics (benchmarks.marginals). Each result is a file under
runs/peers, so a run that was stopped goes on where it was; --again forgets them. Writes benchmarks/RESULTS.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.environments import ROOT
from benchmarks.marginals import EXAMPLES, Bench
from benchmarks.peers.results import REAL_ROWS, key, write_results
from benchmarks.peers.roster import ROSTER, Peer
from benchmarks.peers.running import SEED, run
from fed_node.source import read_table_as_text
from fedsynth.documents import read_schema
from synth.metrics.tables import table_of

OUT = ROOT / "runs" / "peers"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--limit-minutes", type=float, default=25.0, help="of processor time for each run")
    options.add_argument("--only", default="", help="peers whose name contains this")
    options.add_argument("--again", action="store_true", help="measure anew what was measured before")
    options.add_argument("--no-run", action="store_true", help="only write RESULTS.md from what there is")
    chosen = options.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if not chosen.no_run:
        measure_all(chosen.only, chosen.again, int(chosen.limit_minutes * 60))
    print(write_results(OUT))


def measure_all(only: str, again: bool, limit_seconds: int) -> None:
    schema = read_schema(EXAMPLES / "adult.schema.yaml")
    train, test = (read_table_as_text(EXAMPLES / "data" / f"adult-{part}.csv.gz") for part in ("train", "test"))
    bench = Bench(schema, train, test, quick=False)
    rows = plain_copy(EXAMPLES / "data" / "adult-train.csv.gz")
    remember(OUT / f"{REAL_ROWS}.json", again, bench.figures, bench.train, SEED)
    for peer in (peer for peer in ROSTER if only in peer.name):
        for epsilon in peer.epsilons:
            place = OUT / f"{key(peer, epsilon)}.json"
            remember(place, again, measured, bench, peer, epsilon, rows, place.with_suffix(".csv"), limit_seconds)
            print(f"{peer.name}, ε {epsilon or '-'}: {place.read_text()}", flush=True)


def measured(
    bench: Bench, peer: Peer, epsilon: float | None, rows: Path, out: Path, limit_seconds: int
) -> dict[str, Any]:
    found = run(peer, epsilon, rows, bench.schema, out, limit_seconds)
    result: dict[str, Any] = {"peer": peer.name, "epsilon": epsilon, **asdict(found)}
    if found.error is not None:
        return result
    made = pd.read_csv(out, dtype="str", keep_default_na=False)
    said: dict[str, Any] = json.loads(out.with_suffix(".said.json").read_text())
    return result | said | dict(bench.figures(table_of(made, bench.schema, f"the table of {peer.name}"), SEED))


def remember(place: Path, again: bool, work: Callable[..., Mapping[str, Any]], *about: Any) -> None:
    """Leaves the result of the work as a file; does nothing where it is already."""
    if again or not place.exists():
        place.write_text(json.dumps(dict(work(*about)), indent=1))


def plain_copy(compressed: Path) -> Path:
    """Made once: a peer that another process of this benchmark runs may be reading it."""
    plain = OUT / compressed.with_suffix("").name
    if not plain.exists():
        with gzip.open(compressed) as source, plain.open("wb") as target:
            shutil.copyfileobj(source, target)
    return plain


if __name__ == "__main__":
    main()
