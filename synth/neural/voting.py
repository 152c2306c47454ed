"""Training by votes: what every group of records would do to the weights becomes a few signed votes, and parties sum
them as whole numbers.

party       records fall into groups by coin; some groups, secretly drawn, train on their own records, and vote
aggregator  weights move by `step` for each vote

A record is in one group, groups are as many as the declared rows say, and an empty one votes like the others. So a row
more or less changes what one group wishes for, and `Votes` is the whole price (see `selection.law`), whatever the loss:
rows of a group may even be coupled. Who votes is secret because a party sums its groups' votes itself; the secure sum
over parties hides each party's votes too, and nothing is claimed for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, floor

import numpy as np

from synth.budget import set_aside
from synth.encoding.cells import Cells
from synth.errors import PlanError, ProtocolError
from synth.interface import Array, Arrays, Sum
from synth.neural.vote_settings import VoteSettings
from synth.plan import Plan
from synth.privacy.calibration import calibrate_votes
from synth.privacy.events import Event, Votes
from synth.privacy.selection.law import best_threshold, most_chosen
from synth.units import Unit

VOTES, YES = "votes", "yes"  # the arrays of an answer: signed votes a weight; groups that would have `step` fall
SHARES = 10_000  # in which a share of all weights is written
CERTAIN = 30.0  # the ε of votes without privacy: hardly one is not meant
DECAYS, TURNS, HEARD = "decays", "turns", "heard"  # how often `step` fell; rounds since, and the yes among their bits


@dataclass(frozen=True)
class Ballot:
    """The event of all votes of a plan, but for their ε."""

    dimensions: int
    top: int
    chosen: int | None
    precision: float
    bit_share: float
    sample_rate: float
    steps: int
    about: Unit

    @classmethod
    def of(cls, plan: Plan, said: VoteSettings, sample_rate: float, steps: int) -> Ballot:
        dimensions = said.among or SHARES
        top = max(1, round(said.top * dimensions))
        return cls(dimensions, top, said.chosen, said.precision, said.bit_share, sample_rate, steps, plan.unit)

    def __call__(self, epsilon: float) -> Votes:
        own, bit = epsilon * (1 - self.bit_share), epsilon * self.bit_share
        chosen = self.chosen or most_chosen(self.dimensions, self.top, own, self.precision)
        threshold = best_threshold(self.dimensions, self.top, chosen, own)
        choice = (self.dimensions, self.top, chosen, threshold)
        return Votes(*choice, own, self.sample_rate, self.steps, bit, about=self.about)

    def calibrated(self, epsilon: float, delta: float, beside: Sequence[Event]) -> Votes:
        """With the largest ε that all of them may have, beside what else is released."""
        return self(calibrate_votes(epsilon, delta, self, tuple(beside)))


@dataclass(frozen=True)
class Voting:
    """How a plan's groups vote: from public numbers, by both sides alike."""

    plan: Plan
    said: VoteSettings
    sample_rate: float
    rounds: int
    published: bool

    def __post_init__(self) -> None:
        for party in self.plan.parties:
            if self.voters(party.name) < 1:
                raise PlanError(
                    f"synthesizer.sample_rate {self.sample_rate:g} of {party.name}'s {self.groups(party.name)} groups "
                    "of records is less than one; raise it, or lower votes.records_per_client."
                )

    def groups(self, party: str) -> int:
        return ceil(self.plan.party(party).rows / self.said.records_per_client)

    def voters(self, party: str) -> int:
        """Groups of a party that vote in a round: never more than the share that is charged for."""
        return floor(self.sample_rate * self.groups(party))

    @property
    def ballots(self) -> int:
        """Of all parties in a round."""
        return sum(self.voters(party.name) for party in self.plan.parties)

    @cached_property
    def ballot(self) -> Votes:
        """One round's votes. As published, each has the plan's whole ε."""
        ballot = Ballot.of(self.plan, self.said, self.sample_rate, self.rounds)
        if self.plan.privacy == "none":
            found = ballot(CERTAIN)
        elif self.published:
            found = ballot(self.plan.privacy.epsilon)
        else:
            beside = set_aside(self.plan, Cells(self.plan.modelled, self.plan.statistics.bins).queries)
            found = ballot.calibrated(self.plan.privacy.epsilon, self.plan.privacy.delta, beside)
        return replace(found, steps=1)

    @property
    def options(self) -> tuple[str, ...]:
        """What an ask says besides its round."""
        return (DECAYS,) if self.said.bit_share else ()

    def small(self, decays: int) -> float:
        """The largest change below which a group would have `step` fall: what a vote of the next smaller step does. As
        published, all votes of a round together (FedSTDG's r γ), which hardly any change reaches."""
        one = self.said.step * self.said.decay ** (decays + 1)
        return one * self.ballots if self.published else one


@dataclass(frozen=True)
class Tally:
    """The aggregator's side: what a sum of votes does to the weights, and to `step` where bits are heard."""

    voting: Voting

    def change(self, total: Sum, weights: Arrays, decays: int, pace: float) -> Arrays:
        votes = total.arrays.get(VOTES)
        if votes is None or set(total.arrays) != {VOTES, YES} or len(votes) != sum(w.size for w in weights.values()):
            raise ProtocolError("the summed votes do not fit the weights; the parties run another version")
        said = self.voting.said
        step, start, found = pace * said.step * said.decay**decays, 0, {}
        for name, weight in weights.items():
            found[name] = step * votes[start : start + weight.size].reshape(weight.shape).astype(np.float64)
            start += weight.size
        return found

    def heard(self, state: Arrays, total: Sum) -> Arrays:
        """The bits of one more round (MagRR). They are pooled over the whole patience, so that doubt of a single round,
        which noise alone can be, is no reason to begin anew; as published, it is."""
        said, asked = self.voting.said, sum(self.voting.voters(party) for party in total.parties)
        if not said.bit_share:
            return state
        decays, turns, before = (int(state.get(name, np.array(0))) for name in (DECAYS, TURNS, HEARD))
        yes, turns = before + 2 * int(total.arrays[YES][0]) - asked, turns + 1
        if self.voting.published and yes - before < 0:
            yes, turns = 0, 0
        if turns == said.patience:
            decays, turns, yes = decays + (yes >= 0), 0, 0
        found: dict[str, Array] = {DECAYS: np.array(decays), TURNS: np.array(turns), HEARD: np.array(yes)}
        return found
