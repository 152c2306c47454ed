"""The registry: one line a family. Settings are light and imported here; a family's code only when it is built."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated, cast

from pydantic import Field

from synth.synthesizers.bayes.settings import BayesSettings
from synth.synthesizers.ctgan.settings import CtganSettings
from synth.synthesizers.marginals.settings import MarginalsSettings

if TYPE_CHECKING:
    from synth.interface import Synthesizer
    from synth.plan import Plan

FAMILIES: dict[str, str] = {
    "bayes": "synth.synthesizers.bayes.synthesizer:bayes",
    "ctgan": "synth.synthesizers.ctgan.synthesizer:ctgan",
    "marginals": "synth.synthesizers.marginals.synthesizer:Marginals",
}

DEFAULT = MarginalsSettings  # where a plan names no family
Settings = Annotated[BayesSettings | CtganSettings | MarginalsSettings, Field(discriminator="name")]


def build(plan: Plan) -> Synthesizer:
    """The plan's synthesizer, the same at the aggregator and at every party."""
    module, _, family = FAMILIES[plan.synthesizer.name].partition(":")
    return cast("Synthesizer", getattr(import_module(module), family)(plan))
