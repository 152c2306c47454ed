"""Ours: three equal parties through the simulation that `fedsynth simulate` runs, statistics and encoding charged."""

from __future__ import annotations

import tempfile
from pathlib import Path

from aggregator.watch import Silent
from benchmarks.peers.programs.job import Job, read_job
from fedsynth.documents import read_plan_content
from fedsynth.simulation import simulate

PLANS = {"marginals": "adult.yaml", "ctgan": "adult-ctgan.yaml"}


def main(job: Job) -> None:
    content = read_plan_content(Path(__file__).parents[3] / "examples" / PLANS[job.method])
    content["privacy"] = content["privacy"] | {"epsilon": job.epsilon, "delta": job.delta}
    with tempfile.TemporaryDirectory() as folder:
        folders = simulate.Folders(Path(folder))
        plan = simulate.prepare_partition(content, job.train, "iid", 3, folders, job.seed)
        release = simulate.run(plan, folders, job.seed, Silent())
    job.finish(release.table, "fedsynth", claimed_epsilon=release.certificate.claim.epsilon)


if __name__ == "__main__":
    main(read_job())
