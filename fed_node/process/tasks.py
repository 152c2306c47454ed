"""Takes messages from the SuperNode, one at a time, and runs the code of this image on them. It never ends by itself.

It stands in for Flower's `flower-superexec` and `flwr-clientapp`. Those unpack the bundle that the aggregator sent,
import what is in it, and start a process for every message. Here the bundle is not even opened: whatever an aggregator
sends, a party runs its own ClientApp; and a message costs no start of a process.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from functools import partial

import httpx
from flwr.app import Context, Error, Message
from flwr.common.constant import ErrorCode, SubStatus
from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.heartbeat import HeartbeatSender, make_task_heartbeat_fn_http
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError, pull_and_inflate_object_from_tree
from flwr.supercore.interceptors import RuntimeTokenHttpInterceptor, RuntimeVersionHttpInterceptor
from flwr.supercore.protobuf.client import ProtobufClientInterceptor
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supernode.runtime import run_clientapp
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output

from fed_node.process import logs
from fed_node.process.client_app import app

log = logging.getLogger("fed_node")

IDLE_POLL_SECONDS = 0.3  # after a question that the SuperNode did not keep until there was a task
PULL_SECONDS = 120.0  # for a message's arrays to arrive after its envelope
PULL_POLL_SECONDS = 0.05  # Flower: 1, then 2, 4, 8
AWAY_SECONDS = 1.0  # between attempts while the SuperNode is not there


def serve(address: str) -> None:
    """Ask the SuperNode for tasks, for ever."""
    runtime, away = _runtime(address), False
    while True:
        began = time.monotonic()
        try:
            given = runtime.AcquireTask(AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP]))
            away = False
            if given.token:
                carry_out(_runtime(address, RuntimeTokenHttpInterceptor(given.token)))
            elif time.monotonic() - began < IDLE_POLL_SECONDS:
                time.sleep(IDLE_POLL_SECONDS)
        except ObjectPullError:  # the aggregator went away in the middle; Flower would wait two hours
            log.warning("a message never arrived as a whole and was given up")
        except httpx.HTTPError as error:  # it restarts; Flower gives the task up by itself
            if not away:
                log.info("the SuperNode is away (%s); waiting for it", type(error).__name__)
            away = True
            time.sleep(AWAY_SECONDS)


def carry_out(runtime: RuntimeHttpClient) -> None:
    """One task: message → ClientApp → reply."""
    heartbeat = HeartbeatSender(make_task_heartbeat_fn_http(runtime))
    heartbeat.start()
    try:
        message, context, _, _ = pull_task_input(runtime)
        push_message(runtime, answered(message, context), context)
        push_task_output(runtime, context, SubStatus.COMPLETED, "")
    finally:
        heartbeat.stop()
        runtime.close()


def answered(message: Message, context: Context) -> Message:
    """The ClientApp's reply. Its guard catches what its handlers raise; a type without a handler is refused here."""
    try:
        return app(message, context)
    except ValueError:
        log.warning("a message of an unknown type was refused")
        return Message(Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, "unknown type of message"), reply_to=message)


def _runtime(address: str, *interceptors: ProtobufClientInterceptor) -> RuntimeHttpClient:
    version = RuntimeVersionHttpInterceptor(component_name="flwr-clientapp")
    return RuntimeHttpClient.from_server_address(
        server_address=address, insecure=True, root_certificates=None, interceptors=[version, *interceptors]
    )


def pull_with_less_patience() -> None:
    """A task is handed out before its arrays are there: look for them often, and not for ever."""
    vars(run_clientapp)["pull_and_inflate_object_from_tree"] = partial(
        pull_and_inflate_object_from_tree,
        max_time=PULL_SECONDS,
        max_tries_per_object=None,
        initial_backoff=PULL_POLL_SECONDS,
        backoff_cap=1.0,
    )


def main() -> None:
    """`python -m fed_node.process.tasks HOST:PORT`, beside a SuperNode on loopback."""
    pull_with_less_patience()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    logs.log_client()
    serve(sys.argv[1])


if __name__ == "__main__":
    main()
