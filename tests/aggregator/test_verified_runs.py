"""`fedsynth verify --plan` holds on every real release, and on none that was not paid for.

Real parties, ledgers, seals and synthesizers; only the network is a function.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from aggregator.checkpoint import Position
from aggregator.publish import certify, signed
from aggregator.run import Workspace, synthesize
from aggregator.sums.exchange import GridExchange
from aggregator.sums.secure_sum import SecureSum
from aggregator.watch import Silent
from crypto.keys import IdentityKey
from fed_node.ledger.ledger import LedgerView
from fed_node.party import Party
from fedsynth.certificate.checking import is_signed
from fedsynth.cli import app
from synth.certificate.certificate import Certificate, Signature, SignedStatement, Statement
from synth.certificate.verification import Evidence, check_certificate
from synth.plan import Plan
from synth.programme import programme
from tests.aggregator.test_lost_parties import LossyNetwork
from tests.contract.test_synthesizers import SMALLEST
from tests.fed_node.two_parties import RUN, CheapTraining, World, make_homes, run_all
from tests.small import plan_of

MASKED = {"statistics": "masked", "updates": "masked"}
KINDS: dict[str, dict[str, Any]] = {"private": {}, "none": {"privacy": "none"}}
OTHERS: dict[str, dict[str, Any]] = {
    "assessed": {"synthesizer": SMALLEST["marginals"], "assessment": {"share": 0.2, "pairs": 3}},
    "published ctgan": {"synthesizer": SMALLEST["ctgan"], "profile": "faithful"},
    "encrypted": {"synthesizer": SMALLEST["marginals"], "secure_sum": {"statistics": "ckks", "updates": "masked"}},
}
CASES = {f"{family}, {kind}": {"synthesizer": SMALLEST[family]} | KINDS[kind] for family in SMALLEST for kind in KINDS}


def plan_for(case: str) -> Plan:
    changes: dict[str, Any] = {"secure_sum": MASKED, "output": {"formats": ["csv"]}} | (CASES | OTHERS)[case]
    return plan_of(changes.pop("synthesizer"), parties=2, rows=60, **changes)


def parties_of(folder: Path, plan: Plan) -> dict[str, Party]:
    return {name: Party(home) for name, home in make_homes(folder / "homes", plan).items()}


def released(folder: Path, plan: Plan) -> Path:
    """The folder of a release, as the aggregator leaves it."""
    parties = parties_of(folder, plan)
    (folder / "aggregator.key").write_bytes(IdentityKey.generate().to_pem())
    workspace = Workspace(folder / "work", folder / "out", simulated=True, seed=3, identity=folder / "aggregator.key")
    try:
        synthesize(plan, cast(GridExchange, LossyNetwork(parties, lambda *_: None)), workspace, Silent())
    finally:
        for party in parties.values():
            party.ledger.close()
    return folder / "out"


@pytest.mark.parametrize("case", [*CASES, *OTHERS])
def test_an_honest_release_holds_with_its_plan_and_without(case: str, tmp_path: Path) -> None:
    out = released(tmp_path, plan_for(case))
    for more in ([], ["--plan", str(out / "plan.json")]):
        result = CliRunner().invoke(app, ["verify", "--unsigned", str(out / "certificate.json"), *more])
        assert result.exit_code == 0, (result.output, result.exception)
        assert "FAILS" not in result.output
    certificate = Certificate.model_validate_json((out / "certificate.json").read_text())
    opened = [set(signed.statement.opened) for signed in certificate.statements]
    encrypted = programme(plan_for(case)).stages[0].mode == "ckks"
    assert opened.count({0}) == (2 if encrypted else 0)  # two open the statistics and sign what they saw


# ── what a dishonest aggregator, or a party that helps it, signs ──


def failed(certificate: Certificate, plan: Plan | None) -> set[str]:
    found = check_certificate(certificate, Evidence(is_signed, None, plan, unsigned=True))
    return {finding.what for finding in found if finding.holds is False}


@pytest.mark.parametrize("claimed", ["nothing", "every sum"])
def test_hello_and_finish_are_no_release(claimed: str, tmp_path: Path) -> None:
    """Honest signatures over no events: every check held and ε was 0, whatever the table was made of."""
    plan = plan_for("marginals, private")
    parties = parties_of(tmp_path, plan)
    world = World({name: party.handle for name, party in parties.items()})
    sums = SecureSum(plan, RUN, world)
    sums.agree_on_keys(world("hello", dict.fromkeys(sums.parties, sums.hello())).received)
    statements = sums.finish()
    for party in parties.values():
        party.ledger.close()
    assert all(each.statement.events == [] for each in statements)
    spans = [
        {"phase": stage.phase, "first": stage.first, "last": stage.end - 1, "parties": sums.parties}
        for stage in programme(plan).stages
    ]
    position = Position(RUN, plan.digest(), 1, sums=spans if claimed == "every sum" else [])
    certificate = signed(certify(plan, statements, position, {}, simulated=False), IdentityKey.generate())
    assert certificate.claim.epsilon == 0
    assert failed(certificate, None) >= {"participation", "ε recomputed"}
    assert failed(certificate, plan) >= {"participation", "ε recomputed", "plan"}


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, Certificate, dict[str, IdentityKey]]:
    folder, plan = tmp_path_factory.mktemp("honest"), plan_for("marginals, private")
    certificate = Certificate.model_validate_json((released(folder, plan) / "certificate.json").read_text())
    names = [party.name for party in plan.parties]
    keys = {name: IdentityKey.from_pem((folder / "homes" / name / "identity.key").read_bytes()) for name in names}
    with closing(LedgerView(folder / "homes" / names[0] / "ledger.sqlite")) as ledger:
        assert ledger.spent().epsilon > 0
    return plan, certificate, keys


def restated(certificate: Certificate, keys: dict[str, IdentityKey], change: Callable[..., object]) -> Certificate:
    """The first party signs another statement, and the aggregator whatever follows from it."""
    content = json.loads(certificate.model_dump_json())
    told = json.loads(content["statements"][0]["text"])
    change(told, content)
    text = Statement.model_validate(told).model_dump_json()
    key = keys[told["party"]]
    signature = Signature(public_key=key.identity.public.hex(), signature=key.sign(text.encode()).hex())
    content["statements"][0] = SignedStatement(text=text, signature=signature).model_dump()
    return signed(Certificate.model_validate(content), IdentityKey.generate())


def forget_a_sum(told: dict[str, Any], certificate: dict[str, Any]) -> None:
    certificate["participation"].pop()


CHEATS: dict[str, tuple[Callable[[dict[str, Any], dict[str, Any]], object], set[str], set[str]]] = {
    # what is changed: (change of the statement and the certificate, what fails without a plan, and with it)
    "fewer events than its asks cost": (lambda s, c: s.update(events=s["events"][:1]), set(), {"cost"}),
    "more noise than was planned": (lambda s, c: s["events"][0].update(variance=1e9), set(), {"cost"}),
    "the other trust": (lambda s, c: s["events"][0].update(trust="local"), set(), {"cost"}),
    "an ask twice": (lambda s, c: s.update(asks=[(0, 2), (1, 2)]), set(), {"cost"}),
    "an ask that the plan has not": (lambda s, c: s.update(asks=[(0, 10**12)]), set(), {"cost"}),
    "no events": (lambda s, c: s.update(events=[]), {"participation"}, {"participation", "cost"}),
    "no asks": (lambda s, c: s.update(asks=[]), {"participation"}, {"participation", "cost"}),
    "other asks": (lambda s, c: s.update(asks=[(1, 2)]), {"participation"}, {"participation", "cost"}),
    "other questions": (lambda s, c: s.update(asked="0" * 64), {"questions"}, {"questions"}),
    "no sums": (lambda s, c: c.update(participation=[]), {"participation"}, {"participation", "plan"}),
    "a sum forgotten": (forget_a_sum, set(), {"plan"}),
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_what_was_not_paid_for_is_found(cheat: str, honest: tuple[Plan, Certificate, dict[str, IdentityKey]]) -> None:
    plan, certificate, keys = honest
    change, without_plan, with_plan = CHEATS[cheat]
    assert failed(certificate, plan) == set()
    changed = restated(certificate, keys, change)
    assert failed(changed, None) >= without_plan
    assert failed(changed, plan) >= with_plan
    assert f"statement of '{plan.parties[0].name}'" not in failed(changed, plan)  # its signature is good


def test_openers_that_saw_different_sums_are_named(
    honest: tuple[Plan, Certificate, dict[str, IdentityKey]],
) -> None:
    plan, certificate, keys = honest

    def opened(digests: dict[int, str]) -> Callable[..., object]:
        return lambda told, content: told.update(opened=digests)

    assert failed(restated(certificate, keys, opened({0: "a"})), plan) == set()
    assert failed(restated(certificate, keys, opened({7: "a"})), plan) == {"questions"}
    both = restated(certificate, keys, opened({0: "a"}))
    turned = both.model_copy(update={"statements": both.statements[::-1]})
    assert failed(restated(turned, keys, opened({0: "b"})), plan) == {"questions"}


def test_a_certificate_from_before_is_read_and_said_to_lack_it(
    honest: tuple[Plan, Certificate, dict[str, IdentityKey]],
) -> None:
    """Versions before signed no asks and certified no participation: the file can be read, the cost not be shown."""
    _, certificate, keys = honest
    content = json.loads(certificate.model_dump_json())
    for place, party in enumerate(keys):
        told = json.loads(content["statements"][place]["text"])
        for name in ("asks", "asked", "opened"):
            told.pop(name)
        text = json.dumps(told)
        signature = {
            "public_key": keys[party].identity.public.hex(),
            "signature": keys[party].sign(text.encode()).hex(),
        }
        content["statements"][place] = {"text": text, "signature": signature}
    for name in ("participation", "absent", "assessment"):
        content.pop(name)
    old = signed(Certificate.model_validate(content), IdentityKey.generate())
    findings = {finding.what: finding for finding in check_certificate(old, Evidence(is_signed, unsigned=True))}
    assert findings["participation"].holds is False
    assert "of a version that did not tell" in findings["participation"].detail
    assert findings["questions"].holds is None
    assert findings["ε recomputed"].holds is True
    assert {finding.what for finding in findings.values() if finding.holds is False} == {"participation"}


def test_parties_that_were_asked_alike_sign_alike(tmp_path: Path) -> None:
    plan = plan_for("marginals, private")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("synth.programme.build", CheapTraining)
        parties = parties_of(tmp_path, plan)
        outcome = run_all(plan, World({name: party.handle for name, party in parties.items()}))
    for party in parties.values():
        party.ledger.close()
    assert len({statement.asked for statement in outcome.statements.values()}) == 1
    assert all(statement.asked for statement in outcome.statements.values())
