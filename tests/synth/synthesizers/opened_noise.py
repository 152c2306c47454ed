"""The noise in opened tables, for every family that asks for tables: what was promised, and not a share less."""

from __future__ import annotations

import numpy as np
import pytest

from synth.encoding import contingency
from synth.encoding.bins import Bins
from synth.encoding.contingency import Clique
from synth.encoding.records import Records
from synth.interface import Array, Ask, Sum
from synth.plan import Plan
from synth.privacy.events import CountNoise
from synth.privacy.noise import seeded_source
from synth.privacy.shares import summed_variance
from synth.synthesizers.bayes.released import ReleasedSearch
from synth.synthesizers.marginals.synthesizer import Marginals


def check_opened_noise(
    plan: Plan,
    data: dict[str, Records],
    model: Marginals | ReleasedSearch,
    cell_to_bin: Array,
    cliques: list[Clique],
    number: int,
    *,
    many: bool = True,
) -> None:
    """Ask four parties for the tables of these cliques, in ask `number`, and look at what is beside exact counts.

    `many`: there are cells enough (2,000) to see that a quarter of the noise is missing."""
    options = {"phase": "training", "round": number}
    ask = Ask({"bins": cell_to_bin, "cliques": contingency.pack_cliques(cliques)}, options)
    bins = Bins(model.cells, cell_to_bin)
    answers = {party: model.answer(ask, party, rows, {}, seeded_source(1, party))[0] for party, rows in data.items()}

    def noise_of(parties: list[str]) -> Array:
        rows = Records.concat([data[name] for name in parties])
        exact = contingency.count(bins.index(rows, model.names), [bins.size(name) for name in model.names], cliques)
        return Sum.of({name: answers[name] for name in parties}).arrays["counts"] - exact

    event = model.cost(ask, "party-1")[0]
    assert isinstance(event, CountNoise)
    promised = summed_variance(plan, event)
    assert promised >= event.variance  # what the ledger counts on is in the sum whoever colludes
    noise = noise_of(list(answers))
    # The variance of n draws is known to √(2/n): five standard errors, a false alarm in 10^6.
    tolerance = 5 * np.sqrt(2 / len(noise))
    assert noise.var() / promised == pytest.approx(1.0, abs=tolerance)
    assert abs(noise.mean()) < 5 * np.sqrt(promised / len(noise))
    if many:
        assert noise_of(["party-1", "party-2", "party-3"]).var() / promised < 1.0 - tolerance
