"""The party as a Flower ClientApp. It only translates: the work is `Party.handle`."""

from __future__ import annotations

from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fed_node.guard import guard
from fed_node.party import party_at
from synth import wire

KINDS = ("hello", "keys", "ask", "open", "finish")

app = ClientApp(mods=[guard])


def handle(message: Message, context: Context) -> Message:
    """message → envelope → party → envelope → reply"""
    kind = message.metadata.message_type.partition(".")[2]
    party = party_at(Path(str(context.node_config["home"])))
    reply = party.handle(kind, wire.from_records(message.content))
    return Message(wire.to_records(reply), reply_to=message)


for kind in KINDS:
    app.query(kind)(handle)
