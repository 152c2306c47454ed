"""The party's edge. Whatever goes wrong inside, only a fixed code goes out.

Flower would send `str(exception)` to the aggregator, and pandas puts cell values into its messages: a crash would
leak a record. This is the one place with a broad handler; the detail goes to the party's own log.
"""

from __future__ import annotations

import logging

from flwr.app import Context, Error, Message
from flwr.clientapp.typing import ClientAppCallable

from synth.errors import FedsynthError

log = logging.getLogger("fed_node")

REFUSED = 400  # Error.code of every refusal; its reason is "party/code", both fixed words


def guard(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """A Flower mod that wraps every handler of the party."""
    try:
        return call_next(message, context)
    except Exception as error:
        code = error.code if isinstance(error, FedsynthError) else "internal"
        log.exception("refused %s with code %s", message.metadata.message_type, code)
        party = context.node_config.get("party", "unnamed")
        return Message(Error(code=REFUSED, reason=f"{party}/{code}"), reply_to=message)
