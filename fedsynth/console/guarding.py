"""Who may see a page, and what a browser may do with it.

The server listens on loopback: of a pod, which is reached by a port-forward, under the cluster's own rights; or of a
laptop. Loopback is shared, though, with every account of a laptop and every container of a pod, some of which decode
the aggregator's bytes. So a page wants a token that only the owner of a file can read. It comes once in the address and
then lives in a cookie. Names other than loopback's are refused, as a foreign site could point its own name here.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from hmac import compare_digest
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?")
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
DOCUMENT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"  # for whole documents
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # under "no-referrer" a browser sends our own forms with "Origin: null"
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
TOKEN_BYTES = 32
OWNER_ALONE = 0o600


def new_token(file: Path) -> str:
    """A token for this process's life, in a file that its owner alone can read."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ALONE)
    with os.fdopen(descriptor, "w") as out:
        out.write(token)
    return token


class Guard:
    """Wraps the whole application: nothing is answered that does not pass here."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self.token = app, token
        # Cookies are shared between the ports of a host, so each console's has a name of its own.
        self.cookie = f"fedsynth-{hashlib.sha256(token.encode()).hexdigest()[:12]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refused = self._refusal(Request(scope))
        await (refused or self.app)(scope, receive, _with_headers(send))

    def _refusal(self, request: Request) -> Response | None:
        if not LOOPBACK.fullmatch(request.headers.get("host", "")):
            return PlainTextResponse("This page is served to loopback's names only.", 421)
        if request.url.path == "/health":
            return None
        if given := request.query_params.get("token"):
            return self._welcome(request, given)
        if not compare_digest(request.cookies.get(self.cookie, "").encode(), self.token.encode()):
            words = "Open the address that `fedsynth console address` prints: it holds a token.\n"
            return PlainTextResponse(words, 401)
        if request.method not in ("GET", "HEAD") and not self._is_own_form(request):
            return PlainTextResponse("A form of another page was refused.", 403)
        return None

    def _welcome(self, request: Request, given: str) -> Response:
        if not compare_digest(given.encode(), self.token.encode()):
            return PlainTextResponse("That token is not this console's; it may have started again since.\n", 401)
        answer = RedirectResponse(request.url.path, 303)
        answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
        return answer

    def _is_own_form(self, request: Request) -> bool:
        """Pages of other ports of this host count as the same site, so where a form came from is asked for."""
        return request.headers.get("origin") == f"http://{request.headers['host']}"


def form_key(token: str) -> str:
    """What a form of ours carries; whoever cannot read our pages does not know it."""
    return hashlib.sha256(f"form {token}".encode()).hexdigest()


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers["Server"] = "fedsynth"
        await send(message)

    return sent
