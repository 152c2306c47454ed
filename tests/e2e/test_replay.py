"""Flower's node signature covers a timestamp and nothing else. What that allows, as it is; and why nothing follows.

Whoever reads a party's request off the wire (TLS opened on the way, or the SuperLink itself) may for five minutes send
other bodies under its signature. Our own envelopes carry the signature of the party's identity key over run, plan,
epoch, list of parties, number and question, so another body is no message of that party's.
"""

from __future__ import annotations

import base64
import datetime as dt
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from fastapi import HTTPException
from flwr.proto.fleet_pb2 import ActivateNodeRequest
from flwr.supercore.primitives.asymmetric import public_key_to_bytes, sign_message
from flwr.superlink.routers.fleet.node_auth import authenticate_node

from crypto.errors import CryptoError, Forged, MisplacedError
from crypto.keys import IdentityKey
from crypto.vouchers import verify_voucher, vouch
from tests.crypto.federations import EVERY_DIFFERENCE, NAMES, build_federation


def _request(key: ec.EllipticCurvePrivateKey, age_seconds: float, heartbeat: float) -> SimpleNamespace:
    """A Fleet request as Flower's middleware sees it: a signed timestamp in the headers, any body."""
    public = public_key_to_bytes(key.public_key())
    timestamp = (dt.datetime.now(dt.UTC) - dt.timedelta(seconds=age_seconds)).isoformat()
    headers = {
        "flwr-public-key": base64.b64encode(public).decode(),
        "flwr-signature": base64.b64encode(sign_message(key, timestamp.encode())).decode(),
        "flwr-timestamp": timestamp,
    }
    body = ActivateNodeRequest(public_key=public, heartbeat_interval=heartbeat)
    return SimpleNamespace(headers=headers, state=SimpleNamespace(protobuf_request=body))


def test_flower_accepts_any_body_under_a_signature_four_minutes_old() -> None:
    """Not a promise of ours: should it fail one day, Flower binds more, and docs/security.md is out of date."""
    key = ec.generate_private_key(ec.SECP384R1())
    recorded = _request(key, age_seconds=240, heartbeat=30)
    authenticate_node(recorded)  # type: ignore[arg-type]
    recorded.state.protobuf_request.heartbeat_interval = 86_400  # another body, the same signature, again
    authenticate_node(recorded)  # type: ignore[arg-type]
    with pytest.raises(HTTPException):
        authenticate_node(_request(key, age_seconds=400, heartbeat=30))  # type: ignore[arg-type]


@pytest.mark.parametrize("wanted", EVERY_DIFFERENCE[1:], ids=["number", "run", "plan", "epoch", "parties", "question"])
def test_a_recorded_answer_counts_in_no_other_round(wanted: object) -> None:
    """Whatever carries it: a message of another round is refused, and its round cannot be rewritten."""
    federation, recorded = build_federation(NAMES), EVERY_DIFFERENCE[0]
    key = federation.identities["oslo"]
    message = vouch(key, b"numbers", party="oslo", moment=recorded, purpose="sealed")
    assert verify_voucher(message, federation.roster, moment=recorded, purpose="sealed").party == "oslo"
    with pytest.raises(MisplacedError):
        verify_voucher(message, federation.roster, moment=wanted, purpose="sealed")  # type: ignore[arg-type]
    rewritten = message.replace(recorded.to_bytes(), wanted.to_bytes())  # type: ignore[attr-defined]
    with pytest.raises(CryptoError):
        verify_voucher(rewritten, federation.roster, moment=wanted, purpose="sealed")  # type: ignore[arg-type]


def test_a_node_key_signs_nothing_that_counts() -> None:
    """Who steals what connects a party (node.key) may connect in its name, and say nothing in it."""
    federation, moment = build_federation(NAMES), EVERY_DIFFERENCE[0]
    forged = vouch(IdentityKey.generate(), b"numbers", party="oslo", moment=moment, purpose="sealed")
    with pytest.raises(Forged):
        verify_voucher(forged, federation.roster, moment=moment, purpose="sealed")
