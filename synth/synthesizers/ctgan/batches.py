"""Which rows and conditions a discriminator step sees."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from synth.neural.encoded import EncodedRows
from synth.neural.streams import StepStreams
from synth.neural.training import LocalRound, joined
from synth.synthesizers.ctgan.conditions import Conditions, TrainingBySampling
from synth.synthesizers.ctgan.settings import CtganSettings
from synth.synthesizers.ctgan.steps import Pairs


@dataclass
class PoissonBatches:
    """Every row joins by its own coin and brings its own condition; made-up rows follow the released histogram."""

    rows: EncodedRows
    conditions: Conditions
    settings: CtganSettings

    def draw(self, streams: StepStreams) -> tuple[Pairs, Tensor]:
        rows = joined(self.rows, self.settings.sample_rate, streams)
        rows = rows[: len(rows) - len(rows) % self.settings.discriminator.pac]
        fake_conditions = self.conditions.draw(self.settings.discriminator.fake_batch, streams.made_up)
        return (rows, self.conditions.of(rows, streams.conditions)), fake_conditions


@dataclass
class SampledBatches:
    """Training-by-sampling, as published: made-up rows get the real rows' conditions, in another order."""

    sampler: TrainingBySampling
    size: int

    @property
    def conditions(self) -> Conditions:
        return self.sampler.conditions

    def draw(self, streams: StepStreams) -> tuple[Pairs, Tensor]:
        rows, conditions = self.sampler.batch(self.size, streams.conditions)
        return (rows, conditions), conditions[streams.conditions.rng.permutation(self.size)]


def batches_of(local: LocalRound, conditions: Conditions, settings: CtganSettings) -> PoissonBatches | SampledBatches:
    if local.schedule.faithful and isinstance(local.rows, Tensor) and len(local.rows):
        pac = settings.discriminator.pac
        size = max(round(local.schedule.expected_batch(local.party)), pac)
        return SampledBatches(TrainingBySampling(local.asked.features, local.rows), size - size % pac)
    return PoissonBatches(local.rows, conditions, settings)
