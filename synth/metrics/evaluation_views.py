"""What every part of an evaluation is: plain values that can be stored and drawn."""

from __future__ import annotations

from pydantic import ConfigDict

from synth.strict import Strict


class View(Strict):
    model_config = ConfigDict(allow_inf_nan=False, revalidate_instances="always")
