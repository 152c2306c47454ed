"""Whoever asks a server for news waits there until there is some: fewer questions, and no answer late.

Flower's nodes, tasks and runs ask again and again whether something has come. Every look costs signatures and a visit
to a database, and news waits for the next look. As ASGI middleware this keeps a question back until there was news, or
for so many seconds, and then passes it on as it is: nothing is decided here, and without it all goes on, only slower.

A question whose asker has gone meanwhile is not passed on: what it would be given would be lost.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_ASKERS = 4096  # remembered; beyond, all are forgotten, which costs each one look
GONE = "http.disconnect"


@dataclass(frozen=True)
class Question:
    """A path that is asked for news."""

    path: str
    seconds: float  # at most kept back
    told_by: frozenset[str] = frozenset()  # paths: what is brought there is news here
    asker: bytes = b""  # the header that tells who asks


class LongPoll:
    """An app with some questions kept back. `tell` is for news that comes by other ways than requests."""

    def __init__(self, app: App, *questions: Question) -> None:
        self.app, self.questions = app, {each.path: each for each in questions}
        self.news: Counter[str] = Counter()  # by question
        self.coming: Counter[str] = Counter()  # requests under way that bring news; the last of them tells
        self.seen: dict[tuple[str, bytes], int] = {}  # what an asker knew when it asked last
        self._bell = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._loop = self._loop or asyncio.get_running_loop()
        path = str(scope.get("path", ""))
        if (question := self.questions.get(path)) is not None:
            body = await receive()  # a question fits into one piece; what does not is passed on at once
            waited = body.get("more_body") or await self._wait(question, _asker(scope, question.asker), receive)
            if waited:
                await self.app(scope, _again(body, receive), send)
            return
        told = [each.path for each in self.questions.values() if path in each.told_by]
        self.coming.update(told)
        try:
            await self.app(scope, receive, send)
        finally:
            self.coming.subtract(told)
            self._ring([each for each in told if not self.coming[each]])

    def tell(self, path: str) -> None:
        """There is news for this question; from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._ring, [path])

    def _ring(self, paths: list[str]) -> None:
        if paths:
            self.news.update(paths)
            self._bell.set()
            self._bell = asyncio.Event()

    async def _wait(self, question: Question, asker: bytes, receive: Receive) -> bool:
        """For news that this asker has not seen; False: it has gone."""
        key, gone = (question.path, asker), asyncio.ensure_future(receive())
        deadline = asyncio.get_running_loop().time() + question.seconds
        try:
            while self.seen.get(key) == self.news[question.path] and not gone.done():
                left = deadline - asyncio.get_running_loop().time()
                if left <= 0:
                    break
                bell = asyncio.ensure_future(self._bell.wait())
                await asyncio.wait([bell, gone], timeout=left, return_when=asyncio.FIRST_COMPLETED)
                bell.cancel()
        finally:
            gone.cancel()
        if len(self.seen) > MOST_ASKERS:
            self.seen.clear()
        self.seen[key] = self.news[question.path]
        return not (gone.done() and not gone.cancelled() and gone.result()["type"] == GONE)


def _asker(scope: Scope, header: bytes) -> bytes:
    return next((value for name, value in scope["headers"] if name.lower() == header), b"")


def _again(body: Event, receive: Receive) -> Receive:
    """The body that was read already, then whatever comes."""
    read = [body]

    async def replay() -> Event:
        return read.pop() if read else await receive()

    return replay
