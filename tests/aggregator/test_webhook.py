"""The webhook against a receiver on this machine, with TLS: what it says, how it is signed, and when it gives up."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from aggregator.server import webhook as module
from aggregator.server.snapshot import _public_runs
from aggregator.server.webhook import HELP, PAUSES_SECONDS, Webhook, key_of, poster, signature
from crypto.tls import client_context
from fedsynth.provision.authority import new_authority, server_certificate
from synth.errors import InputError

KEY = b"k" * 32
NOW = "2026-11-18T12:00:00+00:00"
ENDED = {"plan": "census", "digest": "ab" * 32, "state": "released", "since": "2026-11-18T11:59:00+00:00"}


def _listed(*runs: dict[str, str], time: str = NOW) -> dict[str, Any]:
    return {"time": time, "runs": list(runs)}


@dataclass
class Receiver:
    """Answers as it is told to, and keeps what came."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    came: list[tuple[bytes, str]] = field(default_factory=list)

    def __call__(self, body: bytes, signed: str) -> bool:
        self.came.append((body, signed))
        return not self.answers or self.answers.pop(0) == 200


@pytest.fixture
def https(tmp_path: Path) -> Iterator[tuple[Receiver, Path]]:
    """A real receiver, and the authority of its certificate."""
    receiver, authority = Receiver(), new_authority("receiver")
    made = server_certificate(authority, ["localhost"], 1)
    for name, content in (("ca", authority.certificate), ("crt", made.certificate), ("key", made.key)):
        (tmp_path / name).write_bytes(content)

    class Page(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.came.append((body, self.headers["Fedsynth-Signature"]))
            status = receiver.answers.pop(0) if receiver.answers else 204
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    receiver.url = f"https://localhost:{server.server_port}/hook"
    yield receiver, tmp_path / "ca"
    server.shutdown()
    server.server_close()


def test_the_end_of_a_run_is_told_once_and_signed(https: tuple[Receiver, Path]) -> None:
    receiver, authority = https
    webhook = Webhook(poster(receiver.url, client_context(authority)), KEY)
    webhook.look(_listed(ENDED))
    webhook.look(_listed(ENDED))
    ((body, signed),) = receiver.came
    assert {name: value for name, value in json.loads(body).items() if name not in ("id", "version")} == ENDED
    seconds = int(signed.split(",")[0].removeprefix("t="))
    assert signed == signature(KEY, body, seconds)
    assert signed != signature(KEY, body + b" ", seconds)
    assert "fedsynth_webhook_delivered_total 1\n" in webhook.metrics()


def test_another_authority_is_not_spoken_to(https: tuple[Receiver, Path], tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(new_authority("somebody else").certificate)
    webhook = Webhook(poster(https[0].url, client_context(tmp_path / "other")), KEY)
    webhook.look(_listed(ENDED))
    assert not https[0].came
    assert webhook.counts["failed"] == 1


def test_a_redirect_is_not_followed(https: tuple[Receiver, Path]) -> None:
    receiver, authority = https
    receiver.answers = [302]
    webhook = Webhook(poster(receiver.url, client_context(authority)), KEY)
    webhook.look(_listed(ENDED))
    assert len(receiver.came) == 1
    assert webhook.counts == {"delivered": 0, "failed": 1, "given_up": 0}


def test_plain_http_and_short_keys_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="https"):
        poster("http://hooks.example.org", True)
    (tmp_path / "key").write_bytes(b"short\n")
    with pytest.raises(InputError, match="openssl rand"):
        key_of(tmp_path / "key")


def test_what_nobody_takes_is_given_up() -> None:
    now, receiver = [0.0], Receiver(answers=[500] * 100)
    webhook = Webhook(receiver, KEY, clock=lambda: now[0])
    for _ in range(20):
        webhook.look(_listed(ENDED))
        webhook.look(_listed(ENDED))  # not due yet
        now[0] += max(PAUSES_SECONDS)
    assert len(receiver.came) == len(PAUSES_SECONDS) + 1
    assert webhook.counts == {"delivered": 0, "failed": 8, "given_up": 1}
    assert len({json.loads(body)["id"] for body, _ in receiver.came}) == 1
    assert not webhook.pending


def test_only_endings_are_told_and_an_interruption_only_if_it_lasts() -> None:
    receiver = Receiver()
    webhook = Webhook(receiver, KEY)
    others = ("queued", "admitting", "waiting", "running", "releasing", "stopped")
    webhook.look(_listed(*(ENDED | {"state": state, "digest": state} for state in others)))
    interrupted = ENDED | {"state": "interrupted", "since": "2026-11-18T11:59:30+00:00"}
    webhook.look(_listed(interrupted))
    assert not receiver.came
    webhook.look(_listed(interrupted, time="2026-11-18T12:00:31+00:00"))
    webhook.look(_listed(ENDED | {"state": "failed"}))
    assert [json.loads(body)["state"] for body, _ in receiver.came] == ["interrupted", "failed"]


def test_old_news_is_not_told_after_a_restart_and_fresh_news_has_the_same_id() -> None:
    before, after = Receiver(), Receiver()
    old = ENDED | {"since": "2026-11-18T11:00:00+00:00", "digest": "cd" * 32}
    for receiver in (before, after):
        Webhook(receiver, KEY).look(_listed(old, ENDED))
    assert len(before.came) == 1
    assert before.came[0][0] == after.came[0][0]


def test_nothing_but_names_states_and_times_leaves_the_aggregators_pod() -> None:
    """What a run's standing holds besides (parties, reasons, losses, ε) stays."""
    run = ENDED | {"reason": {"code": "budget"}, "parties": ["north"], "losses": {"g": 1.0}, "epsilon": 1.0}
    assert _public_runs({"time": NOW, "nodes": [], "runs": [run]}) == {"time": NOW, "runs": [ENDED]}


def test_it_goes_on_while_the_aggregator_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    webhook = Webhook(Receiver(), KEY, up=True)

    def asleep(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module.time, "sleep", asleep)
    with pytest.raises(KeyboardInterrupt):
        module.keep(webhook, "http://127.0.0.1:1/runs")
    assert "fedsynth_webhook_up 0\n" in webhook.metrics()


def test_every_figure_has_help_and_a_type() -> None:
    text = Webhook(Receiver(), KEY).metrics()
    assert all(f"# HELP {name} " in text and f"# TYPE {name} {HELP[name][0]}\n" in text for name in HELP)
