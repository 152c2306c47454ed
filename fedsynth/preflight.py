"""What must hold before parties and aggregator can work together, each checked from where it will be used.

Institutions' networks fail in few ways: a name that does not resolve, a proxy that opens TLS, clocks minutes apart, a
gateway that cuts large requests. Each check says what it found and what to do.
"""

from __future__ import annotations

import datetime as dt
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx

from crypto.tls import client_context

LARGEST_CLOCK_DIFFERENCE_SECONDS = 240  # Flower refuses signatures beyond 300
BODY_BYTES = 6_000_000  # Flower's pieces of an array are a little smaller
LARGE = "/v1/fleet/push-object"  # the one request that may be large; without a node's key it is refused unread
FEWEST_DAYS = 14
TIMEOUT_SECONDS = 20.0


@dataclass(frozen=True)
class Finding:
    check: str
    holds: bool
    words: str
    warning: bool = False  # holds, and should be looked at all the same


@dataclass(frozen=True)
class Endpoint:
    """The aggregator's door, as parties know it."""

    address: str  # HOST:PORT in the certificate
    authority: Path
    connect: str | None = None  # HOST:PORT to dial instead, e.g. the Service's name

    @property
    def host(self) -> str:
        return self.address.rpartition(":")[0]

    @property
    def dialled(self) -> str:
        return self.connect or self.address

    def request(self, method: str, path: str, content: bytes = b"") -> httpx.Response:
        context = client_context(self.authority)
        with httpx.Client(verify=context, timeout=TIMEOUT_SECONDS) as client:
            return client.request(
                method,
                f"https://{self.dialled}{path}",
                content=content,
                headers={"Host": self.host},
                extensions={"sni_hostname": self.host},
            )


def check_endpoint(endpoint: Endpoint) -> Iterator[Finding]:
    """Everything about the way to the aggregator; later checks are left out when an earlier one makes them moot."""
    for check in (_resolves, _answers):
        finding = check(endpoint)
        yield finding
        if not finding.holds:
            return
    for later in (_certificate, _clock, _body, _doors):
        yield later(endpoint)


def _resolves(endpoint: Endpoint) -> Finding:
    host = endpoint.dialled.rpartition(":")[0]
    try:
        addresses = {str(each[4][0]) for each in socket.getaddrinfo(host, None)}
    except OSError:
        return Finding("name", False, f"{host} does not resolve; ask your network team for DNS, or set pod.hostAliases")
    return Finding("name", True, f"{host} is {', '.join(sorted(addresses))}")


def _answers(endpoint: Endpoint) -> Finding:
    try:
        answer = endpoint.request("GET", "/health")
    except httpx.ConnectError as error:
        if "certificate has expired" in str(error) or "not yet valid" in str(error):
            return Finding(
                "TLS",
                False,
                f"the certificate of {endpoint.dialled} has ended or has not begun (or this clock is wrong): the "
                "operator runs `fedsynth provision --rotate server` and installs again; nodes reconnect by themselves",
            )
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return Finding(
                "TLS",
                False,
                f"the certificate of {endpoint.dialled} is not the aggregator's ({error}): a wrong ca, another name, "
                "or a proxy that opens TLS; ask for an exception",
            )
        return Finding("TLS", False, f"{endpoint.dialled} refuses connections; open outbound TCP to it")
    except httpx.HTTPError as error:
        return Finding("TLS", False, f"{endpoint.dialled} does not answer ({type(error).__name__}); check the firewall")
    good = answer.status_code == 200
    return Finding("TLS", good, f"chain and name hold; /health answers {answer.status_code}")


def _certificate(endpoint: Endpoint) -> Finding:
    host, _, port = endpoint.dialled.rpartition(":")
    context = client_context(endpoint.authority)
    try:
        with (
            socket.create_connection((host, int(port)), TIMEOUT_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=endpoint.host) as secure,
        ):
            ends = str((secure.getpeercert() or {})["notAfter"])
    except OSError:
        return Finding("certificate", True, "its age cannot be seen through the proxy")
    days = int((ssl.cert_time_to_seconds(ends) - dt.datetime.now(dt.UTC).timestamp()) / 86400)
    remedy = "" if days >= FEWEST_DAYS else "; ask the operator to run `fedsynth provision --rotate server`"
    return Finding("certificate", days >= FEWEST_DAYS, f"valid for {days} more days{remedy}")


def _clock(endpoint: Endpoint) -> Finding:
    date = endpoint.request("GET", "/health").headers.get("date")
    if date is None:
        return Finding("clock", True, "the server does not tell its time")
    seconds = abs((parsedate_to_datetime(date) - dt.datetime.now(dt.UTC)).total_seconds())
    good = seconds < LARGEST_CLOCK_DIFFERENCE_SECONDS
    return Finding("clock", good, f"{seconds:.0f} s apart" + ("" if good else "; set this cluster's clock by NTP"))


def _body(endpoint: Endpoint) -> Finding:
    try:
        code = endpoint.request("POST", LARGE, b"\0" * BODY_BYTES).status_code
    except httpx.HTTPError as error:
        return Finding(
            "large requests", False, f"cut off ({type(error).__name__}); raise the proxy's body limit to 8 MB"
        )
    good = code != 413
    remedy = "" if good else " (413); raise edge.maxBodyMegabytes or the proxy's limit"
    return Finding("large requests", good, f"{BODY_BYTES / 1e6:.0f} MB pass" if good else f"refused{remedy}")


def _doors(endpoint: Endpoint) -> Finding:
    open_paths = [
        path
        for path in ("/v1/control/list-runs", "/v1/runtime/acquire-task", "/docs", "/v1/fleet/../control/list-runs")
        if endpoint.request("POST", path).status_code != 404
    ]
    words = (
        f"{', '.join(open_paths)} can be reached; put the edge in front" if open_paths else "only the Fleet API is open"
    )
    return Finding("doors", not open_paths, words)


def is_open(address: str) -> bool:
    """Whether a connection can be made; a name that does not resolve is as good as closed."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), TIMEOUT_SECONDS / 4).close()
    except OSError:
        return False
    return True


def check(name: str, step: Callable[[], str]) -> Finding:
    """A check that says in words what it found, or raises."""
    try:
        return Finding(name, True, step())
    except (httpx.HTTPError, OSError) as error:
        return Finding(name, False, f"failed: {error}")
