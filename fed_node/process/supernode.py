"""Flower's SuperNode with three manners it lacks: it waits when the aggregator still holds its predecessor, it looks
for messages and their arrays often while a run is going on, and it sends every reply before it asks for more.

A SuperNode that is killed and starts again is refused until its heartbeat of old lapses, about a minute, and exits;
Kubernetes would then wait longer and longer between restarts. So this process starts itself again, a limited number of
times. Between messages Flower sleeps three seconds, fixed in its code; after each message that is shortened. And when
the aggregator dies while a message is confirmed, its reply is left over: Flower sends it in place of the next one,
which then waits for a message that never comes.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial

from flwr.supercore.inflatable.inflatable_utils import pull_objects
from flwr.supernode import start_client_internal
from flwr.supernode.cli.flower_supernode import flower_supernode
from flwr.supernode.nodestate.in_memory_nodestate import InMemoryNodeState

ATTEMPT = "FEDSYNTH_SUPERNODE_ATTEMPT"
MOST_ATTEMPTS = 30
RETRY_SECONDS = 4.0
GOOD_START_SECONDS = 300.0  # after so long a life, attempts are counted anew
ALERT_SECONDS = 60.0  # after a message, the next one is expected for so long
ALERT_POLL_SECONDS = 0.2
REPLY_POLL_SECONDS = 0.05
PULL_SECONDS = 120.0  # for a message's arrays to be there after its envelope; Flower: two hours


class Pace:
    """What Flower's loop knows as `time`: its long sleeps are for want of messages, its short ones for a reply."""

    def __init__(self) -> None:
        self.alert_until = 0.0

    def sleep(self, seconds: float) -> None:
        if seconds < 1:
            self.alert_until = time.monotonic() + ALERT_SECONDS
            time.sleep(min(seconds, REPLY_POLL_SECONDS))
        elif time.monotonic() < self.alert_until:
            time.sleep(ALERT_POLL_SECONDS)
        else:
            time.sleep(seconds)


def push_all(push: Callable[..., None], state: InMemoryNodeState, **connection: object) -> None:
    """Push replies, a first one in any case, until no message is left without."""
    push(state=state, **connection)
    while _is_reply_due(state):
        push(state=state, **connection)


def _is_reply_due(state: InMemoryNodeState) -> bool:
    """A message leaves the state with its reply."""
    with state.lock_msg_store:
        return any(not entry.message.metadata.reply_to_message_id for entry in state.msg_store.values())


def main() -> None:
    """`python -m fed_node.process.supernode`, with the flags of `flower-supernode`."""
    vars(start_client_internal)["time"] = Pace()
    vars(start_client_internal)["pull_objects"] = partial(
        pull_objects,
        initial_backoff=REPLY_POLL_SECONDS,
        backoff_cap=1.0,
        max_tries_per_object=None,
        max_time=PULL_SECONDS,
    )
    vars(start_client_internal)["_push_messages"] = partial(push_all, vars(start_client_internal)["_push_messages"])
    attempt, began = int(os.environ.get(ATTEMPT, "0")), time.monotonic()
    if attempt:
        time.sleep(RETRY_SECONDS)
    try:
        flower_supernode()
    except SystemExit as end:
        if time.monotonic() - began > GOOD_START_SECONDS:
            attempt = 0
        if not end.code or attempt >= MOST_ATTEMPTS:
            raise
        os.environ[ATTEMPT] = str(attempt + 1)
        os.execv(sys.executable, [sys.executable, "-m", "fed_node.process.supernode", *sys.argv[1:]])


if __name__ == "__main__":
    main()
