"""The resident half of a party: one process that holds rows, models, keys and ledger between messages.

The ClientApp, which Flower starts anew for every message, only carries bytes to this process's socket. Messages are
handled one at a time, each inside the guard. A ping and what the administrator wants (to approve a plan, or to take an
approval back) never wait for a computation. Nothing here needs an orderly end: the ledger's lock goes with the process,
a stale socket is replaced, and an answer that was stored is sent again.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import socketserver
import threading
import time
from contextlib import closing
from pathlib import Path

from fed_node.consent.administration import ADDRESS, ADMINISTRATION, administer
from fed_node.errors import StoreUnwritable
from fed_node.guard import Refused, attempt
from fed_node.party import Party
from fed_node.process.frames import PING, Hangup, Request, receive_request, send_reply
from synth import VERSION
from synth.errors import InputError, ProtocolError
from synth.messages.archive import write_durably
from synth.messages.wire import Envelope

log = logging.getLogger("fed_node")

LONGEST_PATH_BYTES = 107  # of a Unix socket
OWNER_ALONE = 0o177  # umask: the socket is readable and writable by its owner, nobody else
GRACE_SECONDS = 20.0  # for the message in hand when the process is told to end


class Worker:
    """Serves a party on a Unix socket, in threads of its own, from construction to `close`."""

    def __init__(self, party: Party, path: Path) -> None:
        self.party, self.path = party, path
        self._turn = threading.Lock()
        self._server = _listening(path, self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()
        self.ready_file.write_text(f"{os.getpid()}\n")
        log.info("ready", extra={"party": party.settings.name})

    @property
    def ready_file(self) -> Path:
        """There while messages are taken: for probes."""
        return ready_file(self.path)

    def reply(self, request: Request) -> Envelope | Refused:
        if request.kind == PING:
            name = self.party.settings.name
            return Envelope({}, {"party": name, "version": VERSION, "busy": self._turn.locked()})
        if request.kind in ADMINISTRATION:
            return attempt(request.kind, lambda: administer(self.party, request))
        with self._turn:
            began = time.monotonic()
            reply = attempt(request.kind, lambda: self.party.handle(request.kind, request.envelope))
        if isinstance(reply, Envelope):
            seconds, run = round(time.monotonic() - began, 3), request.envelope.options.get("run")
            log.info("answered", extra={"kind": request.kind, "run": run, "seconds": seconds})
        return reply

    def close(self) -> None:
        """Take no more messages, let the one in hand end if it ends soon, give the ledger back."""
        self.ready_file.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)
        self._server.shutdown()
        self._server.server_close()
        if self._turn.acquire(timeout=GRACE_SECONDS):
            self.party.ledger.close()
        log.info("ended", extra={"party": self.party.settings.name})


def serve(home: Path, path: Path) -> None:
    """Serve the party of a home folder until SIGTERM or SIGINT."""
    party = Party(home)  # first: whoever holds the ledger's lock owns the socket's place
    write_durably(home / ADDRESS, str(path.absolute()).encode())
    ready_file(path).unlink(missing_ok=True)  # what a killed worker left
    told_to_end = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told_to_end.set())
    with closing(Worker(party, path)):
        told_to_end.wait()


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
        send_reply(self.request, self.server.worker.reply(request))


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, path: Path, worker: Worker) -> None:
        self.worker = worker
        super().__init__(str(path), _Conversation)

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that broke is the ClientApp's loss: what was answered is stored and will be sent again."""
        log.warning("a conversation with a ClientApp broke off", exc_info=True)


def _listening(path: Path, worker: Worker) -> _Server:
    if len(os.fsencode(path)) > LONGEST_PATH_BYTES:
        raise InputError(
            f"the socket's path {path} is longer than {LONGEST_PATH_BYTES} bytes; choose a shorter one with --socket."
        )
    before = os.umask(OWNER_ALONE)
    try:
        path.unlink(missing_ok=True)  # what a killed worker left
        return _Server(path, worker)
    except OSError as error:
        raise StoreUnwritable(f"cannot make the socket {path}: {error.strerror}. Choose a writable folder.") from error
    finally:
        os.umask(before)
