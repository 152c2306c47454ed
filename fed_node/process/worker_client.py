"""The worker as the ClientApp sees it: one message over its socket, and patience while it restarts.

Flower starts a new process for every message, so this end imports as little as it can. Sending a message twice is
safe: the worker answers what it answered before. So a worker that went away in the middle is simply asked again.
"""

from __future__ import annotations

import socket
import time
from pathlib import Path

from fed_node.guard import Refused
from fed_node.process.frames import PING, Hangup, Request, receive_reply, send_request
from fed_node.process.socket_name import socket_name
from synth.errors import FedsynthError
from synth.interface import Scalar
from synth.messages.wire import Envelope

PATIENCE_SECONDS = 120.0  # for a worker to come up: images are loaded, tables are large
PING_SECONDS = 5.0
POLL_SECONDS = 0.02
MOST_HANGUPS = 3  # a message that kills the worker each time is given up


class WorkerAway(FedsynthError):
    code = "worker-away"
    exit_code = 4


class WorkerRefused(FedsynthError):
    """The worker said no; its reason in words is in its own log."""

    def __init__(self, code: str) -> None:
        super().__init__(f"the worker refused with code '{code}'; its log says why")
        self.code = code


def ask_worker(path: Path, request: Request, patience_seconds: float = PATIENCE_SECONDS) -> Envelope:
    """The worker's answer, however long it computes."""
    for _ in range(MOST_HANGUPS):
        with _connected(path, patience_seconds) as connection:
            try:
                send_request(connection, request)
                reply = receive_reply(connection)
            except (Hangup, OSError):
                continue
        if isinstance(reply, Refused):
            raise WorkerRefused(reply.code)
        return reply
    raise WorkerAway(f"the worker at {path} went away {MOST_HANGUPS} times over one message; see its log.")


def ping(path: Path) -> dict[str, Scalar]:
    """Who serves there: `party`, `version` and whether it is `busy`."""
    return ask_worker(path, Request(PING), PING_SECONDS).options


def _connected(path: Path, patience_seconds: float) -> socket.socket:
    deadline = time.monotonic() + patience_seconds
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with socket_name(path) as name:
                connection.connect(name)
            return connection
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            if time.monotonic() > deadline:
                raise WorkerAway(f"nobody serves at {path}; start it with `fedsynth node serve`.") from None
            time.sleep(POLL_SECONDS)
        except OSError as error:
            connection.close()
            raise WorkerAway(f"the worker's socket {path} cannot be used: {error.strerror}.") from None
