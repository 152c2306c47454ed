"""dpmm: MST and AIM with its own private binning, a tenth of the budget as its defaults have it at ε = 1."""

from __future__ import annotations

from dpmm.pipelines import AIMPipeline, MSTPipeline

from benchmarks.peers.programs.job import AIM_MODEL_MB, read_job

job = read_job()
binning = job.epsilon / 10.0
pipeline = {"mst": MSTPipeline, "aim": AIMPipeline}[job.method](
    epsilon=job.epsilon - binning,
    delta=job.delta,
    proc_epsilon=binning,
    n_jobs=1,
    max_model_size=AIM_MODEL_MB if job.method == "aim" else None,
)
domain = {name: {"lower": low, "upper": high} for name, (low, high) in job.numeric.items()}
domain |= {name: {"categories": labels} for name, labels in job.discrete.items()}
rows = job.rows()
rows = rows.astype(dict.fromkeys(job.discrete, "category"))
pipeline.fit(rows, domain, random_state=job.seed)
job.finish(pipeline.generate(n_records=len(rows), random_state=job.seed), "dpmm", binning_epsilon=binning)
