"""Flower's SuperLink: `python -m aggregator.server.superlink`, with Flower's own flags.

Four things are added. Its log is JSON lines. Several objects may come and go in one request (bundled_objects.py). Nodes
and runs that ask for messages are kept waiting until there may be some (synth/long_poll.py), which spares it most of
its work: every look is a signature to check and a visit to its database. And the layers that look at the operator's
requests alone are out of the way of all others, which are many.
"""

from __future__ import annotations

import logging
import sys

from flwr.superlink import main as superlink_app
from flwr.superlink.cli.flower_superlink import flower_superlink
from starlette.middleware import Middleware

from aggregator.server.bundled_objects import take_bundles
from synth.json_logs import log_as_json
from synth.long_poll import App, LongPoll, Question, Receive, Scope, Send

CONTROL = "/v1/control/"

# What is given to a node that was cut off while it waited is lost (and asked again, aggregator/sums/round_trip.py); so
# no question is kept for long. A run looks after absent parties meanwhile.
QUESTIONS = (
    Question("/v1/fleet/pull-messages", 8.0, frozenset({"/v1/runtime/push-object"}), b"flwr-public-key"),
    Question("/v1/runtime/pull-messages", 0.8, frozenset({"/v1/fleet/push-object"}), b"flwr-task-token"),
)


class ForControl:
    """A layer of Flower's that looks at the operator's requests only, and for all others is not even there."""

    def __init__(self, app: App, layer: Middleware) -> None:
        self.app, self.layered = app, layer.cls(app, *layer.args, **layer.kwargs)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        concerned = scope["type"] != "http" or str(scope["path"]).startswith(CONTROL)
        await (self.layered if concerned else self.app)(scope, receive, send)


def layers() -> list[Middleware]:
    """Flower's own, in their order."""
    return [
        Middleware(ForControl, layer) if getattr(layer.cls, "__name__", "").startswith("Control") else layer
        for layer in vars(superlink_app)["_flower_layers"]()
    ]


def main() -> None:
    log_as_json()
    logging.getLogger("uvicorn.access").setLevel(logging.WARNING)  # the edge's log has the requests
    unchanged = {"version": 1, "disable_existing_loggers": False, "incremental": True}
    vars(sys.modules[flower_superlink.__module__])["get_uvicorn_log_config"] = lambda _: unchanged
    vars(superlink_app)["_flower_layers"] = vars(superlink_app)["_get_middleware"]
    vars(superlink_app)["_get_middleware"] = layers
    take_bundles()
    create_app = superlink_app.create_app
    vars(superlink_app)["create_app"] = lambda *settings: LongPoll(create_app(*settings), *QUESTIONS)
    flower_superlink()


if __name__ == "__main__":
    main()
