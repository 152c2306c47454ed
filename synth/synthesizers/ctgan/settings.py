"""What a plan may say about `ctgan`. Kept apart from the networks so that reading a plan needs no torch.

The defaults were tuned under differential privacy, where noise grows with the discriminator and with every step: few
steps over large batches, a narrow discriminator. `preset: published` fills in Leitner's and CTGAN's values instead.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from synth.family import Declaration, FamilySettings
from synth.neural.regime import Published, Regime
from synth.neural.server_settings import ServerSettings
from synth.schema import Strict


class GeneratorSettings(Strict):
    """The network that makes rows."""

    noise_width: int = Field(64, ge=1, le=4096, description="Random numbers a row is made from.")
    width: int = Field(128, ge=1, le=4096, description="Units of each of the two hidden layers.")
    learning_rate: float = Field(1e-3, gt=0, description="Adam's step size.")
    condition_weight: float = Field(
        1.0, ge=0, description="Weight of the penalty for rows that ignore their condition; 0 leaves it out."
    )
    warm_start_steps: int = Field(
        300, ge=0, description="Steps at the aggregator, before round 1, that teach the released one-way histograms."
    )


class DiscriminatorSettings(Strict):
    """The network that tells rows from made-up ones: the only one that sees private rows."""

    width: int = Field(32, ge=1, le=4096, description="Units of each of the two hidden layers; fewer need less noise.")
    dropout: float = Field(0.0, ge=0, lt=1, description="Share of hidden units left out of each step.")
    learning_rate: float = Field(4e-3, gt=0, description="Adam's step size.")
    loss: Literal["cross-entropy", "wasserstein"] = Field(
        "cross-entropy", description="'wasserstein' adds a gradient penalty and is possible only without privacy."
    )
    pac: int = Field(
        1, ge=1, le=1000, description="Rows judged together; 1 under privacy, where a row must stand alone."
    )
    steps_per_generator_step: int = Field(1, ge=1, description="Discriminator steps between two generator steps.")
    l2_clip_norm: float = Field(0.1, gt=0, description="Bound on the gradient of one row.")
    fake_batch: int = Field(500, ge=2, le=1_000_000, description="Made-up rows per step.")


class CtganSettings(FamilySettings):
    """Conditional tabular GAN, trained by averaging the parties' DP-SGD updates."""

    name: Literal["ctgan"] = "ctgan"
    preset: Literal["compact", "published"] = Field(
        "compact", description="Where values that the plan leaves out come from: ours, or the published ones."
    )
    rounds: int = Field(20, ge=1, description="Rounds of local training and averaging.")
    steps_per_round: int = Field(15, ge=1, description="Discriminator steps a party takes in one round.")
    sample_rate: float = Field(
        0.2, gt=0, le=1, description="Probability with which a row joins one step's batch (Poisson sampling)."
    )
    exchange: Literal["weights", "gradients"] = Field(
        "weights",
        exclude_if=lambda said: said == "weights",  # plans from before keep their digests
        description="'weights': a round is several steps at every party, each with all of its noise. 'gradients': "
        "every step is a round and the parties sum their gradients, so that privacy.noise 'shared' holds for them too.",
    )
    weighting: Literal["rows", "similarity"] = Field(
        "rows", description="Share of a party in the average: its declared rows, or Fed-TGAN's similarity."
    )
    generator: GeneratorSettings = Field(default_factory=GeneratorSettings, description="The generator.")
    discriminator: DiscriminatorSettings = Field(
        default_factory=DiscriminatorSettings, description="The discriminator."
    )
    momentum: float = Field(
        0.0, ge=0, lt=1, description="Adam's first beta, both networks; the less of it, the less old noise is kept."
    )
    weight_decay: float = Field(0.0, ge=0, description="Adam's L2 penalty, both networks.")
    averaging: float = Field(
        0.8, ge=0, lt=1, description="Memory of the running average over rounds that rows are drawn from; 0: the last."
    )
    candidates: int = Field(
        5, ge=1, le=1000, description="Rows made per row kept; the discriminator and the released histograms choose."
    )
    server: ServerSettings = Field(
        default_factory=ServerSettings,
        exclude_if=lambda said: said == ServerSettings(),  # plans from before keep their digests
        description="The federated optimiser.",
    )
    noise_multiplier: float | None = Field(
        None, gt=0, description="Noise of the faithful profile (2 if left out). The rigorous one computes it from ε, δ."
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, value: Any) -> Any:
        if not isinstance(value, dict) or value.get("preset") != "published":
            return value
        filled = {**PUBLISHED, **value}
        for part in ("generator", "discriminator"):
            if isinstance(given := value.get(part, {}), dict):
                filled[part] = {**PUBLISHED[part], **given}
        return filled

    def regime(self) -> Regime:
        """The published form averages mixtures (Algorithm 4.1) and samples rows by exact local frequencies."""
        published = Published(
            noise_multiplier=self.noise_multiplier or PUBLISHED_NOISE_MULTIPLIER,
            gap="conditions drawn from exact local frequencies",
            statistics="mixture rounds",
        )
        return Regime(
            self.rounds,
            self.steps_per_round,
            self.sample_rate,
            self.discriminator.l2_clip_norm,
            self.weighting,
            self.averaging,
            published,
            self.server,
            exchange=self.exchange,
        )

    def declared(self, *, private: bool, faithful: bool) -> Declaration:
        return self.regime().declared(faithful=faithful)


# Leitner 2023, tables 5.2 and 5.3 (DP-Fed-CTGAN on Adult), and CTGAN's defaults for what they leave out. Three local
# epochs a round are 3 × 10,853 / 500 steps on a third of Adult. Clip norm and number of rounds are not printed there.
PUBLISHED: dict[str, Any] = {
    "rounds": 11,
    "steps_per_round": 63,
    "sample_rate": 0.0461,
    "generator": {
        "noise_width": 128,
        "width": 256,
        "learning_rate": 2e-4,
        "condition_weight": 0.0,
        "warm_start_steps": 0,
    },
    "discriminator": {"width": 256, "dropout": 0.5, "learning_rate": 2e-4, "l2_clip_norm": 1.0},
    "momentum": 0.5,
    "weight_decay": 1e-5,
    "averaging": 0.0,
    "candidates": 1,
}
PUBLISHED_NOISE_MULTIPLIER = 2.0
