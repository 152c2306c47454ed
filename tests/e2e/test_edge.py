"""A real nginx with the chart's configuration, knocked at by strangers; behind it a stand-in that counts."""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from fedsynth.provision.authority import new_authority, server_certificate
from fedsynth.provision.party_keys import new_keys
from fedsynth.sandbox.making import free_port
from tests.e2e.edge import Door, nginx, rendered_conf

pytestmark = pytest.mark.skipif(nginx() is None, reason="neither nginx nor the image fedsynth/edge is here")


class _Counting(BaseHTTPRequestHandler):
    """What the SuperLink would have had to read."""

    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, int]] = []  # noqa: RUF012  one stand-in a module

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length", "0"))
        self.rfile.read(size)
        self.do_GET(size)

    def do_GET(self, size: int = 0) -> None:
        self.seen.append((self.path, size))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


class _Knocking:
    def __init__(self, door: Door, port: int, authority: Path, key: str) -> None:
        self.door, self.port, self.key = door, port, key
        self.context = ssl.create_default_context(cafile=str(authority))

    def post(self, path: str, body: bytes, key: str = "") -> int:
        connection = http.client.HTTPSConnection("localhost", self.port, context=self.context, timeout=20)
        try:
            connection.request("POST", path, body, {"flwr-public-key": key} if key else {})
            return connection.getresponse().status
        finally:
            connection.close()

    def handshake(self, context: ssl.SSLContext) -> str | None:
        """The protocol that both agree on."""
        with (
            socket.create_connection(("127.0.0.1", self.port), 10) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as secure,
        ):
            return secure.version()


@pytest.fixture(scope="module")
def knocking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Knocking]:
    folder = tmp_path_factory.mktemp("doors")
    authority = new_authority("doors")
    server = server_certificate(authority, ["localhost"], 1)
    (folder / "ca.crt").write_bytes(authority.certificate)
    (folder / "tls.crt").write_bytes(server.certificate)
    (folder / "tls.key").write_bytes(server.key)
    superlink = ThreadingHTTPServer(("127.0.0.1", 0), _Counting)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    superlink.socket = context.wrap_socket(superlink.socket, server_side=True)
    threading.Thread(target=superlink.serve_forever, daemon=True).start()
    keys = new_keys().public
    conf = rendered_conf(folder, {"north": {"nodeKey": keys.node_key, "identity": keys.identity}})["edge.conf"]
    port = free_port()
    ports = {8443: port, 8000: superlink.server_port}
    with Door(conf, folder / "edge", ports, {"/run/loopback": folder, "/etc/edge/tls": folder}) as door:
        pem = serialization.load_ssh_public_key(keys.node_key.encode()).public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        yield _Knocking(door, port, folder / "ca.crt", base64.b64encode(pem).decode())
    superlink.shutdown()
    superlink.server_close()


def test_a_strangers_body_never_reaches_the_superlink(knocking: _Knocking) -> None:
    """Twelve anonymous posts took the SuperLink to 1.6 GB: it parses a body before it asks who sent it."""
    _Counting.seen.clear()
    for key in ("", "nobody's", knocking.key[:-4] + "AAAA"):
        assert knocking.post("/v1/fleet/push-object", b"x" * 5_000_000, key) == 403
        assert knocking.post("/v1/fleet/activate-node", b"x", key) == 403
    assert _Counting.seen == []


def test_a_partys_piece_passes_and_nothing_larger(knocking: _Knocking) -> None:
    _Counting.seen.clear()
    assert knocking.post("/v1/fleet/push-object", b"x" * 5_400_000, knocking.key) == 200
    assert _Counting.seen == [("/v1/fleet/push-object", 5_400_000)]
    with pytest.raises((AssertionError, OSError)):  # told 413, or cut off while it still sends
        assert knocking.post("/v1/fleet/push-object", b"x" * 7_000_000, knocking.key) == 200
    assert knocking.post("/v1/fleet/push-messages", b"x" * 300_000, knocking.key) == 413
    assert knocking.post("/v1/control/list-runs", b"", knocking.key) == 404
    assert knocking.post("/v1/fleet/../control/list-runs", b"", knocking.key) == 404
    assert len(_Counting.seen) == 1


def test_many_who_ask_for_health_cost_one_question(knocking: _Knocking) -> None:
    _Counting.seen.clear()
    connection = http.client.HTTPSConnection("localhost", knocking.port, context=knocking.context, timeout=20)
    for _ in range(50):
        connection.request("GET", "/health")
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"")
    connection.close()
    assert len(_Counting.seen) <= 3  # one every two seconds


def test_a_slow_stranger_is_let_go(knocking: _Knocking) -> None:
    with (
        socket.create_connection(("127.0.0.1", knocking.port), 30) as plain,
        knocking.context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        secure.sendall(b"POST /v1/fleet/push-object HTTP/1.1\r\nHost: localhost\r\n")
        began = time.monotonic()
        secure.settimeout(25)
        try:
            said = secure.recv(100)
        except OSError:
            said = b""
    assert time.monotonic() - began < 20  # ten seconds for a whole header, and something for a busy machine
    assert said == b"" or b"408" in said


def _client(minimum: ssl.TLSVersion, maximum: ssl.TLSVersion, suites: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version, context.maximum_version = minimum, maximum
    context.set_ciphers(suites)
    return context


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize(
    ("maximum", "suites"),
    [
        (ssl.TLSVersion.TLSv1_1, "ALL:@SECLEVEL=0"),
        (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES256-SHA384:ECDHE-ECDSA-AES128-SHA256:@SECLEVEL=0"),  # CBC
        (ssl.TLSVersion.TLSv1_2, "AES256-GCM-SHA384:@SECLEVEL=0"),  # no forward secrecy
    ],
    ids=["TLS 1.1", "CBC", "static RSA"],
)
def test_old_tls_is_refused(knocking: _Knocking, maximum: ssl.TLSVersion, suites: str) -> None:
    with pytest.raises(OSError, match=r"(?i)alert|reset|version|eof"):
        knocking.handshake(_client(ssl.TLSVersion.TLSv1, maximum, suites))


def test_current_tls_is_taken(knocking: _Knocking) -> None:
    aead = "ECDHE-ECDSA-AES256-GCM-SHA384"
    for version, name in ((ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")):
        assert knocking.handshake(_client(version, version, aead)) == name


def test_the_log_says_who_and_what_but_quotes_nobody(knocking: _Knocking) -> None:
    knocking.post("/v1/fleet/activate-node?secret=1", b"body", knocking.key)
    knocking.post("/words/of/a/stranger?and=more", b"body")
    lines = knocking.door.logged
    assert {"party": "north", "path": "/v1/fleet/activate-node", "status": 200}.items() <= lines[-2].items()
    assert {"party": "", "path": "other", "status": 404}.items() <= lines[-1].items()
    assert "stranger" not in (knocking.door.folder / "access.log").read_text()
    assert "secret" not in (knocking.door.folder / "access.log").read_text()
