"""The SuperLink's end of requests that name several objects (synth/messages/bundles.py): taken apart, and each object
handed to Flower's own handler, which looks at the same node, run and session for it as ever."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from flwr.proto.message_pb2 import PullObjectRequest, PullObjectResponse, PushObjectRequest, PushObjectResponse
from flwr.superlink.servicer.fleet import fleet_handlers
from flwr.superlink.servicer.runtime import runtime_handlers

from synth.errors import ProtocolError
from synth.messages.bundles import BETWEEN, MOST_OBJECTS, pack, unpack
from synth.messages.wire import PIECE_BYTES

Pull = Callable[..., PullObjectResponse]
Push = Callable[..., PushObjectResponse]
HANDLERS: tuple[ModuleType, ...] = (fleet_handlers, runtime_handlers)


def take_bundles() -> None:
    """Let nodes and runs push and pull several objects at once."""
    for handlers in HANDLERS:
        vars(handlers)["pull_object"] = pulling(vars(handlers)["pull_object"])
        vars(handlers)["push_object"] = pushing(vars(handlers)["push_object"])


def pulling(pull: Pull) -> Pull:
    def handler(request: PullObjectRequest, *state: Any, **named: Any) -> PullObjectResponse:
        """As many of the objects as are there and fit, in their order; at least one, or none is available."""
        names = request.object_id.split(BETWEEN)[:MOST_OBJECTS]
        if len(names) == 1:
            return pull(request, *state, **named)
        found: dict[str, bytes] = {}
        for name in names:
            one = PullObjectRequest(node=request.node, run_id=request.run_id, object_id=name)
            answer = pull(one, *state, **named)
            if not answer.object_found:
                return answer
            if not answer.object_available:
                break
            if found and sum(map(len, found.values())) + len(answer.object_content) > PIECE_BYTES:
                break
            found[name] = answer.object_content
        return PullObjectResponse(object_found=True, object_available=bool(found), object_content=pack(found))

    return handler


def pushing(push: Push) -> Push:
    def handler(request: PushObjectRequest, *state: Any, **named: Any) -> PushObjectResponse:
        names = request.object_id.split(BETWEEN)
        if len(names) == 1:
            return push(request, *state, **named)
        try:
            objects = unpack(request.object_content)
        except ProtocolError:
            objects = {}
        if list(objects) != names or len(names) > MOST_OBJECTS:
            return PushObjectResponse(stored=False)
        stored = []
        for name, content in objects.items():
            one = PushObjectRequest(
                node=request.node,
                run_id=request.run_id,
                session_id=request.session_id,
                object_id=name,
                object_content=content,
            )
            stored.append(push(one, *state, **named).stored)
        return PushObjectResponse(stored=all(stored))

    return handler
