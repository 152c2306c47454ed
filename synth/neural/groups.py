"""A party's side of a vote: groups of records, what each would do to the weights, and the votes that are made of it.

All sizes here are public: so many groups, so many places in each. What one group computes is then the same to the last
bit whoever is in the others, since no array's shape and no other group's numbers are part of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from synth.interface import Arrays
from synth.neural.encoded import EncodedRows
from synth.neural.streams import Stream
from synth.neural.vote_settings import VoteSettings
from synth.neural.voting import VOTES, YES, Voting
from synth.privacy.noise import NoiseSource
from synth.privacy.selection.ballots import BallotBox

GroupLoss = Callable[[nn.Module, Tensor, Tensor, Stream], Tensor]  # network, rows, which are there, luck -> a number
Weights = dict[str, Tensor]  # [groups, …] each
SEED_WORDS = 4
BETAS, FLOOR = (0.9, 0.999), 1e-8  # Adam's


class EveryGroupsLuck(Stream):
    """Luck inside `vmap`, another for every group. From torch's generator, whose seed the caller sets: nothing that is
    promised rests on this luck."""

    def __init__(self) -> None:
        super().__init__(0)

    def normal(self, rows: int, width: int) -> Tensor:
        return torch.randn(rows, width)

    def uniform(self, rows: int, width: int) -> Tensor:
        return torch.rand(rows, width)

    def gumbel(self, rows: int, width: int) -> Tensor:
        return torch.rand(rows, width).clamp(1e-20, 1 - 1e-7).log().neg().log().neg()


class _Loss(nn.Module):
    """A group's loss as a function of all weights."""

    def __init__(self, network: nn.Module, loss: GroupLoss) -> None:
        super().__init__()
        self.network, self.loss = network, loss

    def forward(self, rows: Tensor, there: Tensor) -> Tensor:
        return self.loss(self.network, rows, there, EveryGroupsLuck())


@dataclass(frozen=True, eq=False)
class VotingRound:
    """One round of one party's votes."""

    voting: Voting
    party: str
    noise: NoiseSource

    @property
    def said(self) -> VoteSettings:
        return self.voting.said

    @property
    def voters(self) -> int:
        return self.voting.voters(self.party)

    def answer(self, network: nn.Module, loss: GroupLoss, rows: EncodedRows, small: float) -> Arrays:
        """Signed votes for every weight; and how many groups would move none by as much as `small`."""
        wishes = self.wishes(network, loss, *self._drawn(rows))
        truths = np.abs(wishes).max(axis=1) < small
        box = BallotBox(self.voting.ballot, self.said.among is None, self.noise.child("votes"))
        votes, yes = box.cast(wishes, truths)
        return {VOTES: votes, YES: np.array([yes])}

    def wishes(self, network: nn.Module, loss: GroupLoss, rows: Tensor, there: Tensor) -> npt.NDArray[np.float64]:
        """[voters, weights]: how each group's own records change the weights."""
        whole = _Loss(network, loss)
        start = {name: value.detach() for name, value in whole.named_parameters()}
        slope = vmap(
            grad(lambda weights, rows, there: functional_call(whole, weights, (rows, there))), randomness="different"
        )
        seed = int(self.noise.child("luck").uint64(1)[0] >> np.uint64(1))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            found = self._trained({n: w.expand(len(rows), *w.shape) for n, w in start.items()}, slope, rows, there)
        return torch.cat([(found[name] - start[name]).flatten(1) for name in start], dim=1).double().cpu().numpy()

    def _trained(self, weights: Weights, slope: Callable[..., Weights], rows: Tensor, there: Tensor) -> Weights:
        rate, (memory, longer) = self.said.local_rate, BETAS
        mean = {name: torch.zeros_like(value) for name, value in weights.items()}
        square = {name: torch.zeros_like(value) for name, value in weights.items()}
        for step in range(1, self.said.local_steps + 1):
            slopes = slope(weights, rows, there)
            if self.said.local_optimizer == "sgd":
                weights = {name: value - rate * slopes[name] for name, value in weights.items()}
                continue
            mean = {name: memory * mean[name] + (1 - memory) * slopes[name] for name in weights}
            square = {name: longer * square[name] + (1 - longer) * slopes[name] ** 2 for name in weights}
            weights = {
                name: value
                - rate * (mean[name] / (1 - memory**step)) / ((square[name] / (1 - longer**step)).sqrt() + FLOOR)
                for name, value in weights.items()
            }
        return weights

    def _drawn(self, rows: EncodedRows) -> tuple[Tensor, Tensor]:
        """[voters, places, row width] records of the groups that vote, and [voters, places] which places are taken. Who
        votes is secret. Who is in which group need not be; a group with more records than places leaves some out."""
        groups = self.voting.groups(self.party)
        homes = np.random.default_rng(self.noise.child("groups").uint64(SEED_WORDS)).integers(groups, size=len(rows))
        chosen = self.noise.child("voters").distinct_below(groups, self.voters)
        places = 2 * self.said.records_per_client + 2
        members = [np.flatnonzero(homes == group)[:places] for group in chosen]
        where = np.concatenate([n * places + np.arange(len(each)) for n, each in enumerate(members)]).astype(np.int64)
        found = rows[torch.as_tensor(np.concatenate(members).astype(np.int64))]
        batch, there = torch.zeros(self.voters * places, found.shape[1]), torch.zeros(self.voters * places)
        batch[torch.as_tensor(where)], there[torch.as_tensor(where)] = found, 1.0
        return batch.view(self.voters, places, -1), there.view(self.voters, places)
