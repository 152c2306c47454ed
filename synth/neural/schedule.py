"""How many steps a party takes, at which rate and noise: computed from the plan alone, by both sides alike.

The rigorous profile fixes the number of steps beforehand and finds the least noise with which they and the statistics
cost at most (ε, δ). The faithful one has its noise in the plan and stops where its own accountant, whose premise its
sampler breaks, says that ε is spent; the cost then says that this is not a guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from synth.budget import set_aside
from synth.encoding.cells import Cells
from synth.errors import PlanError, ProtocolError
from synth.interface import Ask
from synth.messages.asked import whole_numbers
from synth.neural.regime import Published, Regime
from synth.neural.server_settings import FED_AVG
from synth.neural.voting import Voting
from synth.plan import Plan
from synth.privacy.calibration import calibrate_noise_multiplier, steps_affordable
from synth.privacy.dpsgd import StepPrivacy
from synth.privacy.events import Event, Unaccounted

LARGEST_RATE = 0.5  # above it sampling hides hardly anybody


@dataclass(frozen=True)
class Schedule:
    plan: Plan
    regime: Regime
    beside: Callable[[], Iterable[Event]] = tuple  # what the family releases before it trains; finding that takes time

    def __post_init__(self) -> None:
        rate = self.regime.sample_rate
        if self.plan.profile == "faithful" and self.regime.published is None:
            raise PlanError(f"'{self.plan.synthesizer.name}' has no profile 'faithful'; use 'rigorous'.")
        if self.faithful and self.regime.pretrain is not None:
            raise PlanError("synthesizer.pretrain is not part of anything published; leave it out, or use 'rigorous'.")
        if self.published is not None and self.regime.votes is not None and not self.published.votes:
            raise PlanError(f"what was published of '{self.plan.synthesizer.name}' has no votes; use update 'average'.")
        if self.voting is not None and self.regime.pretrain is not None:
            raise PlanError("synthesizer.pretrain goes with update 'average'; with 'signds' leave it out.")
        if self.voting is not None:
            return
        if rate > LARGEST_RATE and self.private and not self.faithful:
            raise PlanError(
                f"synthesizer.sample_rate {rate:g} leaves hardly anybody out of a step; use at most {LARGEST_RATE:g} "
                "under privacy."
            )
        if self.sums_gradients and (self.regime.weighting != "rows" or self.regime.server != FED_AVG):
            raise PlanError(
                "synthesizer.weighting and synthesizer.server are about averaged weights; with exchange 'gradients' "
                "there is one sum, and one step is made of it. Leave them out, or set exchange to 'weights'."
            )

    @property
    def published(self) -> Published | None:
        """The paper's protocol, if that is what the plan repeats."""
        return self.regime.published if self.plan.profile == "faithful" else None

    @property
    def faithful(self) -> bool:
        return self.published is not None

    @property
    def bins(self) -> int | None:
        """Most bins of a number; None: numbers are in mixtures, as in all that was published."""
        return None if self.published is not None and not self.published.bins else self.regime.bins

    @property
    def sums_gradients(self) -> bool:
        """Whether a round is one step that all parties' gradients are summed for."""
        return self.regime.exchange == "gradients" and self.regime.votes is None

    @property
    def shares(self) -> int:
        """Honest parties that make the noise of a step between them."""
        return self.plan.noisy_parties if self.sums_gradients else 1

    @property
    def private(self) -> bool:
        return self.plan.privacy != "none"

    def expected_batch(self, party: str) -> float:
        """Rows, from the declared count."""
        return self.regime.sample_rate * self.plan.party(party).rows

    def steps(self, number: int) -> int:
        """Private steps of round `number`; the faithful profile may run out of ε before the last round."""
        if not 0 <= number < self.regime.rounds:
            raise ProtocolError(f"the plan has rounds 0 to {self.regime.rounds - 1}; round {number} is none of them")
        taken = number * self.regime.steps_per_round
        return max(0, min(self.regime.steps_per_round, self.total_steps - taken))

    @cached_property
    def total_steps(self) -> int:
        planned = self.regime.rounds * self.regime.steps_per_round
        if self.plan.privacy == "none" or self.published is None or self.published.noise_multiplier is None:
            return planned
        epsilon, delta = self.plan.privacy.epsilon, self.plan.privacy.delta
        return steps_affordable(epsilon, delta, self.regime.sample_rate, self.noise_multiplier, at_most=planned)

    @cached_property
    def noise_multiplier(self) -> float:
        regime = self.regime
        if self.plan.privacy == "none":
            raise PlanError("without privacy there is no noise to compute")
        epsilon, delta, steps = self.plan.privacy.epsilon, self.plan.privacy.delta, regime.steps_per_round
        if self.published is not None:
            found = self.published.noise_multiplier
            return found or calibrate_noise_multiplier(epsilon, delta, regime.sample_rate, steps)
        beside = set_aside(self.plan, Cells(self.plan.modelled, self.plan.statistics.bins).queries)
        everything_else = (*beside, *self.beside())
        return calibrate_noise_multiplier(
            epsilon, delta, regime.sample_rate, regime.rounds * steps, everything_else, self.shares
        )

    def pace(self, number: int) -> float:
        """Of the learning rate in a round. As published, it does not fall."""
        if self.faithful:
            return 1.0
        first = self.regime.pretrain.pace if self.regime.pretrain else 1.0
        return first * self.falling(number, self.regime.rounds)

    def falling(self, number: int, steps: int) -> float:
        """From 1 evenly to the regime's last pace."""
        return 1.0 - number / max(steps - 1, 1) * (1.0 - self.regime.last_pace)

    @cached_property
    def voting(self) -> Voting | None:
        """How groups of rows vote, if that is what the plan's steps are."""
        said = self.regime.votes
        if said is None:
            return None
        return Voting(self.plan, said, self.regime.sample_rate, self.regime.rounds, self.faithful)

    def step_privacy(self, party: str) -> StepPrivacy:
        return StepPrivacy(
            l2_clip_norm=self.regime.l2_clip_norm,
            noise_multiplier=self.noise_multiplier,
            sample_rate=self.regime.sample_rate,
            expected_batch=self.expected_batch(party),
            shares=self.shares,
        )

    def checked(self, ask: Ask) -> int:
        """The round an ask belongs to; refuses any step that was not planned."""
        heard = self.voting.options if self.voting else ()
        number, steps, *decays = whole_numbers(ask, "training", "round", "steps", *heard)
        if max(decays, default=0) > number:
            raise ProtocolError(f"by round {number} a vote's step cannot have fallen {decays[0]} times")
        if steps != self.steps(number):
            raise ProtocolError(f"round {number} has {self.steps(number)} planned steps, {steps} were asked for")
        return number

    def cost(self, number: int, party: str) -> list[Event]:
        steps = self.steps(number)
        if steps == 0:
            return []
        if not self.private:
            what = "votes" if self.voting else "gradients" if self.sums_gradients else "weights trained"
            return [Unaccounted(f"{what} without noise")]
        trained = self.voting.ballot if self.voting else self.step_privacy(party).event(steps)
        event = replace(trained, about=self.plan.unit)
        return [event] if self.published is None else [event, Unaccounted(self.published.gap)]
