"""A message whose arrays never come must not keep a party from the next one."""

from __future__ import annotations

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
