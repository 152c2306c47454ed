"""opendp: MST and AIM on a frame whose keys and cuts are public, so no part of the budget is spent on finding them.

As released, 0.16.0's MST refuses itself on 15 columns: it splits its budget into 14 parts that, added with upward
rounding, exceed the whole by a few units in the last place. Here every part is made smaller by one part in 10^12.
"""

from __future__ import annotations

import opendp.extras.mbi._mst as mst
import opendp.prelude as dp
import polars as pl

from benchmarks.peers.programs.job import AIM_MODEL_MB, cuts, read_job

dp.enable_features("contrib")
mst.prior = lambda share: share * (1.0 - 1e-12)
job = read_job()
frame = pl.LazyFrame(job.rows().to_dict("list"))


def spent(rho: float) -> float:
    """ε of ρ-zCDP at this δ, by opendp's own conversion."""
    to_approximate = dp.c.make_zCDP_to_approxDP(
        dp.m.make_gaussian(
            dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=(1.0 / (2.0 * rho)) ** 0.5
        )
    )
    return to_approximate.map(1.0).epsilon(job.delta)


rho = dp.binary_search(lambda rho: spent(rho) <= job.epsilon, bounds=(1e-4, 10.0))
context = dp.Context.compositor(data=frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=rho))
table = (
    context.query(rho=rho)
    .contingency_table(
        keys=job.discrete,
        cuts={name: [low - 1, *cuts(low, high), high] for name, (low, high) in job.numeric.items()},
        algorithm=dp.mbi.MST() if job.method == "mst" else dp.mbi.AIM(queries=2, max_size=AIM_MODEL_MB),
    )
    .release()
)
made = table.synthesize(rows=len(job.rows()), method="sample").to_pandas()
job.finish(made, "opendp", rho=rho)
