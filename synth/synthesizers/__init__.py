"""The registry: one line a family. Settings are imported here (they are light); a family's code only when it is built."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated, cast

from pydantic import Field

from synth.synthesizers.ctgan.settings import CtganSettings

if TYPE_CHECKING:
    from synth.interface import Synthesizer
    from synth.plan import Plan

FAMILIES: dict[str, str] = {
    "ctgan": "synth.synthesizers.ctgan.synthesizer:Ctgan",
}

Settings = Annotated[CtganSettings, Field(discriminator="name")]


def build(plan: Plan) -> Synthesizer:
    """The plan's synthesizer, the same at the aggregator and at every party."""
    module, _, family = FAMILIES[plan.synthesizer.name].partition(":")
    return cast("Synthesizer", getattr(import_module(module), family)(plan))
