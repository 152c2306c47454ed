"""Synthetic tables made together by institutions that may not pool their rows.

`from fedsynth import synthesize` is the way in from Python; the command line is `fedsynth`. Names are loaded when they
are first used, because a command that reads a certificate needs no model.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fedsynth.extras import what_to_install

if TYPE_CHECKING:
    from fedsynth.api import Schema as Schema
    from fedsynth.api import draft_schema as draft_schema
    from fedsynth.api import synthesize as synthesize
    from fedsynth.plan_content import new_plan as new_plan
    from fedsynth.result import Report as Report
    from fedsynth.result import Result as Result
    from synth.plan import Plan as Plan

_HOMES = {
    "Plan": "synth.plan",
    "Report": "fedsynth.result",
    "Result": "fedsynth.result",
    "Schema": "fedsynth.api",
    "draft_schema": "fedsynth.api",
    "new_plan": "fedsynth.plan_content",
    "synthesize": "fedsynth.api",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"fedsynth has no {name!r}; it has {', '.join(_HOMES)}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if (words := what_to_install(error)) is None:
            raise
        raise ModuleNotFoundError(words, name=error.name) from None
