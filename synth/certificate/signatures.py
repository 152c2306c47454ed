"""Who signed, with which of its keys, and when.

A key that was retired keeps its dates, so that what it signed before still holds, and what appears afterwards does not.
The time is the aggregator's word: it can be believed as far as its key is.
"""

from __future__ import annotations

import datetime as dt

from synth.certificate.certificate import Certificate, Signature, SignedStatement, Statement
from synth.certificate.evidence import Evidence, Finding

AGGREGATOR = "aggregator"  # its name among pinned keys
CLOCKS_DIFFER = dt.timedelta(hours=1)


def statement_finding(
    certificate: Certificate, signed: SignedStatement, statement: Statement, evidence: Evidence
) -> Finding:
    what = f"statement of '{statement.party}'"
    if signed.signature is None:
        return Finding(what, False, "is not signed")
    if not evidence.is_signed(signed.signature, signed.text.encode()):
        return Finding(what, False, "its signature does not match its text")
    ours = (certificate.run, certificate.plan_digest, certificate.schema_digest)
    if (statement.run, statement.plan_digest, statement.schema_digest) != ours:
        return Finding(what, False, "is about another run, plan or schema")
    return _pinned(what, statement.party, signed.signature, certificate, evidence)


def aggregator_finding(certificate: Certificate, evidence: Evidence) -> Finding:
    what = "aggregator's signature"
    if certificate.signature is None and AGGREGATOR in (evidence.keys or {}):
        return Finding(what, False, "there is none, and a key is pinned for it: somebody took it off")
    if certificate.signature is None:
        told = "there is none: nobody vouches for the table's digest, the time and the words around the claim"
        return evidence.missing(what, told)
    if not evidence.is_signed(certificate.signature, certificate.signed_text().encode()):
        return Finding(what, False, "does not match: the certificate was changed after it was signed")
    return _pinned(what, AGGREGATOR, certificate.signature, certificate, evidence)


def issued_finding(certificate: Certificate, evidence: Evidence) -> Finding:
    what = "time"
    if certificate.issued is None:
        return Finding(what, None, "no time: versions before 0.3 did not say when a certificate was issued")
    moment = _issued(certificate)
    if moment is None:
        return Finding(what, False, "is none that can be read")
    if evidence.now is not None and moment > evidence.now + CLOCKS_DIFFER:
        return Finding(what, False, f"issued {certificate.issued}, which is yet to come by this machine's clock")
    return Finding(what, True, f"issued {certificate.issued}, by the aggregator's word")


def _pinned(what: str, name: str, signature: Signature, certificate: Certificate, evidence: Evidence) -> Finding:
    if evidence.keys is None:
        told = f"signed by the key {evidence.fingerprint(signature.public_key)}, which nobody here compared (--keys)"
        return evidence.missing(what, told)
    found = [key for key in evidence.keys.get(name, ()) if key.public_key == signature.public_key]
    if not found:
        return Finding(what, False, f"signed by a key that is not the one pinned for '{name}'")
    moment = _issued(certificate)
    wrong = [key.misused(moment) for key in found]
    if all(wrong):
        return Finding(what, False, f"signed by {wrong[0]}")
    return Finding(what, True, f"signed by the pinned key, {evidence.fingerprint(signature.public_key)}")


def _issued(certificate: Certificate) -> dt.datetime | None:
    try:
        moment = dt.datetime.fromisoformat(certificate.issued or "")
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
