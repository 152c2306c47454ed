"""Chromium, driven by hand: chromedriver speaks JSON over HTTP (W3C WebDriver), so nothing else is needed."""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars", "--disable-quic"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the name that the standard gives to references
PATIENCE_SECONDS = 400.0  # of a machine that others use, too
TAB, ENTER = "\ue004", "\ue007"


class Browser:
    """One window."""

    def __init__(self, client: httpx.Client, session: str) -> None:
        self._client, self._session = client, session

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        said = {} if method == "GET" else {"json": body or {}}
        answer = self._client.request(method, f"/session/{self._session}{path}", **said).json()["value"]
        if isinstance(answer, dict) and "error" in answer:
            raise LookupError(f"{answer['error']}: {answer['message'].splitlines()[0]}")
        return answer

    def open(self, address: str) -> None:
        self.ask("POST", "/url", {"url": address})

    def find(self, css: str) -> str:
        return str(self.ask("POST", "/element", {"using": "css selector", "value": css})[ELEMENT])

    def click(self, css: str) -> None:
        self.ask("POST", f"/element/{self.find(css)}/click")

    def link(self, text: str) -> None:
        """Follow the link with these words."""
        found = self.ask("POST", "/element", {"using": "partial link text", "value": text})[ELEMENT]
        self.ask("POST", f"/element/{found}/click")

    def type(self, css: str, text: str) -> None:
        self.ask("POST", f"/element/{self.find(css)}/value", {"text": text})

    def press(self, key: str) -> None:
        """A key, wherever the focus is."""
        keys = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": keys}]})

    def name_of(self, css: str) -> str:
        """What a screen reader says."""
        return str(self.ask("GET", f"/element/{self.find(css)}/computedlabel"))

    def run(self, script: str) -> Any:
        return self.ask("POST", "/execute/sync", {"script": script, "args": []})

    def text(self) -> str:
        return str(self.run("return document.body.innerText"))

    def wait(self, what: str, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            assert time.monotonic() < deadline, f"waited in vain for {what}; the page says:\n{self.text()}"
            time.sleep(0.2)

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.ask("GET", "/screenshot")))


@contextmanager
def browser(profile: Path, *flags: str) -> Iterator[Browser]:
    driver, program = shutil.which("chromedriver"), shutil.which("chromium") or shutil.which("google-chrome")
    if driver is None or program is None:
        raise LookupError("no Chromium with its driver found: apt-get install chromium chromium-driver")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    running = subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_SECONDS, trust_env=False)
    options = {"binary": program, "args": [*FLAGS, f"--user-data-dir={profile}", *flags]}
    try:
        _await(client)
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
        session = client.post("/session", json=wanted).json()["value"]["sessionId"]
        try:
            yield Browser(client, session)
        finally:
            client.delete(f"/session/{session}")
    finally:
        client.close()
        running.terminate()
        running.wait()


def _await(client: httpx.Client) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            client.get("/status")
        except httpx.TransportError:
            assert time.monotonic() < deadline, "chromedriver does not answer"
            time.sleep(0.1)
        else:
            return
