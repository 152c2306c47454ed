from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import sequences
from benchmarks.sequences.panels import credit_figures, credit_reference, simulated_figures
from benchmarks.sequences.series import Series

ENTITIES = 20_000
FEDSTDG: dict[str, dict[str, Any]] = {
    "average": {},
    "signds": {"update": "signds", "votes": {"among": 2000, "top": 0.1, "step": 0.02}},
}
DATA = Path(__file__).parents[3] / "shared" / "data"


def main() -> None:
    parser = argparse.ArgumentParser(description=sequences.__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--seeds", type=int, default=1, help="runs of every figure, which are averaged")
    parser.add_argument("--only-fedstdg", action="store_true", help="only `fedstdg` on the panel, and its controls")
    parser.add_argument("--quick", action="store_true", help="only ε = 1, and fewer simulated entities")
    said = parser.parse_args()
    seeds = range(1, said.seeds + 1)

    def mean(what: str, measure: Callable[[int], dict[str, float]]) -> dict[str, float]:
        runs = [measure(seed) for seed in seeds]
        found = {key: round(float(np.mean([run[key] for run in runs])), 4) for key in runs[0]}
        print(f"{what:24}", "  ".join(f"{key} {value:.4f}" for key, value in found.items()), flush=True)
        return found

    real = mean("panel, real rows", lambda seed: credit_reference(said.data, seed))
    recurrent = {
        f"{update}_{epsilon}": mean(
            f"fedstdg, {update}, ε = {epsilon}",
            partial(credit_figures, said.data, float(epsilon), synthesizer={"name": "fedstdg", **FEDSTDG[update]}),
        )
        for update in FEDSTDG
        for epsilon in ((1,) if said.quick else (1, 8))
    }
    if said.only_fedstdg:
        print(json.dumps({"panel_real": real, "fedstdg": recurrent}))
        return
    panel = {1: mean("panel, ε = 1", lambda seed: credit_figures(said.data, 1.0, seed))}
    if not said.quick:
        panel[8] = mean("panel, ε = 8", lambda seed: credit_figures(said.data, 8.0, seed))
    simulated = mean("simulated, ε = 1", lambda seed: simulated_figures(2000 if said.quick else ENTITIES, 1.0, seed))
    series = {name: Series(name, said.data) for name in ("energy", "stock")}
    controls = {name: mean(f"{name}, controls", each.controls) for name, each in series.items()}
    made: dict[tuple[str, int], dict[str, float]] = {}
    for name, each in series.items():
        for epsilon in (1,) if said.quick else (1, 8):
            measure = partial(each.figures, float(epsilon))
            made[name, epsilon] = mean(f"{name}, ε = {epsilon}", measure)
    result = {
        "panel": panel[1],
        "panel_8": panel.get(8),
        "panel_real": real,
        "fedstdg": recurrent,
        "simulated": simulated,
        "energy_mae": made["energy", 1]["mae"],
        "energy_mmd": made["energy", 1]["mmd"],
        "energy_mmd_8": made.get(("energy", 8), {}).get("mmd"),
        "stock_mae": made["stock", 1]["mae"],
        "stock_mae_8": made.get(("stock", 8), {}).get("mae"),
        "persistence": {name: each["persistence"] for name, each in controls.items()},
        "data_free": {name: each["data_free"] for name, each in controls.items()},
        "real": {name: each["real"] for name, each in controls.items()},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
