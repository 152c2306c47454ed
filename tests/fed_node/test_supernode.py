"""Flower's loop at a party: quick while a run goes on, slow otherwise, and tried again where Kubernetes would wait."""

from __future__ import annotations

import os
import sys
import time
from itertools import count
from pathlib import Path
from threading import Event
from unittest.mock import Mock

import pytest
from flwr.app import Message, RecordDict
from flwr.supercore.heartbeat import HeartbeatSender
from flwr.supercore.run import RunNotRunningException
from flwr.supercore.task_identity import TaskIdentity
from flwr.supernode import fleet_http_connection, start_client_internal
from flwr.supernode import main as supernode_app
from flwr.supernode.cli.flower_supernode import flower_supernode
from flwr.supernode.nodestate.in_memory_nodestate import InMemoryNodeState

from fed_node.process import supernode

NUMBERS = count()


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(time, "sleep", found.append)
    monkeypatch.setattr(supernode, "heard", lambda: None)
    return found


def test_asks_again_at_once_where_the_question_was_kept_for_news(
    slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    pace = supernode.Pace()
    now[0] += 8  # the aggregator kept the question
    pace.sleep(3)
    assert slept == []
    pace.sleep(3)  # and this one it did not
    assert slept == [3]


def test_looks_often_after_a_message_and_slows_down(slept: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    pace = supernode.Pace()
    pace.sleep(0.5)  # Flower waits for a reply: there was a message
    pace.sleep(3)
    now[0] += supernode.ALERT_SECONDS + 1
    pace.sleep(3)
    pace.sleep(3)
    assert slept == [supernode.REPLY_POLL_SECONDS, supernode.ALERT_POLL_SECONDS, 3]


def test_flowers_loop_sleeps_through_its_own_name_for_time() -> None:
    """What `Pace` replaces must be there; a new version of Flower may change it."""
    assert vars(start_client_internal)["time"] is time


def _stored(state: InMemoryNodeState, message: Message) -> Message:
    message.metadata.__dict__["_message_id"] = f"message-{next(NUMBERS)}"
    state.record_message_processing_start(message.metadata.message_id)
    state.record_message_processing_end(message.metadata.message_id)
    state.store_message(message)
    return message


def test_a_reply_left_over_does_not_take_the_place_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 0, 0
    state, sent, rung = InMemoryNodeState(Mock()), list[str](), Event()
    asked = _stored(state, Message(RecordDict(), dst_node_id=1, message_type="query.ask"))
    _stored(state, Message(RecordDict(), reply_to=asked))
    state.delete_messages(message_ids=[asked.metadata.message_id])  # its confirmation failed: the SuperLink was away
    hello = _stored(state, Message(RecordDict(), dst_node_id=1, message_type="query.hello"))

    def send(message: Message, *_: object) -> tuple[set[str], str]:
        sent.append(message.metadata.message_type)
        if message.metadata.message_type == "query.ask":
            raise RunNotRunningException
        return set(), "session"

    def answer_meanwhile(_: float) -> None:  # Flower waits, and the ClientApp answers
        _stored(state, Message(RecordDict(), reply_to=hello))

    monkeypatch.setattr(time, "sleep", answer_meanwhile)
    push = vars(start_client_internal)["_push_messages"]
    supernode.push_all(push, rung.set, state, object_store=Mock(), send=send, push_object=Mock())
    assert sent == ["query.ask", "query.hello"]
    assert rung.is_set()
    assert not state.msg_store


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
    monkeypatch.setitem(vars(fleet_http_connection), "HeartbeatSender", HeartbeatSender)
    monkeypatch.setattr(supernode, "log_as_json", lambda: None)
    monkeypatch.setattr(supernode_app, "create_app", supernode_app.create_app)
    return started


def test_a_refused_node_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(supernode.ATTEMPT, "0")
    started = _ending(monkeypatch, 1)
    supernode.main()
    assert started[0][1:] == ["-m", "fed_node.process.supernode", "--superlink=x:1"]
    assert os.environ[supernode.ATTEMPT] == "1"


def test_an_orderly_end_ends_it(monkeypatch: pytest.MonkeyPatch, slept: list[float]) -> None:
    started = _ending(monkeypatch, 0)
    with pytest.raises(SystemExit):
        supernode.main()
    assert not started


def test_a_loop_that_gives_up_is_an_exit_and_not_a_silence() -> None:
    """An expired certificate made Flower's loop return, and the process hung for good behind an open port."""
    begun: list[object] = []
    with pytest.raises(SystemExit):
        supernode.until_the_end(lambda **settings: begun.append(settings))(server_address="x:1")
    assert begun == [{"server_address": "x:1"}]


def test_what_it_wraps_is_where_flower_looks_for_it() -> None:
    assert "start_client_internal" in vars(sys.modules[flower_supernode.__module__])
    assert vars(fleet_http_connection)["HeartbeatSender"] is HeartbeatSender


def test_an_answered_heartbeat_is_noted_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[int] = []
    monkeypatch.setattr(supernode, "heard", lambda: noted.append(1))
    assert not supernode.beating(lambda: False).heartbeat_fn()
    assert not noted
    assert supernode.beating(lambda: True).heartbeat_fn()
    assert noted
