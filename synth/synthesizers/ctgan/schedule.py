"""How many steps a party takes, at which rate and noise: computed from the plan alone, by both sides alike.

The rigorous profile fixes the number of steps beforehand and finds the least noise with which they and the statistics
cost at most (ε, δ). The faithful one has its noise in the plan and stops where its own accountant, whose premise its
sampler breaks, says that ε is spent; the cost then says that this is not a guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from synth.budget import set_aside
from synth.encoding.cells import Cells
from synth.errors import PlanError, ProtocolError
from synth.interface import Ask
from synth.messages.asked import whole_numbers
from synth.plan import Plan
from synth.privacy.calibration import calibrate_noise_multiplier, steps_affordable
from synth.privacy.dpsgd import StepPrivacy
from synth.privacy.events import Event, Unaccounted
from synth.synthesizers.ctgan.settings import PUBLISHED_NOISE_MULTIPLIER, CtganSettings

LARGEST_RATE = 0.5  # above it sampling hides hardly anybody


@dataclass(frozen=True)
class Schedule:
    plan: Plan
    settings: CtganSettings

    @property
    def faithful(self) -> bool:
        return self.plan.profile == "faithful"

    @property
    def private(self) -> bool:
        return self.plan.privacy != "none"

    def expected_batch(self, party: str) -> float:
        """Rows, from the declared count."""
        return self.settings.sample_rate * self.plan.party(party).rows

    def steps(self, number: int) -> int:
        """Discriminator steps of round `number`; the faithful profile may run out of ε before the last round."""
        if not 0 <= number < self.settings.rounds:
            raise ProtocolError(f"the plan has rounds 0 to {self.settings.rounds - 1}; round {number} is none of them")
        taken = number * self.settings.steps_per_round
        return max(0, min(self.settings.steps_per_round, self.total_steps - taken))

    @cached_property
    def total_steps(self) -> int:
        planned = self.settings.rounds * self.settings.steps_per_round
        if self.plan.privacy == "none" or not self.faithful:
            return planned
        epsilon, delta = self.plan.privacy.epsilon, self.plan.privacy.delta
        return steps_affordable(epsilon, delta, self.settings.sample_rate, self.noise_multiplier, at_most=planned)

    @cached_property
    def noise_multiplier(self) -> float:
        settings = self.settings
        if self.plan.privacy == "none":
            raise PlanError("without privacy there is no noise to compute")
        if self.faithful:
            return settings.noise_multiplier or PUBLISHED_NOISE_MULTIPLIER
        beside = set_aside(self.plan, Cells(self.plan.table, self.plan.statistics.bins).queries)
        steps = settings.rounds * settings.steps_per_round
        return calibrate_noise_multiplier(
            self.plan.privacy.epsilon, self.plan.privacy.delta, settings.sample_rate, steps, beside
        )

    def step_privacy(self, party: str) -> StepPrivacy:
        return StepPrivacy(
            l2_clip_norm=self.settings.discriminator.l2_clip_norm,
            noise_multiplier=self.noise_multiplier,
            sample_rate=self.settings.sample_rate,
            expected_batch=self.expected_batch(party),
        )

    def checked(self, ask: Ask) -> int:
        """The round an ask belongs to; refuses any step that was not planned."""
        number, steps = whole_numbers(ask, "training", "round", "steps")
        if steps != self.steps(number):
            raise ProtocolError(f"round {number} has {self.steps(number)} planned steps, {steps} were asked for")
        return number

    def cost(self, number: int, party: str) -> list[Event]:
        steps = self.steps(number)
        if steps == 0:
            return []
        if not self.private:
            return [Unaccounted("weights trained without noise")]
        event = self.step_privacy(party).event(steps)
        return [event, Unaccounted("conditions drawn from exact local frequencies")] if self.faithful else [event]

    def check(self) -> None:
        """Refuse settings that could not be carried out soundly."""
        settings, critic = self.settings, self.settings.discriminator
        if critic.fake_batch % critic.pac:
            raise PlanError(
                f"synthesizer.discriminator.fake_batch {critic.fake_batch} must be a multiple of pac {critic.pac}."
            )
        if self.plan.table.discrete == {} and self.faithful:
            raise PlanError("training-by-sampling (profile 'faithful') needs a discrete column; use 'rigorous'.")
        if not self.private:
            return
        if critic.pac > 1:
            raise PlanError(
                f"synthesizer.discriminator.pac {critic.pac} judges several rows together, so one row's influence "
                "cannot be bounded; set pac to 1 under privacy."
            )
        if critic.loss == "wasserstein":
            raise PlanError(
                "synthesizer.discriminator.loss 'wasserstein' has a gradient penalty, which clipping one row at a time "
                "cannot bound; use 'cross-entropy' under privacy."
            )
        if settings.sample_rate > LARGEST_RATE and not self.faithful:
            raise PlanError(
                f"synthesizer.sample_rate {settings.sample_rate:g} leaves hardly anybody out of a step; use at most "
                f"{LARGEST_RATE:g} under privacy."
            )
        if settings.noise_multiplier is not None and not self.faithful:
            raise PlanError(
                "synthesizer.noise_multiplier is for profile 'faithful'; the rigorous profile computes the noise from "
                "privacy.epsilon and privacy.delta. Remove it."
            )
