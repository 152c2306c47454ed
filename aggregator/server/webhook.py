"""Tells one address that a run ended: `python -m aggregator.server.webhook`, in a pod of its own.

The aggregator's pod calls nobody, and that stays so. This one has neither the volume nor a key of the federation: it
reads which runs ended (what aggregator/server/snapshot.py puts beside the metrics) and posts a few public facts to the
one address that the chart's values name and its network policy opens. No run ever waits for it.

    POST URL    {"id": …, "plan": NAME, "digest": …, "state": "released", "since": TIME, "version": 1}
    Fedsynth-Signature: t=SECONDS,v1=HMAC-SHA256(key, "SECONDS." + body)

A message may come twice (after a restart, or if the answer was lost): then its `id` is the same. One that nobody takes
is tried a few times over two hours and given up, which the metrics say.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import json
import os
import signal
import ssl
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from aggregator.states import RunState, now_text
from crypto.tls import client_context
from synth.errors import InputError
from synth.metrics_page import serve_metrics

EVERY_SECONDS = 5.0
TIMEOUT_SECONDS = 10.0
PAUSES_SECONDS = (5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 3600.0)  # after a try that failed; then it is given up
LOOK_BACK = dt.timedelta(minutes=15)  # at the start: what ended while this was away is told, older news is not
SETTLED = dt.timedelta(seconds=60)  # an interrupted run is told of when nobody resumed it within so long
TOLD = frozenset({RunState.released, RunState.withheld, RunState.failed, RunState.interrupted})
SHORTEST_KEY_BYTES = 32
HELP = {
    "fedsynth_webhook_up": ("gauge", "Whether the aggregator's list of runs could be read."),
    "fedsynth_webhook_pending": ("gauge", "Messages that were not taken yet."),
    "fedsynth_webhook_delivered_total": ("counter", "Messages that the receiver took."),
    "fedsynth_webhook_failed_total": ("counter", "Tries that failed."),
    "fedsynth_webhook_given_up_total": ("counter", "Messages that nobody took after the last try."),
}

Post = Callable[[bytes, str], bool]  # (body, signature) -> whether it was taken


@dataclass
class Message:
    """One ending on its way."""

    body: bytes
    plan: str
    tries: int = 0
    again: float = 0.0  # not before


@dataclass
class Webhook:
    """What was told, what is to be told, and how often that failed."""

    post: Post
    key: bytes
    clock: Callable[[], float] = time.monotonic
    up: bool = False
    since: str = ""  # the aggregator's time when this began to look
    told: set[str] = field(default_factory=set)
    pending: dict[str, Message] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=lambda: {"delivered": 0, "failed": 0, "given_up": 0})

    def look(self, listed: dict[str, Any]) -> None:
        """Take in the list of runs as it is now, and post what is due."""
        now = dt.datetime.fromisoformat(listed["time"])
        self.up, self.since = True, self.since or listed["time"]
        oldest = dt.datetime.fromisoformat(self.since) - LOOK_BACK
        endings = {_identity(run): run for run in listed["runs"] if _is_news(run, oldest, now)}
        self.told &= endings.keys()
        for identity, run in endings.items():
            if identity not in self.told:
                self.told.add(identity)
                self.pending[identity] = Message(_body(identity, run), run["plan"])
        for identity in [each for each, message in self.pending.items() if message.again <= self.clock()]:
            self._try(identity, self.pending[identity])

    def _try(self, identity: str, message: Message) -> None:
        if self.post(message.body, signature(self.key, message.body, int(time.time()))):
            self._done(identity, "delivered")
            return
        self.counts["failed"] += 1
        if message.tries == len(PAUSES_SECONDS):
            self._done(identity, "given_up")
            return
        message.again = self.clock() + PAUSES_SECONDS[message.tries]
        message.tries += 1

    def _done(self, identity: str, how: str) -> None:
        self.counts[how] += 1
        plan = self.pending.pop(identity).plan
        _say("info" if how == "delivered" else "error", f"{how.replace('_', ' ')}: the end of {plan}")

    def metrics(self) -> str:
        values = {"up": int(self.up), "pending": len(self.pending)}
        values |= {f"{name}_total": count for name, count in self.counts.items()}
        return "".join(
            f"# HELP {name} {words}\n# TYPE {name} {kind}\n{name} {values[name.removeprefix('fedsynth_webhook_')]}\n"
            for name, (kind, words) in HELP.items()
        )


def signature(key: bytes, body: bytes, seconds: int) -> str:
    """Over the time as well, so that a receiver can refuse an old message."""
    code = hmac.new(key, f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={seconds},v1={code}"


def _is_news(run: dict[str, str], oldest: dt.datetime, now: dt.datetime) -> bool:
    since = dt.datetime.fromisoformat(run["since"])
    settled = run["state"] != RunState.interrupted or now - since >= SETTLED
    return run["state"] in TOLD and since >= oldest and settled


def _identity(run: dict[str, str]) -> str:
    return hashlib.sha256(f"{run['digest']} {run['state']} {run['since']}".encode()).hexdigest()[:32]


def _body(identity: str, run: dict[str, str]) -> bytes:
    """Names and times that are public in the federation: no reason, no party, no figure, nothing of a table."""
    facts = {name: run[name] for name in ("plan", "digest", "state", "since")}
    return json.dumps({"id": identity, **facts, "version": 1}).encode()


def poster(url: str, trust: ssl.SSLContext | bool) -> Post:
    """To this address and no other: no redirect is followed, no proxy of the environment used, no answer read."""
    if not url.startswith("https://"):
        raise InputError("webhook.url must begin with https://")
    client = httpx.Client(verify=trust, timeout=TIMEOUT_SECONDS, follow_redirects=False, trust_env=False)

    def post(body: bytes, signed: str) -> bool:
        headers = {"Content-Type": "application/json", "Fedsynth-Signature": signed}
        try:
            with client.stream("POST", url, content=body, headers=headers) as answer:
                taken = answer.is_success
                words = f"the receiver answered {answer.status_code}"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            taken, words = False, f"the receiver cannot be reached ({type(error).__name__})"
        if not taken:
            _say("warning", words)  # without the address, which may hold a token
        return taken

    return post


def keep(webhook: Webhook, runs_url: str) -> None:
    client = httpx.Client(timeout=TIMEOUT_SECONDS, trust_env=False)
    while True:
        try:
            answer = client.get(runs_url)
            answer.raise_for_status()
            webhook.look(answer.json())
        except (httpx.HTTPError, ValueError):  # the aggregator restarts
            webhook.up = False
        time.sleep(EVERY_SECONDS)


def key_of(path: Path) -> bytes:
    key = path.read_bytes().strip()
    if len(key) < SHORTEST_KEY_BYTES:
        raise InputError(f"the key in webhook.existingSecret has {len(key)} bytes; make one: openssl rand -hex 32")
    return key


def _say(level: str, message: str) -> None:
    sys.stdout.write(json.dumps({"time": now_text(), "level": level, "message": message}) + "\n")
    sys.stdout.flush()


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    authority = os.environ.get("FEDSYNTH_WEBHOOK_CA")
    trust = client_context(Path(authority)) if authority else True
    key = key_of(Path(os.environ["FEDSYNTH_WEBHOOK_KEY"]))
    webhook = Webhook(poster(os.environ["FEDSYNTH_WEBHOOK_URL"], trust), key)
    serve_metrics(webhook.metrics, int(os.environ["FEDSYNTH_WEBHOOK_PORT"]))
    keep(webhook, os.environ["FEDSYNTH_WEBHOOK_RUNS"])


if __name__ == "__main__":
    main()
