"""The party's edge. Whatever goes wrong inside, only a fixed code goes out.

Flower would send `str(exception)` to the aggregator, and pandas puts cell values into its messages: a crash would
leak a record. `attempt` is the one place with a broad handler; the detail goes to the party's own log. It stands
around the worker's work, and once more, as a Flower mod, around the ClientApp.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from flwr.app import Context, Error, Message
from flwr.clientapp.typing import ClientAppCallable

from synth.errors import FedsynthError

log = logging.getLogger("fed_node")
T = TypeVar("T")

REFUSED = 400  # Error.code of every refusal; its reason is "party/code", both fixed words


@dataclass(frozen=True)
class Refused:
    """All that anybody outside learns of a failure."""

    code: str


def attempt(kind: str, call: Callable[[], T]) -> T | Refused:
    """The result, or a fixed code."""
    try:
        return call()
    except Exception as error:
        code = error.code if isinstance(error, FedsynthError) else "internal"
        log.exception("refused %s with code %s", kind, code, extra={"kind": kind, "code": code})
        return Refused(code)


def guard(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """A Flower mod that wraps every handler of the party."""
    outcome = attempt(message.metadata.message_type, lambda: call_next(message, context))
    if isinstance(outcome, Message):
        return outcome
    party = context.node_config.get("party", "unnamed")
    return Message(Error(code=REFUSED, reason=f"{party}/{outcome.code}"), reply_to=message)
