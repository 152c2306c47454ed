"""The law of votes as the code casts them: every draw of the secret source is followed to its end, so what is compared
with the charged law are exact probabilities and neither a formula nor a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from synth.errors import PrivacyError
from synth.neural.groups import VotingRound
from synth.neural.vote_settings import VoteSettings
from synth.neural.voting import VOTES
from synth.privacy.events import Votes
from synth.privacy.noise import NoiseSource
from synth.privacy.selection.ballots import BallotBox
from synth.privacy.selection.law import DRAW_BITS, overlap_bounds, whole_law

Law = Counter[tuple[int, ...]]
NO_LOSS: Any = None


class Followed(NoiseSource):
    """Draws what a path says, notes among how many it chose, and how likely all of it was."""

    def __init__(self, path: Sequence[int], bounds: tuple[int, ...], luck: int) -> None:
        super().__init__(bytes([luck] * 32))
        self.path, self.bounds, self.taken, self.likely = path, bounds, list[tuple[int, int]](), 1.0

    def child(self, *labels: str | int) -> NoiseSource:
        return self

    def below(self, limit: int) -> int:
        ways = [(value, 1 / limit) for value in range(limit)] if limit < 100 else self._overlaps(limit)
        way = self.path[len(self.taken)] if len(self.taken) < len(self.path) else 0
        self.taken.append((way, len(ways)))
        self.likely *= ways[way][1]
        return ways[way][0]

    def _overlaps(self, limit: int) -> list[tuple[int, float]]:
        assert limit == 1 << DRAW_BITS
        spans = zip((0, *self.bounds), self.bounds, strict=False)
        return [(start, (end - start) / limit) for start, end in spans if end > start]


def every_way(bounds: tuple[int, ...], cast: Callable[[NoiseSource], Any], luck: int = 0) -> Law:
    found, path = Law(), list[int]()
    while True:
        source = Followed(path, bounds, luck)
        found[tuple(np.asarray(cast(source)).tolist())] += source.likely  # type: ignore[assignment]
        taken = source.taken
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        if not taken:
            return found
        path = [*(way for way, _ in taken[:-1]), taken[-1][0] + 1]


def excess(event: Votes, laws: Sequence[Law]) -> float:
    """By how much any two of these laws are further apart than what is charged, at any level."""
    (losses, masses), most = whole_law(event), 0.0
    for level in np.exp(np.linspace(-1.2, 1.2, 9) * event.epsilon):
        charged = np.maximum(masses - level * masses * np.exp(-losses), 0).sum()
        for one, other in product(laws, repeat=2):
            outcomes = one.keys() | other.keys()
            most = max(most, sum(max(one[o] - level * other[o], 0.0) for o in outcomes) - charged)
    return float(most)


def votes_of(event: Votes, everywhere: bool, wishes: Sequence[float], share: tuple[int, int]) -> Law:
    bounds = overlap_bounds(*share, event.chosen, event.threshold, event.epsilon)
    return every_way(
        bounds, lambda source: BallotBox(event, everywhere, source).cast(np.array([wishes]), np.zeros(1, dtype=bool))[0]
    )


@pytest.mark.parametrize(
    ("event", "everywhere", "share"),
    [
        (Votes(4, 1, 1, 1, 1.5, 1.0, 1), False, (4, 1)),
        (Votes(4, 3, 1, 1, 1.5, 1.0, 1), False, (4, 3)),
        (Votes(4, 2, 2, 1, 1.0, 1.0, 1), False, (4, 2)),
        (Votes(4, 2, 2, 2, 1.0, 1.0, 1), False, (4, 2)),
        (Votes(10, 3, 1, 1, 1.5, 1.0, 1), True, (4, 1)),  # three tenths of four weights: one of them
        (Votes(10, 5, 1, 1, 1.5, 1.0, 1), True, (4, 2)),
    ],
    ids=str,
)
def test_no_wishes_are_told_apart_better_than_is_charged(
    event: Votes, everywhere: bool, share: tuple[int, int]
) -> None:
    laws = [votes_of(event, everywhere, wishes, share) for wishes in sorted(set(permutations((3.0, 2.0, -1.0, -1.0))))]
    assert excess(event, laws) < 1e-12


def test_a_share_above_a_half_rounded_down_would_tell_more_than_is_charged() -> None:
    """Nine tenths of four weights are three of them. Sets of three differ more often than sets of nine tenths do."""
    event = Votes(10, 9, 1, 1, 1.5, 1.0, 1)
    exact = Votes(4, 3, 1, 1, 1.5, 1.0, 1)
    laws = [votes_of(exact, False, wishes, (4, 3)) for wishes in [(3.0, 2.0, 1.0, 0.0), (0.0, 1.0, 2.0, 3.0)]]
    assert excess(event, laws) > 0.1
    with pytest.raises(PrivacyError, match="at most half"):
        BallotBox(event, True, NoiseSource())
    with pytest.raises(ValidationError, match=r"at most 0\.5"):
        VoteSettings(top=0.9)
    assert VoteSettings(top=0.9, among=10).top == 0.9  # its law is that of nine of ten


class SumsAreWishes(VotingRound):
    """A group wishes for the sum of its rows."""

    def wishes(self, network: Any, loss: Any, rows: torch.Tensor, there: torch.Tensor) -> Any:
        return (rows * there[:, :, None]).sum(1).double().numpy()


@pytest.mark.parametrize("luck", range(2))
def test_a_row_more_among_groups_of_which_a_secret_sample_votes(luck: int) -> None:
    """Two of three groups vote, and rows fall into them by the code's own coin: the party's sum, whole."""
    event = Votes(4, 1, 1, 1, 1.5, 2 / 3, 1)
    said = SimpleNamespace(records_per_client=1, among=4)
    voting: Any = SimpleNamespace(groups=lambda _: 3, voters=lambda _: 2, ballot=event, said=said)
    bounds = overlap_bounds(4, 1, 1, 1, 1.5)

    def answered(rows: torch.Tensor) -> Law:
        def answer(source: NoiseSource) -> Any:
            return SumsAreWishes(voting, "party-1", source).answer(torch.nn.Linear(1, 1), NO_LOSS, rows, 0.0)[VOTES]

        return every_way(bounds, answer, luck)

    rows = torch.tensor([[1.0, 0, 0, 0], [0, 2.0, -1.0, 0], [0, -9.0, 0, 9.0]])
    assert excess(event, [answered(rows[:2]), answered(rows)]) < 1e-12
    assert excess(replace(event, sample_rate=0.1), [answered(rows[:2]), answered(rows)]) > 0.01  # the test can fail
