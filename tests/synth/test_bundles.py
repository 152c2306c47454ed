"""Several objects in one request arrive as they were, and the SuperLink does with each what it always did."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from flwr.proto.message_pb2 import PullObjectRequest, PullObjectResponse, PushObjectRequest, PushObjectResponse
from flwr.supercore.inflatable import inflatable_utils
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError, ObjectUnavailableError
from flwr.superlink.grid import http_grid
from flwr.supernode import start_client_internal
from hypothesis import given
from hypothesis import strategies as st

from aggregator.server.bundled_objects import HANDLERS, pulling, pushing
from synth.errors import ProtocolError
from synth.messages import bundles
from synth.messages.bundles import pack, pull_bundled, push_bundled, unpack


def named(*contents: bytes) -> dict[str, bytes]:
    return {hashlib.sha256(each).hexdigest(): each for each in contents}


@dataclass
class Store:
    """Flower's handlers, one object a call; and a client of them, bundled."""

    kept: dict[str, bytes] = field(default_factory=dict)
    requests: int = 0
    states: list[Any] = field(default_factory=list)

    def push_one(self, request: PushObjectRequest, state: str) -> PushObjectResponse:
        self.states.append((request.run_id, request.session_id, state))
        self.kept[request.object_id] = request.object_content
        return PushObjectResponse(stored=True)

    def pull_one(self, request: PullObjectRequest, state: str) -> PullObjectResponse:
        found = self.kept.get(request.object_id)
        return PullObjectResponse(
            object_found=found is not None, object_available=bool(found), object_content=found or b""
        )

    def push(self, name: str, content: bytes) -> None:
        self.requests += 1
        request = PushObjectRequest(object_id=name, object_content=content, run_id=7, session_id="s")
        assert pushing(self.push_one)(request, state="linkstate").stored

    def pull(self, name: str) -> bytes:
        self.requests += 1
        answer = pulling(self.pull_one)(PullObjectRequest(object_id=name), "linkstate")
        if not answer.object_found:
            raise ObjectPullError(name, "unknown")
        if not answer.object_available:
            raise ObjectUnavailableError(name)
        return bytes(answer.object_content)


@given(st.lists(st.binary(max_size=50), unique=True, max_size=6))
def test_a_bundle_is_what_was_packed(contents: list[bytes]) -> None:
    assert unpack(pack(named(*contents))) == named(*contents)


@given(st.binary(max_size=200))
def test_what_is_no_bundle_is_refused(junk: bytes) -> None:
    with suppress(ProtocolError):  # and nothing else
        unpack(junk)


def test_objects_of_a_message_cross_in_one_request_each_way() -> None:
    store, objects = Store(), named(b"message", b"records", b"record")
    push_bundled(objects.items(), store.push)
    assert store.kept == objects
    assert store.states == [(7, "s", "linkstate")] * 3
    assert pull_bundled(list(objects), store.pull, patience_seconds=1) == objects
    assert store.requests == 2


def test_what_does_not_fit_goes_in_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "PIECE_BYTES", 400)
    monkeypatch.setattr("aggregator.server.bundled_objects.PIECE_BYTES", 400)
    store, objects = Store(), named(b"a", b"x" * 300, b"y" * 300, b"z" * 500)
    push_bundled(objects.items(), store.push)
    assert (store.kept, store.requests) == (objects, 3)
    assert pull_bundled(list(objects), store.pull, patience_seconds=1) == objects
    assert store.requests == 6


def test_an_object_that_is_not_there_yet_is_waited_for_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    store, objects = Store(), named(b"first", b"second")
    store.kept = dict.fromkeys(objects, b"")

    def arrives(_: float) -> None:
        store.kept = objects

    monkeypatch.setattr(bundles.time, "sleep", arrives)
    assert pull_bundled(list(objects), store.pull, patience_seconds=1) == objects
    store.kept = dict.fromkeys(objects, b"")
    monkeypatch.setattr(bundles.time, "sleep", lambda _: None)
    with pytest.raises(ObjectPullError, match="in time"):
        pull_bundled(list(objects), store.pull, patience_seconds=0)


def test_an_unknown_object_and_one_nobody_asked_for_are_errors() -> None:
    objects = named(b"first", b"second")
    with pytest.raises(ObjectPullError):
        pull_bundled(list(objects), Store().pull, patience_seconds=1)
    with pytest.raises(ObjectPullError, match="other objects"):
        pull_bundled(list(objects), lambda _: pack(named(b"third")), patience_seconds=1)
    with pytest.raises(ObjectPullError, match="other objects"):
        pull_bundled(list(objects), lambda _: b"", patience_seconds=1)


@pytest.mark.parametrize("content", [b"", b"junk", pack(named(b"other", b"two"))])
def test_a_push_that_holds_other_objects_than_it_names_stores_nothing(content: bytes) -> None:
    store = Store()
    request = PushObjectRequest(object_id=bundles.BETWEEN.join(named(b"first", b"second")), object_content=content)
    assert not pushing(store.push_one)(request, "linkstate").stored
    assert not store.kept


def test_what_is_replaced_in_flower_is_there() -> None:
    """A new version of Flower may change it."""
    for module in (*HANDLERS,):
        assert {"pull_object", "push_object"} <= set(vars(module))
    for name in ("pull_objects", "push_object_contents_from_iterable"):
        assert name in vars(start_client_internal)
    assert "pull_objects" in vars(http_grid)
    assert "push_object_contents_from_iterable" in vars(inflatable_utils)
