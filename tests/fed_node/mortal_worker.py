"""A worker that kills itself with SIGKILL when it crosses a given boundary for the n-th time. For tests only.

The boundaries are put around the production code's own methods here, so that the code itself needs no hooks. What it
begins to compute is noted in a file first: an account of releases that does not depend on the ledger.
"""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from fed_node.answers import AnswerStore
from fed_node.ledger.ledger import Ledger
from fed_node.process import worker as worker_module
from fed_node.process.worker import serve
from fed_node.seal.seal import Seal
from synth.statistics.histograms import StatisticsInquiry
from synth.statistics.mixture_rounds import statistics_inquiry
from tests.fed_node.two_parties import CheapTraining, small_plan

BOUNDARIES = (
    "before charge",
    "after charge",
    "during compute",
    "after compute",
    "after store",
    "before note",
    "after note",
    "before seal",
    "before send",
    "half sent",
    "after send",
)

statistics_inquiry(small_plan())  # calibrated once, in the process that all workers are forked from


class Fate:
    """Dies at the n-th crossing of one boundary."""

    def __init__(self, boundary: str, crossings: int) -> None:
        self.boundary, self.left = boundary, crossings

    def cross(self, boundary: str) -> None:
        if boundary == self.boundary:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def serve_mortally(home: Path, socket: Path, boundary: str, crossings: int) -> None:
    """The process's target."""
    fate, computed = Fate(boundary, crossings), home / "computed"
    with mock.patch("synth.programme.build", CheapTraining):
        for owner, name, before, after in (
            (Ledger, "charge", "before charge", "after charge"),
            (AnswerStore, "put", "after compute", "after store"),
            (Ledger, "answer", "before note", "after note"),
            (Seal, "seal", "before seal", "before send"),
        ):
            setattr(owner, name, _between(fate, before, after, getattr(owner, name)))
        for inquiry in (CheapTraining, StatisticsInquiry):
            inquiry.answer = _noted(fate, computed, inquiry.answer)  # type: ignore[method-assign]
        worker_module.send_reply = _mortal_send(fate, worker_module.send_reply)  # type: ignore[attr-defined]
        serve(home, socket)


def _between(fate: Fate, before: str, after: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def crossing(*args: Any, **kwargs: Any) -> Any:
        fate.cross(before)
        result = method(*args, **kwargs)
        fate.cross(after)
        return result

    return crossing


def _noted(fate: Fate, computed: Path, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def answer(self: Any, ask: Any, *args: Any) -> Any:
        note = os.open(computed, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(note, f"{ask.options['phase']} {ask.options.get('round', 0)}\n".encode())
        os.close(note)
        fate.cross("during compute")
        return method(self, ask, *args)

    return answer


def _mortal_send(fate: Fate, send: Callable[..., None]) -> Callable[..., None]:
    def send_reply(connection: Any, reply: Any) -> None:
        send(_Halving(connection, fate), reply)
        fate.cross("after send")

    return send_reply


class _Halving:
    """A connection that may die with half of the frame on the wire."""

    def __init__(self, connection: Any, fate: Fate) -> None:
        self.connection, self.fate = connection, fate

    def sendall(self, content: bytes) -> None:
        self.connection.sendall(content[: len(content) // 2])
        self.fate.cross("half sent")
        self.connection.sendall(content[len(content) // 2 :])
