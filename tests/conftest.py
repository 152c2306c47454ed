"""For every test: a busy machine is no counterexample, so hypothesis waits as long as it takes."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
