"""A certificate for `localhost`, made when the aggregator's pod starts and gone with it.

The SuperLink listens on loopback, where only its own pod is, but asks for TLS before it authenticates nodes. With a
certificate of its own, the one that parties see can come from anywhere and be replaced without touching Flower.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fedsynth.provision.authority import new_authority, server_certificate

DAYS = 3650


def main() -> None:
    """`python -m fedsynth.provision.loopback CERTIFICATES METRICS`: fill both folders of a new pod."""
    certificates, metrics = Path(sys.argv[1]), Path(sys.argv[2])
    authority = new_authority("loopback")
    server = server_certificate(authority, ["localhost", "127.0.0.1"], DAYS)
    for name, content in (("ca.crt", authority.certificate), ("tls.crt", server.certificate), ("tls.key", server.key)):
        (certificates / name).write_bytes(content)
    (metrics / "metrics.prom").write_text("fedsynth_up 1\n")


if __name__ == "__main__":
    main()
