"""smartnoise-synth: MST and AIM on public cells, DPCTGAN with public bounds.

Its transformers are fitted on a table of the declared labels and bounds, not on rows, so that they read nothing off
them. What DPCTGAN's conditional vector reads off the rows cannot be switched off.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from snsynth import Synthesizer
from snsynth.transform import (
    ChainTransformer,
    LabelTransformer,
    MinMaxTransformer,
    OneHotEncoder,
    TableTransformer,
)

from benchmarks.peers.programs.job import AIM_MODEL_MB, Job, cuts, from_cells, read_job, to_cells


def main(job: Job) -> None:
    torch.manual_seed(job.seed)
    np.random.seed(job.seed)
    rows = by_cells(job) if job.method in ("mst", "aim") else by_networks(job)
    job.finish(rows, "smartnoise-synth")


def by_cells(job: Job) -> pd.DataFrame:
    rows = job.rows()
    for name, bounds in job.numeric.items():
        rows[name] = to_cells(rows[name], *bounds)
    labels = {n: job.discrete.get(n) or list(range(len(cuts(*job.numeric[n])) + 1)) for n in job.columns}
    transformer = TableTransformer([LabelTransformer(nullable=False) for _ in job.columns])
    transformer.fit(declared(labels), epsilon=0.0)
    limits = {"max_model_size": AIM_MODEL_MB} if job.method == "aim" else {}
    model = Synthesizer.create(job.method, epsilon=job.epsilon, delta=job.delta, verbose=True, **limits)
    model.fit(rows, transformer=transformer)
    made = pd.DataFrame(model.sample(len(rows)), columns=list(job.columns))
    rng = np.random.default_rng(job.seed)
    for name, bounds in job.numeric.items():
        made[name] = from_cells(made[name].to_numpy(), *bounds, rng)
    return made


def by_networks(job: Job) -> pd.DataFrame:
    rows = job.rows()
    made = []
    for name in job.columns:
        if name in job.numeric:
            low, high = job.numeric[name]
            made.append(MinMaxTransformer(lower=low, upper=high, nullable=False))
        else:
            made.append(ChainTransformer([LabelTransformer(nullable=False), OneHotEncoder()]))
    transformer = TableTransformer(made)
    transformer.fit(declared({n: job.discrete.get(n) or list(job.numeric[n]) for n in job.columns}), epsilon=0.0)
    model = Synthesizer.create("dpctgan", epsilon=job.epsilon, delta=job.delta, cuda=False, verbose=True)
    model.fit(rows, transformer=transformer)
    return pd.DataFrame(model.sample(len(rows)), columns=list(job.columns))


def declared(labels: dict[str, list[object]]) -> pd.DataFrame:
    """A table in which every declared value occurs: columns are repeated to equal length."""
    length = max(map(len, labels.values()))
    return pd.DataFrame({name: (values * length)[:length] for name, values in labels.items()})


main(read_job())
