"""A question is kept until there is news for its asker, is never lost for it, and is not asked for one who has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from threading import Thread
from typing import Any

import pytest

from synth import long_poll
from synth.long_poll import LongPoll, Question, Receive, Scope, Send

PULL, PUSH = "/pull", "/push"


class Server:
    """An app that notes what reached it, behind a `LongPoll`."""

    def __init__(self, seconds: float = 60.0) -> None:
        self.reached: list[tuple[str, bytes]] = []
        self.held = LongPoll(self.app, Question(PULL, seconds, frozenset({PUSH}), b"who"))

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await receive()
        self.reached.append((scope["path"], body["body"]))
        await send({"type": "http.response.start"})

    async def ask(self, path: str, who: bytes = b"a", gone: asyncio.Event | None = None, more: bool = False) -> bool:
        """Whether the request was answered."""
        parts: list[dict[str, Any]] = [{"type": "http.request", "body": who, "more_body": more}]
        sent: list[Any] = []

        async def receive() -> Any:
            if parts:
                return parts.pop()
            await (gone or asyncio.Event()).wait()
            return {"type": "http.disconnect"}

        async def send(event: Any) -> None:
            sent.append(event)

        await self.held({"type": "http", "path": path, "headers": [(b"who", who)]}, receive, send)
        return bool(sent)


def in_a_loop(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 20))  # type: ignore[arg-type]


async def is_kept(question: asyncio.Task[bool]) -> bool:
    for _ in range(20):
        await asyncio.sleep(0)
    return not question.done()


def test_a_question_waits_for_news_and_then_goes_through() -> None:
    async def story() -> None:
        server = Server()
        await server.ask(PULL)  # the first one is never kept: nobody knows what its asker knows
        question = asyncio.create_task(server.ask(PULL))
        assert await is_kept(question)
        await server.ask(PUSH)
        assert await question
        assert [path for path, _ in server.reached] == [PULL, PUSH, PULL]

    in_a_loop(story)


def test_news_between_two_questions_is_not_missed_and_every_asker_hears_it() -> None:
    async def story() -> None:
        server = Server()
        for who in (b"a", b"b"):
            await server.ask(PULL, who)
        await server.ask(PUSH)
        assert await server.ask(PULL, b"a")
        assert await server.ask(PULL, b"b")
        assert await is_kept(asyncio.create_task(server.ask(PULL, b"a")))

    in_a_loop(story)


def test_without_news_a_question_goes_through_in_the_end() -> None:
    async def story() -> None:
        server = Server(seconds=0.01)
        await server.ask(PULL)
        assert await server.ask(PULL)

    in_a_loop(story)


def test_a_question_whose_asker_has_gone_is_not_asked() -> None:
    """What it would be given would be lost with it."""

    async def story() -> None:
        server, gone = Server(), asyncio.Event()
        await server.ask(PULL)
        question = asyncio.create_task(server.ask(PULL, gone=gone))
        assert await is_kept(question)
        gone.set()
        assert not await question
        assert len(server.reached) == 1

    in_a_loop(story)


def test_news_is_told_when_the_last_piece_of_it_is_there() -> None:
    async def story() -> None:
        server = Server()
        await server.ask(PULL)
        server.held.coming[PULL] = 1  # another piece is under way
        await server.ask(PUSH)
        assert await is_kept(asyncio.create_task(server.ask(PULL)))

    in_a_loop(story)


def test_news_is_told_from_another_thread() -> None:
    async def story() -> None:
        server = Server()
        await server.ask(PULL)
        question = asyncio.create_task(server.ask(PULL))
        assert await is_kept(question)
        Thread(target=server.held.tell, args=[PULL]).start()
        assert await question

    in_a_loop(story)


def test_askers_are_not_remembered_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_poll, "MOST_ASKERS", 3)

    async def story() -> None:
        server = Server()
        for number in range(20):
            await server.ask(PULL, str(number).encode())
        assert len(server.held.seen) <= 4

    in_a_loop(story)


def test_a_question_in_pieces_is_passed_on_at_once() -> None:
    async def story() -> None:
        server = Server()
        await server.ask(PULL)
        assert await server.ask(PULL, more=True)

    in_a_loop(story)
