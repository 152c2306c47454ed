"""ctgan: no privacy at all, so it is the line that private GANs try to reach."""

from __future__ import annotations

import torch
from ctgan import CTGAN

from benchmarks.peers.programs.job import read_job

job = read_job()
torch.manual_seed(job.seed)
model = CTGAN(epochs=300, enable_gpu=False)
model.set_random_state(job.seed)
model.fit(job.rows(), discrete_columns=list(job.discrete))
job.finish(model.sample(len(job.rows())), "ctgan", epochs=300)
