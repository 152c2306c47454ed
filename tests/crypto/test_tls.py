"""What our own clients offer in a TLS handshake."""

from __future__ import annotations

import ssl
from pathlib import Path

from crypto.tls import client_context
from fedsynth.provision.authority import new_authority


def test_clients_offer_authenticated_encryption_with_forward_secrecy_only(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(new_authority("test").certificate)
    context = client_context(tmp_path / "ca.crt")
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    offered = [suite for suite in context.get_ciphers() if suite["protocol"] == "TLSv1.2"]
    assert offered
    assert all(suite["aead"] and "dhe" in suite["kea"] for suite in offered)
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
