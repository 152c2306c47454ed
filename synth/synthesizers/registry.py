"""The registry: one line a family. Its light settings are loaded with any plan, its code only when it is built."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Union, cast

from pydantic import Field

from synth.family import FamilySettings

if TYPE_CHECKING:
    from synth.interface import Synthesizer
    from synth.neural.synthesizer import NeuralSynthesizer
    from synth.plan import Plan

FAMILIES: dict[str, tuple[str, str]] = {  # what a plan may say about it, and what is built from a plan
    "autoregressive": ("autoregressive.settings:AutoregressiveSettings", "autoregressive.synthesizer:autoregressive"),
    "bayes": ("bayes.settings:BayesSettings", "bayes.synthesizer:bayes"),
    "ctgan": ("ctgan.settings:CtganSettings", "ctgan.synthesizer:ctgan"),
    "fedstdg": ("fedstdg.settings:FedstdgSettings", "fedstdg.synthesizer:fedstdg"),
    "findiff": ("findiff.settings:FindiffSettings", "findiff.synthesizer:findiff"),
    "gswgan": ("gswgan.settings:GswganSettings", "gswgan.synthesizer:gswgan"),
    "marginals": ("marginals.settings:MarginalsSettings", "marginals.synthesizer:Marginals"),
    "vae": ("vae.settings:VaeSettings", "vae.synthesizer:vae"),
    "vertigan": ("vertigan.settings:VertiganSettings", "vertigan.synthesizer:vertigan"),
    "wae": ("wae.settings:WaeSettings", "wae.synthesizer:wae"),
}
DEFAULT = "marginals"  # where a plan names no family


def build(plan: Plan) -> Synthesizer:
    """The plan's synthesizer, the same at the aggregator and at every party; behind one that counts, where its network
    learns made-up rows before real ones."""
    made = cast("Synthesizer", _load(FAMILIES[plan.synthesizer.name][1])(plan))
    if not plan.family.counted_share:
        return made
    from synth.neural.pretraining import Pretrained, counting_plan  # torch, which reading a plan does without

    network = cast("NeuralSynthesizer", made)
    return Pretrained(build(counting_plan(network, settings_of)), network)


def settings_of(family: str) -> type[FamilySettings]:
    return cast("type[FamilySettings]", _load(FAMILIES[family][0]))


def default_settings() -> FamilySettings:
    return settings_of(DEFAULT).model_validate({})


def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"{__package__}.{module}"), name)


if TYPE_CHECKING:
    Settings = FamilySettings
else:  # the family's name says which settings they are
    Settings = Annotated[Union[tuple(map(settings_of, FAMILIES))], Field(discriminator="name")]  # noqa: UP007
