"""Holding a certificate against everything that can be computed again: signatures, digests, ε, the plan.

A pure function of the documents. How a signature is checked is given from outside, as this package knows no keys.
Whoever verifies believes nobody's arithmetic: ε is composed anew from the events that the parties signed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import chain

from synth.assessment.certified import flaw, payers
from synth.certificate import participation, stated
from synth.certificate.certificate import (
    UPDATES,
    Certificate,
    Statement,
    claim_over,
    events_of,
    noise_in_words,
    read,
    sampling_in_words,
)
from synth.certificate.evidence import Evidence, Finding
from synth.certificate.linkage import RELATION as BY_COLUMNS
from synth.certificate.linkage import linkage_record
from synth.certificate.participation import Absent
from synth.certificate.signatures import aggregator_finding, issued_finding, statement_finding
from synth.certificate.stated import TOLERANCE
from synth.errors import PrivacyError
from synth.plan import Plan
from synth.privacy.claims import Claim
from synth.privacy.events import from_dict
from synth.privacy.shares import opened_variances
from synth.privacy.workable import DELTAS, unworkable
from synth.programme import costs

__all__ = ["Evidence", "Finding", "check_certificate"]


def check_certificate(certificate: Certificate, evidence: Evidence) -> list[Finding]:
    """Everything that can be checked, in the order in which an auditor would ask."""
    statements: list[Statement] = []
    findings: list[Finding] = []
    for number, signed in enumerate(certificate.statements, start=1):
        if (statement := read(signed)) is None:
            findings.append(Finding(f"statement {number}", False, "cannot be read as a party's statement"))
            continue
        statements.append(statement)
        findings.append(statement_finding(certificate, signed, statement, evidence))
    if too_much := _too_much(certificate, statements):
        return [*findings, Finding("work", False, f"{too_much}: nothing more was looked at")]
    return [
        *findings,
        *_participation(certificate, statements),
        _questions(statements),
        aggregator_finding(certificate, evidence),
        issued_finding(certificate, evidence),
        _seeds(certificate, statements),
        _epsilon(certificate, statements),
        _cost(statements, evidence),
        *_tables(certificate, evidence),
        *_models(certificate, evidence),
        _plan(certificate, statements, evidence),
        *_assessment(certificate, statements, evidence.plan),
    ]


def _too_much(certificate: Certificate, statements: list[Statement]) -> str | None:
    """Why nothing is computed from this certificate: a few lines of text can ask for hours of work."""
    low, high = DELTAS
    if not low <= certificate.claim.delta <= high:
        return f"the claim's δ is not between {low:g} and {high:g}"
    records = [record for each in (*statements,) for record in each.events]
    records += [record for each in certificate.absent for record in each.at_most]
    try:
        return unworkable([from_dict(record) for record in records])
    except PrivacyError as error:
        return f"an event cannot be read: {error}"


def _participation(certificate: Certificate, statements: list[Statement]) -> Iterable[Finding]:
    what, names = "participation", [statement.party for statement in statements]
    minimum = certificate.secure_sum.get("minimum_parties")
    if len(set(names)) != len(names) or not names:
        yield Finding(what, False, "a party appears twice, or none appears")
        return
    if not isinstance(minimum, int) or not certificate.participation:
        told = "the certificate does not say whose answers are in which sums: nothing was summed, or it is of a version"
        yield Finding(what, False, f"{told} that did not tell, and then what was paid for cannot be shown")
        return
    asks = {statement.party: statement.asks for statement in statements}
    wrong = participation.flaw(certificate.participation, certificate.absent, asks, minimum)
    if wrong := wrong or stated.empty(statements):
        yield Finding(what, False, wrong)
        return
    words = participation.in_words(certificate.participation, certificate.absent)
    told = f"{len(names)} {'party' if len(names) == 1 else 'parties'} stated what they spent: {', '.join(names)}"
    yield Finding(what, True, f"{told}. {words}" if words else told)
    for each in certificate.absent:
        yield _absent(certificate, each)


def _absent(certificate: Certificate, each: Absent) -> Finding:
    """It cannot be checked what a party spent that signed nothing; only what is counted for it."""
    try:
        most = claim_over([], [each], certificate.claim.delta)
    except PrivacyError as error:
        return Finding(f"spending of '{each.party}'", False, f"an event cannot be composed: {error}")
    told = f"not stated: it was lost (first missed: ask {each.missing_from}). Its whole reservation is counted, "
    return Finding(f"spending of '{each.party}'", None, told + _figures(most))


def _seeds(certificate: Certificate, statements: list[Statement]) -> Finding:
    seeded = [statement.party for statement in statements if statement.seeded]
    if not seeded:
        return Finding("noise", True, "from the operating system's generator, by every party's word")
    return Finding("noise", certificate.simulated, f"fixed by a seed at {', '.join(seeded)}: good for simulations only")


def _epsilon(certificate: Certificate, statements: list[Statement]) -> Finding:
    what, claim = "ε recomputed", certificate.claim
    if not any(statement.events for statement in statements):
        return Finding(what, False, "there are no events to compose")
    try:
        found = claim_over(statements, certificate.absent, claim.delta)
    except PrivacyError as error:
        return Finding(what, False, f"an event cannot be composed: {error}")
    if claim.relation != (found.relation if certificate.linkage is None else BY_COLUMNS):
        return Finding(what, False, "the claim is about another neighbouring relation than the events")
    if certificate.profile == "faithful" and claim.epsilon is not None:
        return Finding(what, False, "a faithful run can only have a nominal ε, and this one claims more")
    told = f"claimed {_figures(claim)}, from the signed events {_figures(found)}"
    holds = _close(claim.epsilon, found.epsilon) and _close(claim.nominal_epsilon, found.nominal_epsilon)
    return Finding(what, holds, told)


def _questions(statements: list[Statement]) -> Finding:
    what = "questions"
    if wrong := stated.contradiction(statements):
        return Finding(what, False, wrong)
    silent = [each.party for each in statements if each.events and each.asked is None]
    if silent or not statements:
        return Finding(what, None, f"not stated by {', '.join(silent) or 'anybody'}: what they were asked")
    return Finding(what, True, "parties that answered the same asks were asked the same, by what they signed")


def _cost(statements: list[Statement], evidence: Evidence) -> Finding:
    what, plan = "cost", evidence.plan
    if plan is None:
        told = "no plan was given (--plan) or lies beside it: what the asks should have cost cannot be computed"
        return evidence.missing(what, told)
    concerned = [each for each in statements if _takes_part(plan, each.party)]
    try:
        wrong = stated.cost_flaw(concerned, plan)
    except PrivacyError as error:
        return Finding(what, False, f"an event cannot be read: {error}")
    if wrong is None and stated.priced_otherwise(concerned):
        ran = f"the parties ran version {concerned[0].code_version}, for which this plan cost something else"
        return Finding(what, None, f"{ran}: verify with that version. ε was composed from what they signed")
    return Finding(what, wrong is None, wrong or "every party signed for exactly what the asks it answered cost")


def _takes_part(plan: Plan, party: str) -> bool:
    return party in {each.name for each in plan.parties}


def _tables(certificate: Certificate, evidence: Evidence) -> Iterable[Finding]:
    known = set(certificate.table_sha256.values())
    for name, digest in evidence.tables.items():
        holds = digest in known
        yield Finding(f"table {name}", holds, "is the certified one" if holds else "is not what was certified")
    if not evidence.tables:
        yield Finding("table", None, "none was given (--table), and none lies beside the certificate")


def _models(certificate: Certificate, evidence: Evidence) -> Iterable[Finding]:
    for name, digest in evidence.models.items():
        if not certificate.model_sha256:
            told = "is not covered: certificates of version 0.2 and before say nothing about the model"
            yield Finding(f"model {name}", None, told)
            continue
        holds = digest in certificate.model_sha256.values()
        yield Finding(f"model {name}", holds, "is the certified one" if holds else "is not what was certified")


def _plan(certificate: Certificate, statements: list[Statement], evidence: Evidence) -> Finding:
    what, plan = "plan", evidence.plan
    if plan is None:
        return evidence.missing(what, "none was given (--plan) or lies beside it: a party may be missing altogether")
    if (plan.digest(), plan.table.digest()) != (certificate.plan_digest, certificate.schema_digest):
        return Finding(what, False, "is another plan than the certified one")
    if certificate.plan_name not in (None, plan.name):
        return Finding(what, False, "the certificate calls the plan otherwise than the plan itself")
    if not all(_takes_part(plan, statement.party) for statement in statements):
        return Finding(what, False, "does not name every party that made a statement")
    if wrong := _otherwise(certificate, statements, plan):
        return Finding(what, False, wrong)
    if not _same_linkage(certificate, plan):
        return Finding(what, False, "the certificate describes columns, dealers or ε towards a party otherwise")
    noise = noise_in_words(plan)
    said = {noise, noise + UPDATES} if plan.shares_noise else {noise}  # version 0.1.0 spoke of updates in every plan
    words = (certificate.sampling, certificate.profile, certificate.claim.delta)
    if certificate.noise not in said or words != (sampling_in_words(plan), plan.profile, plan.delta):
        return Finding(what, False, "the certificate describes noise, sampling, profile or δ otherwise than the plan")
    modes = plan.secure_sum.model_dump(mode="json") | {"minimum_parties": plan.minimum_parties}
    if certificate.secure_sum != modes:
        return Finding(what, False, "the certificate describes the secure sum otherwise than the plan")
    epsilon = certificate.claim.epsilon
    if plan.privacy != "none" and plan.profile == "rigorous":
        if epsilon is None or epsilon > plan.privacy.epsilon * (1 + TOLERANCE):
            return Finding(what, False, f"more was spent than the plan's ε = {plan.privacy.epsilon:g}")
        return Finding(what, True, f"is the certified one; ε stayed within {plan.privacy.epsilon:g}")
    return Finding(what, True, "is the certified one; it promises no ε")


def _same_linkage(certificate: Certificate, plan: Plan) -> bool:
    said, known = certificate.linkage, linkage_record(plan)
    if said is None or known is None:
        return said is known
    words = {"substitution_epsilon"}
    return said.model_dump(exclude=words) == known.model_dump(exclude=words) and _close(
        said.substitution_epsilon, known.substitution_epsilon
    )


def _otherwise(certificate: Certificate, statements: list[Statement], plan: Plan) -> str | None:
    """Where the certificate's sums, or what it counts for the lost, are not as planned."""
    spans, absent = certificate.participation, certificate.absent
    if wrong := participation.against_plan(spans, absent, [statement.party for statement in statements], plan):
        return wrong
    if stated.priced_otherwise(statements):
        return None
    planned = costs(plan, plan.parties[0].name)  # the noise of counts is the same at every party
    for each in absent:
        if not stated.same_cost(map(from_dict, each.at_most), chain.from_iterable(costs(plan, each.party))):
            return f"more or less is counted for the lost party '{each.party}' than the plan can cost it"
    for span in spans:
        for number in range(span.first, span.last + 1):
            expected = sorted(set(opened_variances(plan, planned[number], len(span.parties), span.phase)))
            if len(expected) != len(span.count_variance) or not all(map(_close, expected, span.count_variance)):
                return f"the sum of ask {number} holds other noise than the plan says for so many parties"
    return None


def _assessment(certificate: Certificate, statements: list[Statement], plan: Plan | None) -> Iterable[Finding]:
    what, record = "assessment", certificate.assessment
    if record is None:
        if plan is not None and plan.assessment is not None:
            yield Finding(what, False, "the plan has one, the certificate does not")
        return
    try:
        signed = [events_of(statement) for statement in statements]
        wrong = flaw(record, signed, int(certificate.secure_sum.get("minimum_parties", 1)), plan)
    except (PrivacyError, KeyError, ValueError, TypeError):
        yield Finding(what, False, "its cost, figures or verdicts cannot be read")
        return
    gate = "no gate" if not record.verdicts else "gate closed" if record.withheld else "gate open"
    yield Finding(what, wrong is None, wrong or f"{payers(record, signed)} parties signed for its cost; {gate}")


def _close(left: float | None, right: float | None) -> bool:
    return left is right if left is None or right is None else math.isclose(left, right, rel_tol=TOLERANCE)


def _figures(claim: Claim) -> str:
    if claim.epsilon is not None:
        return f"ε = {claim.epsilon:.6g} at δ = {claim.delta:g}"
    if claim.nominal_epsilon is not None:
        return f"no ε (nominal {claim.nominal_epsilon:.6g} at δ = {claim.delta:g})"
    return "no ε"
