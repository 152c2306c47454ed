"""What the page says, before it has a form: sections of sentences and rows, the same for HTML and PDF.

A certificate that fails gets a page too, which says so first and promises nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from crypto.errors import CryptoError
from crypto.keys import Identity
from synth.certificate.certificate import Certificate, read
from synth.certificate.evidence import Finding
from synth.certificate.promise import not_promised, promised
from synth.plan import Plan

BELIEFS = (0.01, 0.1, 0.5, 0.9)  # that a person is in the data, held before anybody saw the release
MOST_NAMED = 5  # statements in one sentence
MARKS = {True: "holds", False: "FAILS", None: "not checked"}
Tone = str  # "good", "fair" or "poor"


@dataclass(frozen=True)
class Section:
    """A heading, and what stands under it."""

    title: str
    sentences: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    epsilon: float | None = None  # with it, the picture of what ε does to a belief


@dataclass(frozen=True)
class Page:
    """The whole."""

    title: str
    about: str
    tone: Tone
    verdict: str
    sections: tuple[Section, ...] = field(default=())


def _together(names: list[str]) -> list[str]:
    """Of many parties' statements, how many they are: each is listed below."""
    statements = [name for name in names if name.startswith("statement of ")]
    if len(statements) <= MOST_NAMED:
        return names
    return [f"the statements of {len(statements)} parties", *(name for name in names if name not in statements)]


def page_of(certificate: Certificate, findings: Sequence[Finding], plan: Plan | None) -> Page:
    """`plan` may be any plan: it is only believed if it is the certified one."""
    known = plan if plan is not None and plan.digest() == certificate.plan_digest else None
    failed = [finding for finding in findings if finding.holds is False]
    name = certificate.plan_name or (known.name if known else "a plan without a name")
    about = f"{name}, {_when(certificate)}"
    if failed:
        reasons = "; ".join(f"{finding.what}: {finding.detail}" for finding in failed)
        verdict = f"This certificate DOES NOT HOLD, so nothing is promised. {reasons}."
        return Page("Privacy certificate", about, "poor", verdict, (_checked(findings), _documents(certificate)))
    open_questions = [finding.what for finding in findings if finding.holds is None]
    verdict = "Everything that was checked holds."
    if open_questions:
        verdict += f" Not checked: {', '.join(_together(open_questions))}."
    sections = (
        _promise(certificate),
        Section("What is not promised", tuple(_sentence(each) for each in not_promised(certificate))),
        _who(certificate, known),
        _columns(known),
        _checked(findings),
        _documents(certificate),
    )
    return Page("Privacy certificate", about, "fair" if open_questions else "good", verdict, sections)


def belief_after(belief: float, epsilon: float) -> tuple[float, float]:
    """Between what and what a belief can lie afterwards: its odds change by a factor of e^ε at most."""
    odds = belief / (1 - belief)
    low, high = odds * math.exp(-epsilon), odds * math.exp(min(epsilon, 500.0))
    return low / (1 + low), high / (1 + high)


def fingerprint(public_key: str) -> str:
    """Of a key in hexadecimal, as everywhere."""
    try:
        return Identity(bytes.fromhex(public_key)).fingerprint()
    except (CryptoError, ValueError):
        return "no key"


def _promise(certificate: Certificate) -> Section:
    epsilon, words = certificate.claim.epsilon, _sentence(promised(certificate))
    if epsilon is None:
        return Section("What is promised: nothing", (words,))
    bounds = {belief: belief_after(belief, epsilon) for belief in BELIEFS}
    rows = tuple((_share(belief), f"{_share(low)} to {_share(high)}") for belief, (low, high) in bounds.items())
    about = (
        f"ε = {epsilon:.4g}, δ = {certificate.claim.delta:g}. Suppose somebody believes, before seeing anything, that "
        "a certain person's row is in the data. This is between what and what that belief can lie after seeing the "
        "table, the model and every sum that was opened:"
    )
    return Section("What is promised", (words, about), ("believed before", "believed afterwards"), rows, epsilon)


def _who(certificate: Certificate, plan: Plan | None) -> Section:
    declared = {party.name: f"{party.rows:,}" for party in plan.parties} if plan else {}
    rows = []
    for signed in certificate.statements:
        statement = read(signed)
        key = fingerprint(signed.signature.public_key) if signed.signature else "not signed"
        if statement is not None:
            rows.append((statement.party, declared.get(statement.party, ""), key))
    rows += [(each.party, declared.get(each.party, ""), "lost: it stated nothing") for each in certificate.absent]
    signature = certificate.signature
    rows.append(("the aggregator", "", fingerprint(signature.public_key) if signature else "not signed"))
    sentence = "Compare these fingerprints with those that were read to you by telephone."
    return Section("Who signed", (sentence,), ("who", "rows declared", "fingerprint of the key"), tuple(rows))


def _columns(plan: Plan | None) -> Section:
    title = "Which columns"
    if plan is None:
        return Section(title, ("The plan was not at hand, so they cannot be named here.",))
    unread = [name for name in plan.table.columns if name not in plan.table.released]
    rows = tuple((name, column.kind, column.description or "") for name, column in plan.table.released.items())
    never = f"Never read: {', '.join(unread)}." if unread else "The schema names no identifier."
    made = f"{plan.rows:,} rows by '{plan.synthesizer.name}', profile '{plan.profile}'. {never}"
    if not any(description for _, _, description in rows):
        return Section(title, (made,), ("column", "kind"), tuple(row[:2] for row in rows))
    return Section(title, (made,), ("column", "kind", "description"), rows)


def _checked(findings: Sequence[Finding]) -> Section:
    rows = tuple((finding.what, MARKS[finding.holds], finding.detail) for finding in findings)
    return Section("What was checked", (), ("what", "", "detail"), rows)


def _documents(certificate: Certificate) -> Section:
    digests = {"plan": certificate.plan_digest, "schema": certificate.schema_digest}
    digests |= certificate.table_sha256 | certificate.model_sha256
    rows = [(name, in_groups(digest)) for name, digest in digests.items()]
    rows.append(("run", certificate.run))
    rows.append(("software", f"fedsynth {certificate.code_version}"))
    return Section("Which documents, by SHA-256", (), ("what", "digest"), tuple(rows))


def in_groups(digest: str) -> str:
    return " ".join(digest[start : start + 8] for start in range(0, len(digest), 8))


def _when(certificate: Certificate) -> str:
    return f"issued {certificate.issued.replace('T', ' ')[:16]} UTC" if certificate.issued else "without a date"


def _share(belief: float) -> str:
    return f"{100 * belief:.2g} %" if belief < 0.99 else f"{100 * belief:.4g} %"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
