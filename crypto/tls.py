"""Which TLS our own clients speak: 1.3, or 1.2 with forward secrecy and authenticated encryption, as the edge does.

Flower's SuperNode makes its own context, which would take older suites; the edge offers none.
"""

import ssl
from pathlib import Path

SUITES = "ECDHE+AESGCM:ECDHE+CHACHA20"  # of TLS 1.2; those of 1.3 are all of this kind


def client_context(authority: Path) -> ssl.SSLContext:
    """A context that trusts this authority and no other."""
    context = ssl.create_default_context(cafile=str(authority))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(SUITES)
    return context
