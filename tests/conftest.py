"""For every test: a busy machine is no counterexample, so hypothesis waits as long as it takes.

Examples are the same in every run, so that a change is judged by what it changes and not by the day's luck. New ones
are looked for every night: `make fuzz` runs the property tests with the profile `searching`.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("searching", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
