"""The party as a Flower ClientApp. It only carries messages to where the party lives, so it starts fast.

In production that is the resident worker's socket (`socket` in the node's configuration, or FEDSYNTH_SOCKET). In a
simulation there is no worker: the party of `home` lives in this process, and only then its code is imported.
"""

from __future__ import annotations

import os
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fed_node.guard import guard
from fed_node.process import logs
from fed_node.process.frames import KINDS, Request
from fed_node.process.worker_client import ask_worker
from synth.errors import InputError
from synth.messages import wire
from synth.messages.wire import Envelope

app = ClientApp(mods=[guard])


def handle(message: Message, context: Context) -> Message:
    """message → envelope → party → envelope → reply"""
    kind = message.metadata.message_type.partition(".")[2]
    request = Request(kind, wire.from_records(message.content))
    home = context.node_config.get("home")
    reply = _ask_here(Path(str(home)), request) if home else _ask_worker(context, request)
    return Message(wire.to_records(reply), reply_to=message)


def _ask_worker(context: Context, request: Request) -> Envelope:
    logs.log_client()
    socket = context.node_config.get("socket") or os.environ.get("FEDSYNTH_SOCKET")
    if not socket:
        raise InputError("this node names no worker; set FEDSYNTH_SOCKET to the socket of `fedsynth node serve`.")
    return ask_worker(Path(str(socket)), request)


def _ask_here(home: Path, request: Request) -> Envelope:
    from fed_node.party import party_at

    return party_at(home).handle(request.kind, request.envelope)


for kind in KINDS:
    app.query(kind)(handle)
