"""The noise of a count is divided by one formula, and what honest parties add is what was charged."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from synth.errors import PrivacyError
from synth.privacy.events import CountNoise, Gaussian
from synth.privacy.noise import seeded_source
from synth.privacy.shares import share_of, summed_variance, summed_variances


@dataclass
class Five:
    """Five parties, of whom two may collude."""

    parties: list[str] = field(default_factory=lambda: list("abcde"))
    noisy_parties: int = 3
    partition: str = "rows"
    records_per_unit: int = 1


def test_shares_add_up_to_the_whole_without_the_colluders() -> None:
    """What the three others add has the whole variance.

    The sample variance of 200,000 draws has standard error 0.32 %; 1.5 % is 4.7 of them (false alarm 3 in a million).
    """
    share = share_of(Five(), CountNoise(1, 300.0))
    honest = sum(seeded_source(1, "share", party).skellam(share, 200_000) for party in range(3))
    assert np.var(honest) == pytest.approx(300.0, rel=0.015)
    assert share == 100.0


def test_an_opened_sum_holds_the_noise_of_everybody_who_answered() -> None:
    event = CountNoise(4, 300.0)
    assert summed_variance(Five(), event) == 500.0
    assert summed_variance(Five(), event, parties=4) == 400.0
    assert summed_variances(Five(), [event, Gaussian(1.0)], 4) == [400.0]


def test_a_coalition_of_all_leaves_no_noise() -> None:
    with pytest.raises(PrivacyError, match="collude"):
        share_of(Five(noisy_parties=0), CountNoise(1, 300.0))
