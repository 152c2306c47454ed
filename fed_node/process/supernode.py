"""Flower's SuperNode with manners it lacks: it waits when the aggregator still holds its predecessor, it asks for
the next message at once, its own tasks wait for one without asking, and it sends every reply before it asks for more.

A SuperNode that is killed and starts again is refused until its heartbeat of old lapses, about a minute, and exits;
Kubernetes would then wait longer and longer between restarts. So this process starts itself again, for as long as it
takes; the same when Flower gives a connection up. Between messages Flower sleeps three seconds, fixed in its code;
here it asks again at once where the aggregator kept the question until there was news. And when the aggregator dies
while a message is confirmed, its reply is left over: Flower sends it in place of the next one, which then waits for a
message that never comes.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from flwr.supercore.heartbeat import HeartbeatSender
from flwr.supernode import fleet_http_connection, start_client_internal
from flwr.supernode import main as supernode_app
from flwr.supernode.cli.flower_supernode import flower_supernode
from flwr.supernode.nodestate.in_memory_nodestate import InMemoryNodeState

from synth.json_logs import log_as_json
from synth.long_poll import LongPoll, Question
from synth.messages.bundles import pull_bundled, push_bundled

log = logging.getLogger("flwr")
ATTEMPT = "FEDSYNTH_SUPERNODE_ATTEMPT"
RETRY_SECONDS = 4.0
GAVE_UP = 1
MODULE = flower_supernode.__module__  # where Flower begins its loop
HEARD = Path("/tmp/heard")  # touched whenever the aggregator answered
ALERT_SECONDS = 60.0  # after a message, the next one is expected for so long
ALERT_POLL_SECONDS = 0.05
KEPT_SECONDS = 1.0  # a question that was answered no sooner was kept for news
REPLY_POLL_SECONDS = 0.01  # in this process's own memory
TASK = Question("/v1/runtime/acquire-task", 5.0)
PULL_SECONDS = 120.0  # for a message's arrays to be there after its envelope; Flower: two hours


class Pace:
    """What Flower's loop knows as `time`: its long sleeps are for want of messages, its short ones for a reply."""

    def __init__(self) -> None:
        self.last_message = -ALERT_SECONDS
        self.slept = time.monotonic()

    def sleep(self, seconds: float) -> None:
        if seconds < 1:
            self.last_message = time.monotonic()
            time.sleep(min(seconds, REPLY_POLL_SECONDS))
            return
        heard()  # Flower sleeps so long when it asked for messages and there were none
        now = time.monotonic()
        if now - max(self.slept, self.last_message) < KEPT_SECONDS:
            time.sleep(ALERT_POLL_SECONDS if now - self.last_message < ALERT_SECONDS else seconds)
        self.slept = time.monotonic()


def push_all(push: Callable[..., None], tell: Callable[[], None], state: InMemoryNodeState, **rest: object) -> None:
    """A message is here as a whole: say so, then push replies, a first one in any case, until none is due."""
    tell()
    push(state=state, **rest)
    while _is_reply_due(state):
        push(state=state, **rest)


def _is_reply_due(state: InMemoryNodeState) -> bool:
    """A message leaves the state with its reply."""
    with state.lock_msg_store:
        return any(not entry.message.metadata.reply_to_message_id for entry in state.msg_store.values())


def heard(path: Path = HEARD) -> None:
    """The aggregator answered: for the readiness probe, which looks at the file's age."""
    path.touch()


def beating(heartbeat: Callable[[], bool]) -> HeartbeatSender:
    """Flower's heartbeat, noted when it was answered."""

    def noted() -> bool:
        answered = heartbeat()
        if answered:
            heard()
        return answered

    return HeartbeatSender(noted)


def until_the_end(start: Callable[..., None]) -> Callable[..., None]:
    """Flower's loop, which returns when it gives up on a connection (a certificate that has ended, say); the process
    would then hang for good. An end is an exit, and an exit a new start."""

    def loop(**settings: object) -> None:
        start(**settings)
        log.error("the SuperNode gave up on its connection to the aggregator; starting anew")
        raise SystemExit(GAVE_UP)

    return loop


def hold_tasks() -> Callable[[], None]:
    """Let whoever asks this process for a task wait until there is one; the bell to ring then."""
    create_app, held = supernode_app.create_app, list[LongPoll]()

    def create(**settings: Any) -> LongPoll:
        held.append(LongPoll(create_app(**settings), TASK))
        return held[0]

    vars(supernode_app)["create_app"] = create
    return lambda: held[0].tell(TASK.path)


def main() -> None:
    """`python -m fed_node.process.supernode`, with the flags of `flower-supernode`."""
    log_as_json()
    vars(start_client_internal)["time"] = Pace()
    loop = vars(start_client_internal)
    loop["pull_objects"] = partial(pull_bundled, patience_seconds=PULL_SECONDS)
    loop["push_object_contents_from_iterable"] = push_bundled
    loop["_push_messages"] = partial(push_all, loop["_push_messages"], hold_tasks())
    vars(fleet_http_connection)["HeartbeatSender"] = beating
    starting = vars(sys.modules[MODULE])
    starting["start_client_internal"] = until_the_end(starting["start_client_internal"])
    attempt = int(os.environ.get(ATTEMPT, "0"))
    if attempt:
        time.sleep(RETRY_SECONDS)
    try:
        flower_supernode()
    except SystemExit as end:
        if not end.code:
            raise
        os.environ[ATTEMPT] = str(attempt + 1)
        os.execv(sys.executable, [sys.executable, "-m", "fed_node.process.supernode", *sys.argv[1:]])


if __name__ == "__main__":
    main()
