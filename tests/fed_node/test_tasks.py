"""A message whose arrays never come must not keep a party from the next one."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest
from flwr.proto.message_pb2 import ObjectTree
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError, ObjectUnavailableError
from flwr.supernode.runtime import run_clientapp

from fed_node.process import tasks


def test_arrays_that_never_come_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_clientapp, "pull_and_inflate_object_from_tree", None)
    monkeypatch.setattr(tasks, "PULL_SECONDS", 0.2)
    tasks.pull_with_less_patience()

    def never(name: str) -> bytes:
        raise ObjectUnavailableError(name)

    with pytest.raises(ObjectPullError):
        vars(run_clientapp)["pull_and_inflate_object_from_tree"](ObjectTree(object_id="x"), never, lambda _: None)


def test_the_bundle_is_never_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an aggregator sends beside a message, a party runs the ClientApp of its own image."""

    class Bundle:
        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"somebody looked at the bundle's {name}")

    asked: list[object] = []
    replies: list[object] = []
    monkeypatch.setattr(tasks, "HeartbeatSender", MagicMock())
    monkeypatch.setattr(tasks, "make_task_heartbeat_fn_http", MagicMock())
    monkeypatch.setattr(tasks, "pull_task_input", lambda runtime: ("message", "context", Bundle(), Bundle()))
    monkeypatch.setattr(tasks, "app", lambda message, context: asked.append((message, context)) or "reply")
    monkeypatch.setattr(tasks, "push_message", lambda runtime, reply, context: replies.append(reply))
    monkeypatch.setattr(tasks, "push_task_output", MagicMock())
    tasks.carry_out(MagicMock())
    assert asked == [("message", "context")]
    assert replies == ["reply"]
