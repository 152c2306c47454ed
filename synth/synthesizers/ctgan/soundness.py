"""Which plans `ctgan` refuses, because they could not be carried out soundly."""

from __future__ import annotations

from synth.errors import PlanError
from synth.neural.schedule import Schedule
from synth.synthesizers.ctgan.settings import CtganSettings


def check(schedule: Schedule, settings: CtganSettings) -> None:
    critic = settings.discriminator
    if critic.fake_batch % critic.pac:
        raise PlanError(
            f"synthesizer.discriminator.fake_batch {critic.fake_batch} must be a multiple of pac {critic.pac}."
        )
    if schedule.plan.modelled.discrete == {} and schedule.faithful:
        raise PlanError("training-by-sampling (profile 'faithful') needs a discrete column; use 'rigorous'.")
    if schedule.sums_gradients and (not schedule.private or critic.steps_per_generator_step > 1):
        raise PlanError(
            "synthesizer.exchange 'gradients' is for sharing noise, with one discriminator step a generator step; "
            "without privacy, or with several, use 'weights'."
        )
    if not schedule.private:
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
    if settings.noise_multiplier is not None and not schedule.faithful:
        raise PlanError(
            "synthesizer.noise_multiplier is for profile 'faithful'; the rigorous profile computes the noise from "
            "privacy.epsilon and privacy.delta. Remove it."
        )
