"""sdmetrics on the tables of a folder: runs in its own environment and prints one JSON object."""

from __future__ import annotations

import json
import sys
from itertools import combinations
from pathlib import Path

import pandas as pd
from sdmetrics.column_pairs import ContingencySimilarity, CorrelationSimilarity
from sdmetrics.single_column import KSComplement, TVComplement

folder = Path(sys.argv[1])
kinds = json.loads((folder / "kinds.json").read_text())
numeric, discrete = kinds["numeric"], kinds["discrete"]
types = dict.fromkeys(numeric, "float64") | dict.fromkeys(discrete, "str")
real, made = (pd.read_csv(folder / f"{name}.csv", dtype=types) for name in ("real", "synthetic"))

found = {f"KSComplement {name}": KSComplement.compute(real[name], made[name]) for name in numeric}
found |= {f"TVComplement {name}": TVComplement.compute(real[name], made[name]) for name in discrete}
for pair in combinations(discrete, 2):
    names = list(pair)
    found[f"ContingencySimilarity {' '.join(pair)}"] = ContingencySimilarity.compute(real[names], made[names])
for pair in combinations(numeric, 2):
    names = list(pair)
    found[f"CorrelationSimilarity {' '.join(pair)}"] = CorrelationSimilarity.compute(real[names], made[names])
print(json.dumps({name: float(value) for name, value in found.items()}))
