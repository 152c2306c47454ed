"""Flower's `Grid`, asked again where it would give up: a SuperLink whose SQLite is busy answers 500 for a moment.

Pushing twice is safe: a party answers the same ask from its store. A look for replies is kept waiting by the SuperLink
until one came (aggregator/server/superlink.py); one that came back at once and empty is not repeated at once. The
pieces of a reply that was seen are looked for often: they are on their way.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

import httpx
from flwr.app import Message
from flwr.serverapp import Grid
from flwr.supercore.inflatable import inflatable_utils
from flwr.superlink.grid import http_grid

from aggregator.sums.exchange import Node
from synth.messages.bundles import pull_bundled, push_bundled

log = logging.getLogger("aggregator")
T = TypeVar("T")

PULL_SECONDS = 600.0  # for an answer's arrays to arrive after its envelope; Flower: two hours
PATIENCE_SECONDS = 60.0
AGAIN_SECONDS = 1.0
EMPTY_SECONDS = 0.1  # between looks that nobody kept waiting


class PatientGrid:
    """The part of `Grid` that an exchange uses."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        vars(http_grid)["pull_objects"] = partial(pull_bundled, patience_seconds=PULL_SECONDS)
        vars(inflatable_utils)["push_object_contents_from_iterable"] = push_bundled

    def get_nodes(self) -> Iterable[Node]:
        return _patiently(lambda: list(self.grid.get_nodes()))

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        waiting = list(messages)
        return _patiently(lambda: list(self.grid.push_messages(waiting)))

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        wanted, began = list(message_ids), time.monotonic()
        found = _patiently(lambda: list(self.grid.pull_messages(wanted)))
        if not found and time.monotonic() - began < EMPTY_SECONDS:
            time.sleep(EMPTY_SECONDS)
        return found


def _patiently(step: Callable[[], T]) -> T:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return step()
        except httpx.HTTPStatusError as error:
            if error.response.status_code < 500 or time.monotonic() > deadline:
                raise
            log.warning("the SuperLink answered %d; asking again", error.response.status_code)
            time.sleep(AGAIN_SECONDS)
