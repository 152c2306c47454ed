"""Certificates that say something false, made by whoever holds them or by the aggregator, and the auditor."""

from __future__ import annotations

from typing import Any

from synth.programme import programme
from tests.synth.test_verification import CERTIFICATE, PLAN, changed, failures

FALSE_TABLE = "cd" * 32


def test_a_table_is_not_swapped_by_taking_the_aggregators_signature_off() -> None:
    """Nothing else covers the table's digest, so an auditor with the pinned key accepted any table."""
    stripped = CERTIFICATE.model_copy(update={"signature": None, "table_sha256": {"synthetic.csv": FALSE_TABLE}})
    assert failures(stripped, tables={"synthetic.csv": FALSE_TABLE}) == ["aggregator's signature"]


def test_a_span_of_sums_that_runs_backwards_does_not_hide_a_second_account_of_an_ask() -> None:
    def twice(content: dict[str, Any]) -> None:
        first, *rest = content["participation"]
        last = rest[-1]
        backwards = last | {"first": last["last"] + 1, "last": last["first"]}
        again = last | {"first": last["first"] + 1}
        content["participation"] = [first, *rest, backwards, again]

    assert "participation" in failures(changed(twice, sign=True))


def test_a_span_beyond_the_plan_is_named_and_ends_no_check() -> None:
    def beyond(content: dict[str, Any]) -> None:
        asks = programme(PLAN).asks
        first, last = content["participation"][0], content["participation"][-1]
        content["participation"] = [first, last | {"last": asks + 10**9}, last | {"first": asks - 1}]

    assert {"participation", "plan"} <= set(failures(changed(beyond, sign=True)))
