"""Half a minute of the campaign in every test run, and documents that hypothesis makes up from nothing.

`make fuzz` goes on for ten minutes, or as long as FUZZ_SECONDS says. Seeds are fixed: what passes once passes again.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.campaign import campaign
from tests.fuzz.mutations import as_text
from tests.fuzz.targets import REFUSALS, TARGETS

SECONDS = float(os.environ.get("FUZZ_SECONDS", "30"))
READ_AS_TEXT = ("plan", "plan as sent", "schema", "yaml", "keys", "certificate")
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
CALM = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=SLOW)

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)


def test_damaged_documents_end_in_our_own_errors() -> None:
    outcome = campaign(seconds=SECONDS)
    assert outcome.failures == []
    assert outcome.cases > 100


@pytest.mark.parametrize("name", READ_AS_TEXT)
@CALM
@given(content=values)
def test_made_up_documents_are_refused_in_a_sentence(name: str, content: Any) -> None:
    _refused_or_read(name, as_text(content))


@pytest.mark.parametrize("name", [*READ_AS_TEXT, "archive"])
@CALM
@given(content=st.binary(max_size=200))
def test_bytes_are_refused_in_a_sentence(name: str, content: bytes) -> None:
    _refused_or_read(name, content)


def _refused_or_read(name: str, content: bytes) -> None:
    with suppress(*REFUSALS):
        TARGETS[name].use(content)
