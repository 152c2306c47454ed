"""The picture of a run's states, held to: every arrow, nothing else, and words that name whom it waits for."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.states import ACTIVE, DONE, ENDED, NEXT, NoSuchWay, Reason, RunState, Standing

T0, T1, T2 = (f"2026-11-18T03:00:0{second}+00:00" for second in range(3))


def standing(*states: RunState) -> Standing:
    found = Standing.new("census", "ab" * 32, ["north", "south"], T0)
    for state in states:
        found = found.to(state, T0)
    return found


RUNNING = standing(RunState.admitting, RunState.running)


def test_every_state_has_its_arrows_and_a_release_is_the_end() -> None:
    assert set(NEXT) == set(RunState)
    assert all(not NEXT[state] for state in DONE)
    assert all(NEXT[state] for state in set(RunState) - DONE)
    assert ACTIVE.isdisjoint(ENDED)


@given(st.lists(st.sampled_from(list(RunState)), max_size=12))
def test_only_arrows_of_the_picture_are_taken(wanted: list[RunState]) -> None:
    found, taken = standing(), [RunState.queued]
    for state in wanted:
        try:
            found = found.to(state, T1)
        except NoSuchWay:
            continue
        taken.append(state)
    assert all(before is after or after in NEXT[before] for before, after in pairwise(taken))


@pytest.mark.parametrize("state", sorted(ACTIVE - {RunState.waiting}))
def test_waiting_names_parties_and_goes_back_to_where_it_was(state: RunState) -> None:
    found = standing(RunState.admitting) if state is RunState.admitting else standing(RunState.admitting, state)
    waits = found.wait(["north"], "not connected", T1)
    assert (waits.state, waits.waiting_for, waits.since) == (RunState.waiting, ["north"], T1)
    now = dt.datetime.fromisoformat(T1) + dt.timedelta(seconds=90)
    assert "waiting for north since" in waits.in_words(now)
    assert "(90 s): not connected" in waits.in_words(now)
    assert waits.wait(["north"], "not connected", T2) is waits
    assert waits.wait(["north", "south"], "not connected", T2).wait([], "", T2).state is state
    assert waits.wait([], "", T2).waiting_for == []


def test_nobody_to_wait_for_changes_nothing() -> None:
    assert RUNNING.wait([], "", T2) is RUNNING


def test_a_standing_survives_its_file() -> None:
    failed = RUNNING.to(RunState.failed, T1, reason=Reason("internal", "why", "what to do"))
    waits = RUNNING.wait(["south"], "not connected", T1)
    for each in (RUNNING, failed, waits):
        assert Standing.from_json(each.to_json()) == each
    assert failed.in_words() == "failed: why what to do"


@pytest.mark.parametrize(
    ("word", "withheld", "now"),
    [
        ("running", None, RunState.interrupted),  # of an older version: its process is gone
        ("finished", None, RunState.released),
        ("finished", "minimum_auroc", RunState.withheld),
        ("stopped", None, RunState.stopped),
    ],
)
def test_files_of_earlier_versions_are_read(word: str, withheld: str | None, now: RunState) -> None:
    former = {
        "plan": "census", "digest": "ab" * 32, "flower_run": "7", "state": word, "stage": "training", "parties": ["a"],
        "connected": 1, "round": 3, "rounds": 10, "losses": {}, "epsilon": 0.5, "began": T0, "updated": T1,
        "error": {"code": "x", "message": "y"}, "withheld": withheld,
    }  # fmt: skip
    found = Standing.from_json(former)
    assert (found.state, found.round, found.since) == (now, 3, T1)
    assert found.reason == Reason("x", "y")
