"""A certificate holds as it was made, and every change to it is found and named."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from aggregator.checkpoint import Position
from aggregator.publish import certify, signed
from crypto.keys import IdentityKey
from fedsynth.certificate.checking import is_signed
from synth import VERSION
from synth.certificate.certificate import Certificate, Signature, SignedStatement, Statement
from synth.certificate.evidence import Evidence, PinnedKey
from synth.certificate.participation import Participation, Span, joined
from synth.certificate.promise import promise
from synth.certificate.verification import check_certificate
from synth.plan import Plan
from synth.privacy.events import Event, SampledGaussian, as_records
from synth.privacy.shares import summed_variances
from synth.programme import costs, programme, whole_cost
from tests.small import plan_of

KEYS = {f"party-{n}": IdentityKey.generate() for n in (1, 2, 3)} | {"aggregator": IdentityKey.generate()}
PINNED = {name: [PinnedKey(key.identity.public.hex())] for name, key in KEYS.items()}
PLAN = plan_of({"name": "ctgan"})
TABLE = "ab" * 32


def whole(plan: Plan) -> list[Span]:
    return [(0, programme(plan).asks - 1)]


def statement(party: str, plan: Plan, events: list[Event] | None = None, **changes: Any) -> SignedStatement:
    content: dict[str, Any] = {
        "party": party,
        "run": "run-1",
        "plan_digest": plan.digest(),
        "schema_digest": plan.table.digest(),
        "code_version": VERSION,
        "events": as_records(whole_cost(plan, party) if events is None else events),
        "asks": whole(plan),
        "asked": "12" * 32,
        "ledger_head": "0" * 64,
        "seeded": False,
    }
    text = Statement.model_validate(content | changes).model_dump_json()
    key = KEYS[party]
    signature = Signature(public_key=key.identity.public.hex(), signature=key.sign(text.encode()).hex())
    return SignedStatement(text=text, signature=signature)


def sums_of(plan: Plan) -> list[dict[str, Any]]:
    """Everybody in every sum."""
    spans: list[Participation] = []
    names, planned = [party.name for party in plan.parties], costs(plan, "party-1")
    for number, step in enumerate(programme(plan)):
        noise = sorted(set(summed_variances(plan, planned[number], len(names))))
        one = Participation(phase=step.phase, first=number, last=number, parties=names, count_variance=noise)
        spans = joined(spans, one)
    return [span.model_dump(mode="json") for span in spans]


def certificate_of(plan: Plan = PLAN, simulated: bool = False, **changes: Any) -> Certificate:
    statements = [statement(party.name, plan, **changes) for party in plan.parties]
    position = Position("run-1", plan.digest(), 1, sums=sums_of(plan))
    return signed(certify(plan, statements, position, {"synthetic.csv": TABLE}, simulated), KEYS["aggregator"])


CERTIFICATE = certificate_of()


def failures(certificate: Certificate, **evidence: Any) -> list[str]:
    given: dict[str, Any] = {"is_signed": is_signed, "keys": PINNED, "plan": PLAN, "tables": {"synthetic.csv": TABLE}}
    findings = check_certificate(certificate, Evidence(**(given | evidence)))
    return [finding.what for finding in findings if finding.holds is False]


def changed(change: Callable[[dict[str, Any]], object], sign: bool = False) -> Certificate:
    content = json.loads(CERTIFICATE.model_dump_json())
    change(content)
    certificate = Certificate.model_validate(content)
    return signed(certificate, KEYS["aggregator"]) if sign else certificate


def test_a_certificate_holds_after_a_journey_through_a_file() -> None:
    certificate = Certificate.model_validate_json(CERTIFICATE.model_dump_json(indent=2))
    findings = check_certificate(certificate, Evidence(is_signed, PINNED, PLAN, {"synthetic.csv": TABLE}))
    assert all(finding.holds for finding in findings), findings
    assert certificate.claim.epsilon is not None


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["claim"].update(epsilon=c["claim"]["epsilon"] * 0.99),
        lambda c: c["claim"].update(delta=1e-4),
        lambda c: c.update(table_sha256={"synthetic.csv": "cd" * 32}),
        lambda c: c.update(noise="Nobody needs to be honest."),
        lambda c: c.update(simulated=True),
        lambda c: c["statements"].pop(),
        lambda c: c.update(run="run-2"),
    ],
)
def test_any_change_breaks_the_aggregators_signature(change: Callable[[dict[str, Any]], object]) -> None:
    assert "aggregator's signature" in failures(changed(change))


def without_a_step(content: dict[str, Any]) -> None:
    content["statements"][1]["text"] = content["statements"][1]["text"].replace('"steps":15', '"steps":14')


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda c: c["claim"].update(epsilon=c["claim"]["epsilon"] * 0.99), "ε recomputed"),
        (lambda c: c["claim"].update(epsilon=c["claim"]["epsilon"] * 1.01), "ε recomputed"),
        (lambda c: c["claim"].update(epsilon=None), "ε recomputed"),
        (lambda c: c["claim"].update(relation="replace one row"), "ε recomputed"),
        (lambda c: c.update(profile="faithful"), "ε recomputed"),
        (lambda c: c.update(table_sha256={"synthetic.csv": "cd" * 32}), "table synthetic.csv"),
        (lambda c: c.update(noise="Nobody needs to be honest."), "plan"),
        (lambda c: c["secure_sum"].update(colluders=0), "plan"),
        (lambda c: c["statements"].pop(), "participation"),
        (lambda c: c["statements"].append(c["statements"][0]), "participation"),
        (lambda c: c.update(run="run-2"), "statement of 'party-1'"),
        (lambda c: c["statements"][2].update(signature=None), "statement of 'party-3'"),
        (lambda c: c["statements"][2].update(text="{}"), "statement 3"),
        (without_a_step, "statement of 'party-2'"),
    ],
)
def test_what_a_dishonest_aggregator_signs_is_found_all_the_same(
    change: Callable[[dict[str, Any]], object], what: str
) -> None:
    certificate = changed(change, sign=True)
    assert what in failures(certificate)
    assert promise(certificate)


def test_a_key_that_was_never_compared_is_refused_only_where_keys_are_given() -> None:
    stranger = signed(CERTIFICATE, IdentityKey.generate())
    assert failures(stranger) == ["aggregator's signature"]
    assert "aggregator's signature" in failures(stranger, keys=None)
    assert failures(stranger, keys=None, unsigned=True) == []
    swapped = PINNED | {"party-1": PINNED["party-2"]}
    assert failures(CERTIFICATE, keys=swapped) == ["statement of 'party-1'"]


def test_another_plan_is_named() -> None:
    assert failures(CERTIFICATE, plan=plan_of({"name": "ctgan"}, rows=201)) == ["plan"]


def test_more_than_the_plan_allows_is_named() -> None:
    events: list[Event] = [SampledGaussian(0.05, 0.8, 500)]
    certificate = certificate_of(events=events)
    assert certificate.claim.epsilon is not None
    assert certificate.claim.epsilon > 3
    assert failures(certificate) == ["cost", "plan"]


def test_prices_of_an_earlier_version_are_not_checked_unless_somebody_ran_this_one() -> None:
    """A party alone that claims another version, to have paid less for its asks, is found out."""
    events: list[Event] = [SampledGaussian(0.01, 2.0, 10)]
    earlier = certificate_of(events=events, code_version="0.1.0")
    assert failures(earlier) == []
    found = {f.what: f.holds for f in check_certificate(earlier, Evidence(is_signed, plan=PLAN, unsigned=True))}
    assert found["cost"] is None
    assert failures(certificate_of(events=events, code_version="0.1.0", asks=[(0, 10**6)])) != []
    assert "cost" in failures(certificate_of(events=events, code_version="0.0.9"))
    statements = [statement(name, PLAN) for name in ("party-2", "party-3")]
    alone = statement("party-1", PLAN, events, code_version="0.1.0")
    assert "cost" in failures(CERTIFICATE.model_copy(update={"statements": [alone, *statements]}))


def test_seeded_noise_is_for_simulations() -> None:
    assert failures(certificate_of(seeded=True)) == ["noise"]
    simulated = certificate_of(seeded=True, simulated=True)
    assert failures(simulated) == []
    assert "seed" in promise(simulated)
    assert "one machine" in promise(simulated)


def test_without_an_aggregators_signature_the_rest_is_still_checked() -> None:
    unsigned = CERTIFICATE.model_copy(update={"signature": None})
    parties = {name: key for name, key in PINNED.items() if name != "aggregator"}
    assert failures(unsigned, keys=parties) == ["aggregator's signature"]
    assert failures(unsigned, keys=parties, unsigned=True) == []
    found = {f.what: f.holds for f in check_certificate(unsigned, Evidence(is_signed, unsigned=True))}
    unchecked = [what for what, holds in found.items() if holds is None]
    said = [f"statement of 'party-{n}'" for n in (1, 2, 3)]
    assert unchecked == [*said, "aggregator's signature", "cost", "table", "plan"]


def test_the_paragraph_says_what_is_promised_and_what_is_not() -> None:
    text = promise(CERTIFICATE)
    assert f"e^{CERTIFICATE.claim.epsilon:.4g}" in text
    for words in ("add or remove one row at one party", "Poisson", "pool what they know", "Not promised", "other runs"):
        assert words in text
    assert "simulated" not in text
    faithful = plan_of({"name": "ctgan"}, profile="faithful")
    nominal = certificate_of(faithful)
    assert failures(nominal, plan=faithful) == []
    assert "No limit is promised" in promise(nominal)
    assert "nominal" in promise(nominal)
