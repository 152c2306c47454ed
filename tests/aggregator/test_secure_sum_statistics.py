"""The statistics histogram from rows to release: through masks and encryption the noisy counts add up exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from synth.encoding.records import Codec
from synth.interface import Answer
from synth.privacy.noise import seeded_source
from synth.statistics.histograms import StatisticsInquiry
from tests.aggregator.sealed_parties import SealedParties, admitted, plan_for
from tests.small import table


@pytest.mark.parametrize("mode", ["ckks", "masked"])
@pytest.mark.parametrize("minimum", [None, 2])
def test_the_opened_histogram_is_the_exact_sum_of_the_noisy_counts(
    mode: str, minimum: int | None, tmp_path: Path
) -> None:
    plan = plan_for(mode, secure_sum={"minimum_parties": minimum})
    codec, sent = Codec(plan.table), {}

    def noisy(party: str, sequence: int) -> Answer:
        rows = codec.encode(table(plan.party(party).rows, seed=len(party) + ord(party[-1])))
        inquiry, noise = StatisticsInquiry(plan), seeded_source(7, party)
        ask = inquiry.ask(0)
        assert ask is not None
        sent[party], _ = inquiry.answer(ask, party, rows, {}, noise)
        return sent[party]

    inquiry = StatisticsInquiry(plan)
    ask = inquiry.ask(0)
    assert ask is not None
    sums = admitted(SealedParties(plan, tmp_path, answers=noisy))
    inquiry.absorb(sums.total(ask, 0))
    released = inquiry.result()
    expected = np.sum([answer.arrays["counts"] for answer in sent.values()], axis=0)
    assert len(sent) == 3
    assert np.array_equal(released.finest[1], inquiry.grid.consistent(expected))
    assert released.counts.dtype == np.int64
    exact = np.sum([inquiry.cells.count(codec.encode(table(200, seed=7 + ord(str(n))))) for n in (1, 2, 3)], axis=0)
    assert not np.array_equal(expected, exact)  # the noise is in there
