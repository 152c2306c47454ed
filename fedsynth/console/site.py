"""What both consoles have in common: templates, style, and the news that something changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from fedsynth.console.guarding import Guard
from fedsynth.report.style import STYLE
from synth.errors import FedsynthError, InputError

HERE = Path(__file__).parent
LOOK_SECONDS = 1.0  # between looks at the files
QUIET_SECONDS = 20.0  # after so long without news, a sign of life

Fingerprint = Callable[[], str]  # of everything that a page shows; another one is news


class Pages:
    """The templates, with what every page needs."""

    def __init__(self, title: str, links: dict[str, str]) -> None:
        loader = FileSystemLoader(HERE / "pages")
        self.templates = Environment(loader=loader, autoescape=select_autoescape(), undefined=StrictUndefined)
        self.templates.filters |= {"clock": clock, "groups": groups, "lasting": lasting}
        self.common = {"title": title, "links": links}

    def show(self, template: str, request: Request, status: int = 200, **facts: Any) -> HTMLResponse:
        whole = self.common | {"path": request.url.path} | facts
        return HTMLResponse(self.templates.get_template(template).render(whole), status)

    async def failed(self, request: Request, error: Exception) -> Response:
        """One of our errors is a sentence for people; anything else is the server's to log."""
        status = 400 if isinstance(error, InputError) else 409
        return self.show("error.html", request, status, message=str(error))


def application(pages: Pages, routes: list[BaseRoute], news: Fingerprint, token: str) -> Guard:
    common: list[BaseRoute] = [
        Route("/health", PlainTextResponse("ok")),
        Route("/style.css", PlainTextResponse(STYLE + _asset("console.css"), media_type="text/css")),
        Route("/console.js", PlainTextResponse(_asset("console.js"), media_type="text/javascript")),
        Route("/events", _events(news)),
    ]
    inner = Starlette(routes=[*routes, *common], exception_handlers={FedsynthError: pages.failed})
    return Guard(inner, token)


def serve(app: Guard, port: int) -> None:
    """On loopback alone, until it is told to end."""
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False, server_header=False)


def clock(moment: str) -> str:
    """A time of our files for people."""
    return moment.replace("T", " ")[:19]


def groups(digest: str) -> str:
    return " ".join(digest[start : start + 8] for start in range(0, len(digest), 8))


def lasting(seconds: float) -> str:
    if seconds < 120:
        return f"{max(0, int(seconds))} s"
    return f"{int(seconds) // 60} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _events(news: Fingerprint) -> Callable[[Request], Any]:
    async def events(request: Request) -> Response:
        """Server-sent events: a line whenever the files changed. What changed is on the page, which is asked again."""
        return StreamingResponse(_lines(request, news), media_type="text/event-stream")

    return events


async def _lines(request: Request, news: Fingerprint) -> AsyncIterator[str]:
    last, silent = await asyncio.to_thread(news), 0.0
    yield "retry: 3000\n\n"
    while not await request.is_disconnected():
        await asyncio.sleep(LOOK_SECONDS)
        silent += LOOK_SECONDS
        if (now := await asyncio.to_thread(news)) != last:
            last, silent = now, 0.0
            yield "event: change\ndata: 1\n\n"
        elif silent >= QUIET_SECONDS:
            silent = 0.0
            yield ": still here\n\n"


def _asset(name: str) -> str:
    return (HERE / "assets" / name).read_text()
