"""The resident half of a party: one process that holds rows, models, keys and ledger between messages.

The ClientApp, which Flower starts anew for every message, only carries bytes to this process's socket. Messages are
handled one at a time, each inside the guard. What the administrator wants (to approve a plan, or to take an approval
back) comes over a second socket, in a place that nobody mounts who decodes the aggregator's bytes; it never waits for a
computation. Nothing here needs an orderly end: the ledger's lock goes with the process, a stale socket is replaced, and
an answer that was stored is sent again.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import socketserver
import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from fed_node.consent.administration import ADDRESS, administer
from fed_node.errors import StoreUnwritable
from fed_node.guard import Refused, attempt
from fed_node.party import Party
from fed_node.process.frames import KINDS, PING, Hangup, Request, receive_request, send_reply
from fed_node.process.isolation import give_up_network
from fed_node.process.socket_name import socket_name
from fed_node.source import EngineSource, SqlSource
from synth import VERSION
from synth.errors import ProtocolError
from synth.messages.archive import write_durably
from synth.messages.wire import Envelope

log = logging.getLogger("fed_node")

OWNER_ALONE = 0o177  # umask: the socket is readable and writable by its owner, nobody else
AGGREGATOR = "aggregator"  # in the audit log: whose message it was
GRACE_SECONDS = 20.0  # for the message in hand when the process is told to end
ADMINISTRATION_SOCKET = "administration.sock"  # in the home, unless told otherwise
CUT_OFF = "none: only Unix sockets"


class Worker:
    """Serves a party on two Unix sockets, in threads of its own, from construction to `close`."""

    def __init__(self, party: Party, path: Path, administration: Path | None = None, network: str = "open") -> None:
        self.party, self.path, self.network = party, path, network
        self.administration = administration or party.home / ADMINISTRATION_SOCKET
        self._turn = threading.Lock()
        self._servers = [_listening(path, self.reply), _listening(self.administration, self.decide)]
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
        self.ready_file.write_text(f"{os.getpid()}\n")
        log.info("ready", extra={"party": party.settings.name, "network": network})

    @property
    def ready_file(self) -> Path:
        """There while messages are taken: for probes."""
        return ready_file(self.path)

    def reply(self, request: Request) -> Envelope | Refused:
        """To a message. What an administrator decides is no message, and is refused like any unknown kind."""
        if request.kind == PING:
            status = {"party": self.party.settings.name, "version": VERSION, "network": self.network}
            return Envelope({}, status | {"busy": self._turn.locked()})
        with self._turn:
            began = time.monotonic()
            reply = attempt(request.kind, lambda: self._handled(request))
        if isinstance(reply, Refused):
            facts = {"kind": request.kind if request.kind in KINDS else "other", "code": reply.code}
            attempt("note", lambda: self.party.audit_log.note_once_a_day("refuse", AGGREGATOR, **facts))
            return reply
        seconds, run = round(time.monotonic() - began, 3), request.envelope.options.get("run")
        log.info("answered", extra={"kind": request.kind, "run": run, "seconds": seconds})
        return reply

    def _handled(self, request: Request) -> Envelope:
        """One message of the aggregator; that a run was admitted or ended is noted before anybody is told."""
        reply = self.party.handle(request.kind, request.envelope)
        if action := {"hello": "admit", "finish": "finish"}.get(request.kind):
            run, plan = (str(request.envelope.options[name]) for name in ("run", "plan"))
            self.party.audit_log.note_once_a_day(action, AGGREGATOR, run=run, plan=plan)
        return reply

    def decide(self, request: Request) -> Envelope | Refused:
        """What the administrator wants, at once."""
        return attempt(request.kind, lambda: administer(self.party, request))

    def close(self) -> None:
        """Take no more messages, let the one in hand end if it ends soon, give the ledger back."""
        for file in (self.ready_file, self.path, self.administration):
            file.unlink(missing_ok=True)
        for server in self._servers:
            server.shutdown()
            server.server_close()
        if self._turn.acquire(timeout=GRACE_SECONDS):
            self.party.ledger.close()
        log.info("ended", extra={"party": self.party.settings.name})


def serve(home: Path, path: Path, administration: Path | None = None) -> None:
    """Serve the party of a home folder until SIGTERM or SIGINT."""
    party = Party(home)  # first: whoever holds the ledger's lock owns the sockets' places
    network, administration = _network(party), administration or home / ADMINISTRATION_SOCKET
    write_durably(home / ADDRESS, str(administration.absolute()).encode())
    ready_file(path).unlink(missing_ok=True)  # what a killed worker left
    told_to_end = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told_to_end.set())
    with closing(Worker(party, path, administration, network)):
        threading.Thread(target=attempt, args=("prepare", partial(prepare, party)), daemon=True).start()
        told_to_end.wait()


def prepare(party: Party) -> None:
    """Load and work out what the runs of approved plans will need before anybody asks for it: after a restart."""
    for digest in party.approvals.digests():
        if party.ledger.is_set_aside(digest):
            party.prices.worked_out(party.approvals.get(digest))


def _network(party: Party) -> str:
    """What is left of the network, in words; a file of rows needs nothing of it."""
    if isinstance(party.settings.data, SqlSource | EngineSource):
        return "open: the rows are in a database"
    if (why := give_up_network()) is None:
        return CUT_OFF
    log.warning("the network could not be given up: %s", why)
    return f"open: {why}"


def ready_file(path: Path) -> Path:
    return path.with_suffix(".ready")


class _Conversation(socketserver.BaseRequestHandler):
    """One connection: one request, one reply."""

    request: socket.socket
    server: _Server

    def handle(self) -> None:
        try:
            request = receive_request(self.request)
        except Hangup:
            return
        except ProtocolError as error:
            send_reply(self.request, Refused(error.code))
            raise
        send_reply(self.request, self.server.reply(request))


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, name: str, reply: Callable[[Request], Envelope | Refused]) -> None:
        self.reply = reply
        super().__init__(name, _Conversation)

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that broke is the ClientApp's loss: what was answered is stored and will be sent again."""
        log.warning("a conversation with a ClientApp broke off", exc_info=True)


def _listening(path: Path, reply: Callable[[Request], Envelope | Refused]) -> _Server:
    before = os.umask(OWNER_ALONE)
    try:
        path.unlink(missing_ok=True)  # what a killed worker left
        with socket_name(path) as name:
            return _Server(name, reply)
    except OSError as error:
        raise StoreUnwritable(f"cannot make the socket {path}: {error.strerror}. Choose a writable folder.") from error
    finally:
        os.umask(before)
