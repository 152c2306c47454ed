"""What the thin ClientApp and the resident worker say to each other over a Unix socket of one machine.

A frame is a length and that many bytes: an archive (arrays and JSON, no pickle). A request names a kind of message and
holds its envelope; a reply holds an envelope, or the fixed code of a refusal.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass, field
from typing import Any

from fed_node.guard import Refused
from synth.errors import InputError, ProtocolError
from synth.messages import archive
from synth.messages.wire import Envelope

KINDS = ("hello", "keys", "letters", "ask", "confirm", "open", "finish")  # what the aggregator may say
PING = "ping"  # the one kind that is about the worker itself
LARGEST_FRAME_BYTES = 1 << 32  # far beyond any model; a length beyond it is no length
_LENGTH = struct.Struct(">Q")
_CHUNK_BYTES = 1 << 20


class Hangup(ProtocolError):
    """The other end went away before its message was complete."""

    code = "worker-away"


@dataclass(frozen=True)
class Request:
    kind: str
    envelope: Envelope = field(default_factory=Envelope)


def send_request(connection: socket.socket, request: Request) -> None:
    _send(connection, request.envelope, {"kind": request.kind})


def receive_request(connection: socket.socket) -> Request:
    envelope, meta = _receive(connection)
    if not isinstance(kind := meta.get("kind"), str):
        raise ProtocolError("a request must name its kind of message")
    return Request(kind, envelope)


def send_reply(connection: socket.socket, reply: Envelope | Refused) -> None:
    if isinstance(reply, Refused):
        _send(connection, Envelope(), {"refused": reply.code})
    else:
        _send(connection, reply, {})


def receive_reply(connection: socket.socket) -> Envelope | Refused:
    envelope, meta = _receive(connection)
    return Refused(str(meta["refused"])) if "refused" in meta else envelope


def _send(connection: socket.socket, envelope: Envelope, meta: dict[str, Any]) -> None:
    arrays = {str(place): array for place, array in enumerate(envelope.arrays.values())}  # names are free text
    try:
        content = archive.pack(arrays, meta | {"names": list(envelope.arrays), "options": envelope.options})
    except ValueError:
        raise ProtocolError("a message holds an option that is no finite number, or an array of objects") from None
    connection.sendall(_LENGTH.pack(len(content)) + content)


def _receive(connection: socket.socket) -> tuple[Envelope, dict[str, Any]]:
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    if length > LARGEST_FRAME_BYTES:
        raise ProtocolError("a frame is longer than any message; the other end speaks another protocol")
    try:
        arrays, meta = archive.unpack(_exactly(connection, length), "a message between ClientApp and worker")
        named = {name: arrays[str(place)] for place, name in enumerate(meta["names"])}
        return Envelope(named, meta["options"]), meta
    except (InputError, KeyError, TypeError, ValueError):
        raise ProtocolError("a frame cannot be read; ClientApp and worker must run the same version") from None


def _exactly(connection: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        chunk = connection.recv(min(_CHUNK_BYTES, count - len(received)))
        if not chunk:
            raise Hangup("the other end of the worker's socket went away")
        received += chunk
    return bytes(received)
