"""A run that goes on without a party says so: who is in which sum, with how much noise, and what the lost may have
spent. Real parties, ledgers, seals and synthesizer; only the network is a function."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from aggregator.publish import Release, signed
from aggregator.run import Workspace, synthesize
from aggregator.sums.exchange import GridExchange, Replies
from aggregator.watch import Silent
from crypto.keys import IdentityKey
from fed_node.ledger.ledger import LedgerView
from fed_node.party import Party
from fedsynth.certificate.checking import is_signed
from synth.budget import statistics_event
from synth.certificate.certificate import Certificate, events_of
from synth.certificate.participation import Participation, first_missing, joined, spans_of
from synth.certificate.promise import promise
from synth.certificate.verification import Evidence, Finding, check_certificate
from synth.errors import FedsynthError, MissingParties, Refusal
from synth.messages import archive
from synth.messages.wire import Envelope
from synth.plan import Plan
from synth.privacy.accounting import compose
from synth.privacy.claims import claim_of
from synth.privacy.events import CountNoise
from synth.privacy.shares import summed_variance
from synth.programme import inquiries, whole_cost
from tests.fed_node.two_parties import ROWS, make_homes
from tests.small import plan_of

VICTIM, OTHERS = "party-3", ["party-1", "party-2"]
EVERYBODY = [*OTHERS, VICTIM]
Loses = Callable[[str, Envelope], str | None]  # kind and message to the victim → "message", "reply" or None


@dataclass
class LossyNetwork:
    """An exchange that loses what it is told to: the message, so that the victim never hears it, or its reply."""

    parties: dict[str, Party]
    loses: Loses
    log: list[str] = field(default_factory=list)

    def __call__(self, kind: str, envelopes: dict[str, Envelope]) -> Replies:
        received, lost = {}, []
        for name, envelope in envelopes.items():
            loss = self.loses(kind, envelope) if name == VICTIM else None
            if loss != "message":
                try:
                    reply = self.parties[name].handle(kind, envelope)
                except FedsynthError as error:
                    raise Refusal(name, error.code) from error
            if loss is None:
                received[name] = reply
            else:
                lost.append(name)
        return Replies(received, lost)

    def discover(self, content: Envelope, parties: list[str], minimum: int) -> dict[str, Envelope]:
        return self("hello", dict.fromkeys(parties, content)).received


def small() -> Plan:
    secure_sum = {"statistics": "masked", "updates": "masked", "minimum_parties": 2, "colluders": 1}
    settings = {"name": "marginals", "iterations": 20, "rounds": 1}
    return plan_of(settings, parties=3, rows=ROWS, secure_sum=secure_sum, output={"formats": ["csv"]})


PLAN = small()


def released(folder: Path, loses: Loses) -> Release:
    parties = {name: Party(home) for name, home in make_homes(folder / "homes", PLAN).items()}
    (folder / "aggregator.key").write_bytes(IdentityKey.generate().to_pem())
    workspace = Workspace(folder / "work", folder / "out", simulated=True, seed=3, identity=folder / "aggregator.key")
    try:
        return synthesize(PLAN, cast(GridExchange, LossyNetwork(parties, loses)), workspace, Silent())
    finally:
        for party in parties.values():
            party.ledger.close()


def from_ask(number: int, what: str = "message") -> Loses:
    """Away from an ask on, for good."""
    away = False

    def loses(kind: str, envelope: Envelope) -> str | None:
        nonlocal away
        away = away or (kind == "ask" and envelope.options["sequence"] == number)
        return what if away else None

    return loses


def findings(certificate: Certificate, plan: Plan | None = PLAN) -> dict[str, Finding]:
    found = check_certificate(certificate, Evidence(is_signed, None, plan, unsigned=True))
    return {each.what: each for each in found}


@pytest.fixture(scope="module")
def lost_in_training(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return released(tmp_path_factory.mktemp("lost"), from_ask(1))


def test_the_certificate_says_who_is_in_which_sum_and_what_noise_is_in_it(lost_in_training: Release) -> None:
    statistics, first, again = lost_in_training.certificate.participation
    assert (statistics.phase, statistics.first, statistics.last, statistics.parties) == ("statistics", 0, 0, EVERYBODY)
    assert [(s.phase, s.first, s.last, s.parties) for s in (first, again)] == [
        ("training", 1, 1, OTHERS), ("training", 2, 2, OTHERS)
    ]  # fmt: skip
    released_noise = [event for event in whole_cost(PLAN, VICTIM) if isinstance(event, CountNoise)]
    shares = [event.variance / PLAN.noisy_parties for event in released_noise]
    assert [span.count_variance for span in (statistics, first, again)] == [
        [pytest.approx(shares[0] * 3)], [pytest.approx(shares[1] * 2)], [pytest.approx(shares[2] * 2)]
    ]  # fmt: skip
    assert all(share * 2 >= event.variance for share, event in zip(shares, released_noise, strict=True))


def test_the_lost_are_counted_with_all_that_was_set_aside(lost_in_training: Release) -> None:
    certificate = lost_in_training.certificate
    assert [signed.statement.party for signed in certificate.statements] == OTHERS
    (absent,) = certificate.absent
    assert (absent.party, absent.missing_from) == (VICTIM, 1)
    whole = whole_cost(PLAN, VICTIM)
    assert certificate.claim.epsilon == pytest.approx(claim_of(whole, PLAN.delta).epsilon)
    with closing(LedgerView(lost_in_training.folder.parent / "homes" / VICTIM / "ledger.sqlite")) as ledger:
        really = ledger.spent()
        assert ledger.reserved() != []  # until its administrator withdraws the plan
    assert certificate.claim.epsilon >= compose(ledger_events(lost_in_training), PLAN.delta).epsilon
    assert really.epsilon <= certificate.claim.epsilon


def ledger_events(release: Release) -> list[Any]:
    with closing(LedgerView(release.folder.parent / "homes" / VICTIM / "ledger.sqlite")) as ledger:
        return ledger.events()


def test_verification_holds_and_says_what_is_not_known(lost_in_training: Release) -> None:
    found = findings(lost_in_training.certificate)
    assert not [each for each in found.values() if each.holds is False], found
    assert "ask 1 without party-3" in found["participation"].detail
    spending = found[f"spending of '{VICTIM}'"]
    assert spending.holds is None
    assert "not stated" in spending.detail
    assert "whole reservation" in spending.detail
    words = promise(lost_in_training.certificate)
    assert "without party-3" in words
    assert "Not stated: what was charged at party-3" in words


def test_the_model_is_fitted_with_the_noise_that_is_really_there(lost_in_training: Release) -> None:
    state, _ = archive.unpack((lost_in_training.folder / "model.npz").read_bytes(), "model")
    event = statistics_event(PLAN, inquiries(PLAN)["statistics"].cells.queries)  # type: ignore[attr-defined]
    assert event is not None
    assert float(state["statistics/variance"]) == pytest.approx(summed_variance(PLAN, event, parties=3))


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "the lost are forgotten": lambda c: c.update(absent=[]),
    "the lost spent less": lambda c: c["absent"][0].update(at_most=c["absent"][0]["at_most"][:1]),
    "a sum over one more": lambda c: c["participation"][1]["parties"].append(VICTIM),
    "a sum over one": lambda c: c["participation"][1].update(parties=["party-1"]),
    "a stranger in a sum": lambda c: c["participation"][1]["parties"].append("party-9"),
    "a party twice": lambda c: c["participation"][1]["parties"].append("party-1"),
    "an ask left out": lambda c: c["participation"].pop(),
    "more noise": lambda c: c["participation"][1].update(count_variance=[1e9]),
    "a stated party lost": lambda c: c["absent"][0].update(party="party-1"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_contradiction_is_found(lost_in_training: Release, change: str) -> None:
    content = json.loads(lost_in_training.certificate.model_dump_json())
    CHANGES[change](content)
    certificate = signed(Certificate.model_validate(content), IdentityKey.generate())
    failed = {what for what, finding in findings(certificate).items() if finding.holds is False}
    if change == "a sum over one more":  # the lost one signed nothing, so only the noise speaks against it
        assert failed == {"plan"}
    else:
        assert failed & {"participation", "plan", "ε recomputed"}


def test_a_party_whose_reply_was_lost_still_states_what_it_charged_if_it_can(tmp_path: Path) -> None:
    """It answered ask 1, nobody heard it, and it is back at the end."""
    went = from_ask(1, "reply")
    release = released(tmp_path, lambda kind, envelope: None if kind == "finish" else went(kind, envelope))
    certificate = release.certificate
    assert certificate.absent == []
    stated = {signed.statement.party: signed.statement for signed in certificate.statements}
    assert list(stated) == EVERYBODY
    assert stated[VICTIM].asks == [(0, 1)]
    assert stated["party-1"].asks == [(0, 2)]
    assert certificate.participation[1].parties == OTHERS
    assert first_missing(certificate.participation, VICTIM) == 1
    assert events_of(stated[VICTIM]) == ledger_events(release)
    assert not [each for each in findings(certificate).values() if each.holds is False]
    with closing(LedgerView(tmp_path / "homes" / VICTIM / "ledger.sqlite")) as ledger:
        assert ledger.reserved() == []


def test_below_the_minimum_nothing_is_certified(tmp_path: Path) -> None:
    plan_needs_all = PLAN.model_copy(update={"secure_sum": PLAN.secure_sum.model_copy(update={"minimum_parties": 3})})
    assert plan_needs_all.minimum_parties == 3
    parties = {name: Party(home) for name, home in make_homes(tmp_path, plan_needs_all).items()}
    workspace = Workspace(tmp_path / "work", tmp_path / "out", simulated=True, seed=3)
    with pytest.raises(MissingParties):
        synthesize(plan_needs_all, cast(GridExchange, LossyNetwork(parties, from_ask(1))), workspace, Silent())
    assert not (tmp_path / "out").exists()
    for party in parties.values():
        party.ledger.close()


def test_spans_join_what_is_alike() -> None:
    assert spans_of([4, 0, 1, 2, 7]) == [(0, 2), (4, 4), (7, 7)]
    certificate_like = [*[("training", n, ["a", "b"]) for n in range(3)], ("training", 3, ["a"])]
    spans: list[Participation] = []
    for phase, number, parties in certificate_like:
        spans = joined(spans, Participation(phase=phase, first=number, last=number, parties=parties))
    assert [(span.first, span.last) for span in spans] == [(0, 2), (3, 3)]


def test_tables_of_fewer_rows_do_not_contradict_the_histograms_of_all(lost_in_training: Release) -> None:
    """Two of three parties are in the tables: their counts are taken half as large again, and so is the noise."""
    state, _ = archive.unpack((lost_in_training.folder / "model.npz").read_bytes(), "model")
    pairs = len(state["cliques/0"])
    rows = state["counts/0"].sum() / pairs
    histogram = state["statistics/counts"].sum() / 7  # columns
    really = lost_in_training.certificate.participation[1].count_variance[0]
    assert state["variances"][0] == pytest.approx(really * 1.5**2)
    # The noise is seeded, so this is one fixed draw (170 and 169 rows); tables that are not scaled give 114.
    assert rows == pytest.approx(histogram, rel=0.25)


def never_there(kind: str, envelope: Envelope) -> str:
    return "message"


@pytest.mark.parametrize("loses", [from_ask(0), never_there], ids=["from the first ask", "never there"])
def test_a_party_that_is_in_no_sum_is_accounted_for_too(tmp_path: Path, loses: Loses) -> None:
    certificate = released(tmp_path, loses).certificate
    assert {tuple(span.parties) for span in certificate.participation} == {tuple(OTHERS)}
    assert [(absent.party, absent.missing_from) for absent in certificate.absent] == [(VICTIM, 0)]
    assert not [each for each in findings(certificate).values() if each.holds is False]


def test_a_resumed_run_remembers_who_was_in_the_sums_before(tmp_path: Path) -> None:
    """Everybody is needed for ask 2 by an aggregator that dies there; its successor finds the victim gone."""
    homes = make_homes(tmp_path / "homes", PLAN)
    parties = {name: Party(home) for name, home in homes.items()}
    workspace = Workspace(tmp_path / "work", tmp_path / "out", simulated=True, seed=3)

    class Killed(Exception):
        pass

    def dies(kind: str, envelope: Envelope) -> str | None:
        if kind == "ask" and envelope.options["sequence"] == 2:
            raise Killed
        return None

    with pytest.raises(Killed):
        synthesize(PLAN, cast(GridExchange, LossyNetwork(parties, dies)), workspace, Silent())
    release = synthesize(PLAN, cast(GridExchange, LossyNetwork(parties, never_there)), workspace, Silent())
    for party in parties.values():
        party.ledger.close()
    spans = release.certificate.participation
    assert [(span.first, span.last, span.parties) for span in spans] == [
        (0, 0, EVERYBODY), (1, 1, EVERYBODY), (2, 2, OTHERS)
    ]  # fmt: skip
    assert [(each.party, each.missing_from) for each in release.certificate.absent] == [(VICTIM, 2)]
    assert not [each for each in findings(release.certificate).values() if each.holds is False]
