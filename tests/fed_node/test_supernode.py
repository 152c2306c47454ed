"""Flower's loop at a party: quick while a run goes on, slow otherwise, and tried again where Kubernetes would wait."""

from __future__ import annotations

import os
import sys
import time

import pytest
from flwr.supernode import start_client_internal

from fed_node import supernode


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(time, "sleep", found.append)
    return found


def test_looks_for_messages_often_after_one(slept: list[float]) -> None:
    pace = supernode.Pace()
    pace.sleep(3)
    pace.sleep(0.5)  # Flower waits for a reply: there was a message
    pace.sleep(3)
    assert slept == [3, supernode.REPLY_POLL_SECONDS, supernode.ALERT_POLL_SECONDS]


def test_slows_down_when_nothing_comes(slept: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    pace, now = supernode.Pace(), [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    pace.sleep(0.5)
    now[0] += supernode.ALERT_SECONDS + 1
    pace.sleep(3)
    assert slept[-1] == 3


def test_flowers_loop_sleeps_through_its_own_name_for_time() -> None:
    """What `Pace` replaces must be there; a new version of Flower may change it."""
    assert vars(start_client_internal)["time"] is time


def _ending(monkeypatch: pytest.MonkeyPatch, code: int) -> list[list[str]]:
    started: list[list[str]] = []

    def flower() -> None:
        raise SystemExit(code)

    def execv(program: str, words: list[str]) -> None:
        started.append(words)

    monkeypatch.setattr(supernode, "flower_supernode", flower)
    monkeypatch.setattr(os, "execv", execv)
    monkeypatch.setattr(sys, "argv", ["supernode", "--superlink=x:1"])
    monkeypatch.setitem(vars(start_client_internal), "time", time)
    return started


def test_a_refused_node_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(supernode.ATTEMPT, "0")
    started = _ending(monkeypatch, 1)
    supernode.main()
    assert started[0][1:] == ["-m", "fed_node.supernode", "--superlink=x:1"]
    assert os.environ[supernode.ATTEMPT] == "1"


@pytest.mark.parametrize(("code", "attempt"), [(0, 0), (1, supernode.MOST_ATTEMPTS)])
def test_an_orderly_end_and_the_last_attempt_end_it(
    monkeypatch: pytest.MonkeyPatch, slept: list[float], code: int, attempt: int
) -> None:
    monkeypatch.setenv(supernode.ATTEMPT, str(attempt))
    started = _ending(monkeypatch, code)
    with pytest.raises(SystemExit):
        supernode.main()
    assert not started
