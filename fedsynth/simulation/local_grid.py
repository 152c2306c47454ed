"""Flower's `Grid` on one machine: no ports, no Ray, but every message goes through Flower's own byte format.

Each party runs in a process of its own (several share one when there are more parties than cores), behind the same
ClientApp that a cluster starts, so what works here is what is deployed. A process that dies is reported as Flower
reports a dead node, and the next message starts a new one.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import cast

from flwr.app import Context, Error, Message, RecordDict
from flwr.common.constant import ErrorCode
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, no_object_id_recompute
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

RUN_ID = 1
SERVER_NODE = 0


@dataclass(frozen=True)
class Parcel:
    """A message as bytes: its objects by identifier, and which of them is the message."""

    root: str
    contents: dict[str, bytes]


def to_parcels(messages: Iterable[Message]) -> list[Parcel]:
    """Messages as bytes; records that several of them share are written once, as on a SuperLink."""
    parcels, written = [], dict[str, bytes]()
    with no_object_id_recompute():
        for message in messages:
            nested = get_all_nested_objects(message)
            written |= {name: item.deflate() for name, item in nested.items() if name not in written}
            parcels.append(Parcel(message.object_id, {name: written[name] for name in nested}))
    return parcels


def from_parcel(parcel: Parcel) -> Message:
    """The message again; as on a SuperLink, its identifier is that of its content."""
    message = cast(Message, inflate_object_from_contents(parcel.root, dict(parcel.contents)))
    message.metadata.__dict__["_message_id"] = parcel.root
    return message


class LocalGrid(Grid):
    """Parties in worker processes; node n is the n-th party, counted from 1."""

    def __init__(self, homes: dict[str, Path], processes: int) -> None:
        _identify(SERVER_NODE)
        self._parties = dict(enumerate(homes.items(), start=1))
        self._slots = max(1, min(processes, len(homes)))
        self._pools: dict[int, ProcessPoolExecutor] = {}
        self._waiting: dict[str, tuple[Message, Future[Parcel]]] = {}
        self._run = Run.create_empty(RUN_ID)

    def set_run(self, run: Run) -> None:
        self._run = run

    @property
    def run(self) -> Run:
        return self._run

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        return Message(content, dst_node_id=dst_node_id, message_type=message_type, group_id=group_id, ttl=ttl)

    def get_node_ids(self) -> Iterable[int]:
        return list(self._parties)

    def get_nodes(self) -> Iterable[NodeInfo]:
        return [NodeInfo(node_id=node, name=party) for node, (party, _) in self._parties.items()]

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        ids, asked = [], list(messages)
        for message, parcel in zip(asked, to_parcels(asked), strict=True):
            node = message.metadata.dst_node_id
            party, home = self._parties[node]
            with _no_main_module():
                future = self._pool(node).submit(_deliver, parcel, node, party, str(home))
            message.metadata.__dict__["_message_id"] = parcel.root
            self._waiting[parcel.root] = (message, future)
            ids.append(parcel.root)
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self._reply(i) for i in list(message_ids) if i in self._waiting and self._waiting[i][1].done()]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        ids = list(self.push_messages(messages))
        for message_id in ids:
            self._waiting[message_id][1].exception(timeout)
        return self.pull_messages(ids)

    def close(self) -> None:
        for pool in self._pools.values():
            pool.shutdown(wait=True, cancel_futures=True)
        self._pools.clear()

    def _pool(self, node: int) -> ProcessPoolExecutor:
        slot = node % self._slots
        if slot not in self._pools:
            context = multiprocessing.get_context("spawn")  # torch and threads do not survive a fork
            self._pools[slot] = ProcessPoolExecutor(1, mp_context=context, initializer=_start_party_process)
        return self._pools[slot]

    def _reply(self, message_id: str) -> Message:
        message, future = self._waiting.pop(message_id)
        try:
            return from_parcel(future.result())
        except BrokenProcessPool:
            self._pools.pop(message.metadata.dst_node_id % self._slots, None)
            return Message(Error(ErrorCode.NODE_UNAVAILABLE, "the party's process died"), reply_to=message)


@contextmanager
def _no_main_module() -> Iterator[None]:
    """A party's process runs our code only. Spawned as usual it would first run the caller's script again, which needs
    a guard (`if __name__ == "__main__"`) that no script of five lines has."""
    main = sys.modules["__main__"]
    kept = {name: vars(main).get(name) for name in ("__spec__", "__file__")}
    vars(main).update(dict.fromkeys(kept))
    try:
        yield
    finally:
        vars(main).update({name: value for name, value in kept.items() if value is not None})


def _identify(node: int) -> None:
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = RUN_ID, node, node


def _start_party_process() -> None:
    """One thread a party, so that parties share the cores fairly; Ctrl-C is for the aggregator to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"
    threading.Thread(target=_end_with_the_aggregator, daemon=True).start()


def _end_with_the_aggregator() -> None:
    """However it ended: a party that lives on would hold its ledger, and the run could not be resumed. What matters is
    on the disk before it leaves, so there is nothing to put in order."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)


def _deliver(parcel: Parcel, node: int, party: str, home: str) -> Parcel:
    """In the party's process: bytes → ClientApp → bytes."""
    from fed_node.process.client_app import app  # torch is loaded here, in the worker, not in the command line
    from fed_node.process.logs import log_party
    from fed_node.settings import LOG

    _identify(node)
    log_party(Path(home) / LOG)
    context = Context(RUN_ID, node, node_config={"home": home, "party": party}, state=RecordDict(), run_config={})
    return to_parcels([app(from_parcel(parcel), context)])[0]
