"""The consoles: who is let in, what they show, what a form must carry, and that an offer is no approval."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from pathlib import Path

import pytest
import yaml
from starlette.testclient import TestClient

from aggregator.states import RunState, Standing, now_text
from fed_node.consent.administration import ADDRESS
from fed_node.consent.offers import MOST_OFFERS, OFFERED, Offers
from fed_node.errors import NotApproved
from fed_node.party import Party
from fed_node.process.worker import Worker
from fedsynth.console.aggregator import aggregator_console
from fedsynth.console.guarding import Guard, new_token
from fedsynth.console.party import party_console
from fedsynth.party_home import make_home
from synth.audit_log import FILE, AuditLog
from synth.messages.wire import Envelope
from synth.plan import Plan
from tests.small import plan_of, table

BASE = "http://localhost:8600"
PLAN = plan_of({"name": "marginals"}, privacy={"epsilon": 1.0, "delta": 1e-6})


def client(app: Guard) -> TestClient:
    browser = TestClient(app, base_url=BASE)
    assert browser.get(f"/?token={app.token}").status_code == 200
    return browser


def standing(plan: str, number: int, state: RunState = RunState.released, **facts: object) -> Standing:
    now = now_text()
    whole = {"state": state, "stage": "training", "round": 1, "rounds": 2} | facts
    return Standing(plan, f"{number:064x}", ["north", "south"], began=now, updated=now, since=now, **whole)  # type: ignore[arg-type]


def report(state: Path, run: Standing) -> None:
    folder = state / "runs" / run.digest
    folder.mkdir(parents=True)
    (folder / "progress.json").write_text(json.dumps(run.to_json()))


@pytest.fixture
def app(tmp_path: Path) -> Guard:
    report(tmp_path, standing("census", 1))
    facts = {"waiting_for": ["south"], "waiting_why": "its node is away"}
    report(tmp_path, standing("<b>forged</b>", 2, RunState.waiting, **facts))
    (tmp_path / "metrics.prom").write_text('fedsynth_party_connected{party="north"} 1\n')
    AuditLog(tmp_path / FILE, "aggregator").note("run", "kubernetes:anna", plan="0" * 64)
    return aggregator_console(tmp_path, tmp_path / "metrics.prom", "a token")


def test_without_the_token_nobody_sees_anything(app: Guard) -> None:
    stranger = TestClient(app, base_url=BASE)
    for path in ("/", "/audit", "/events", "/style.css", f"/runs/{1:064x}", "/?token=another"):
        answer = stranger.get(path)
        assert answer.status_code == 401
        assert "census" not in answer.text
    assert stranger.get("/health").text == "ok"


def test_another_hosts_name_is_refused_even_with_the_token(app: Guard) -> None:
    """A foreign site may let its own name point to loopback; then the browser would send no cookie, but might learn."""
    assert client(app).get("/", headers={"Host": "evil.example"}).status_code == 421
    assert client(app).get("/?token=a%20token", headers={"Host": "localhost.evil.example"}).status_code == 421


def test_the_token_does_not_stay_in_the_address(app: Guard) -> None:
    answer = TestClient(app, base_url=BASE, follow_redirects=False).get("/?token=a%20token")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "samesite=strict" in answer.headers["set-cookie"].lower()


def test_a_token_file_is_its_owners_alone(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("old, and readable")
    (tmp_path / "token").chmod(0o644)
    token = new_token(tmp_path / "token")
    assert (tmp_path / "token").read_text() == token
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600


def test_runs_are_listed_with_whom_they_wait_for(app: Guard) -> None:
    page = client(app).get("/").text
    assert "census" in page
    assert "for south since" in page
    assert "its node is away" in page
    assert "north: connected" in page
    assert "<b>forged" not in page
    assert "&lt;b&gt;forged" in page


def test_pages_allow_no_foreign_code_and_hold_none(app: Guard) -> None:
    browser = client(app)
    for path in ("/", f"/runs/{1:064x}", "/audit"):
        answer = browser.get(path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert not re.search(r"<script(?! src=\"/console.js\")|<style|style=|onclick|https?://", answer.text)
    assert "kubernetes:anna" in browser.get("/audit").text


def test_the_operators_page_takes_no_orders(app: Guard) -> None:
    browser = client(app)
    for path in ("/", f"/runs/{1:064x}", "/audit"):
        assert browser.post(path, headers={"Origin": BASE}).status_code == 405


def test_what_is_no_run_is_a_sentence(app: Guard) -> None:
    for path in ("/runs/..%2f..%2fetc", f"/runs/{9:064x}", f"/runs/{1:064x}/certificate"):
        assert client(app).get(path).status_code in (400, 404)


def test_a_thousand_runs_are_painted_within_a_second(tmp_path: Path) -> None:
    for number in range(1000):
        report(tmp_path, standing(f"plan-{number}", number))
    browser = client(aggregator_console(tmp_path, None, "a token"))
    began = time.process_time()
    assert browser.get("/").text.count("<tr>") == 1001
    assert time.process_time() - began < 1


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home"
    table(200).to_csv(tmp_path / "rows.csv", index=False)
    make_home(place, "party-1", tmp_path / "rows.csv")
    settings = yaml.safe_load((place / "party.yaml").read_text())
    (place / "party.yaml").write_text(yaml.safe_dump(settings))
    return place


@pytest.fixture
def worker(home: Path) -> Iterator[Worker]:
    (home / ADDRESS).write_text(str(home / "a.sock"))
    with closing(Worker(Party(home), home / "w.sock", home / "a.sock")) as running:
        yield running


def offered(party: Party, plan: Plan) -> None:
    text = plan.model_dump_json(by_alias=True)
    with pytest.raises(NotApproved):
        party.handle("hello", Envelope({}, {"run": "0" * 16, "plan": plan.digest(), "plan_text": text, "epoch": 1}))


def form_of(browser: TestClient, plan: Plan) -> dict[str, str]:
    page = browser.get(f"/plans/{plan.digest()}").text
    found = {name: unescape(value) for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page)}
    return found | {"typed": plan.digest()[-8:]}


def test_an_offered_plan_waits_and_is_approved_by_its_digest(home: Path, worker: Worker) -> None:
    offered(worker.party, PLAN)
    browser, own = client(party_console(home, "a token")), {"Origin": BASE}
    assert f"/plans/{PLAN.digest()}" in browser.get("/").text
    assert "What leaves this party" in browser.get(f"/plans/{PLAN.digest()}").text
    form = form_of(browser, PLAN)
    for wrong, headers in (
        (form, {}),  # of no page
        (form, {"Origin": "http://localhost:9999"}),  # of another page of this very host
        (form | {"key": "0" * 64}, own),
        (form | {"typed": ""}, own),
        (form | {"typed": "00000000"}, own),
    ):
        assert browser.post("/approve", data=wrong, headers=headers).status_code >= 400
        assert not worker.party.approvals.has(PLAN.digest())
    assert "This plan is approved" in browser.post("/approve", data=form, headers=own).text
    assert worker.party.approvals.has(PLAN.digest())
    assert worker.party.ledger.is_set_aside(PLAN.digest())
    assert "plan approved" in browser.get("/ledger").text


def test_a_plan_beyond_the_policy_has_no_button(home: Path, worker: Worker) -> None:
    greedy = plan_of({"name": "marginals"}, privacy={"epsilon": 2.0, "delta": 1e-6})
    offered(worker.party, greedy)
    browser = client(party_console(home, "a token"))
    page = browser.get(f"/plans/{greedy.digest()}").text
    assert "It cannot be approved" in page
    assert "<form" not in page
    form = {"key": form_of(browser, greedy).get("key", ""), "plan": greedy.model_dump_json(by_alias=True)}
    form |= {"typed": greedy.digest()[-8:], "key": re.search(r'name="key" value="(\w+)"', browser.get("/").text)[1]}  # type: ignore[index]
    assert browser.post("/approve", data=form, headers={"Origin": BASE}).status_code == 409
    assert not worker.party.approvals.has(greedy.digest())


def test_no_row_is_on_any_page(home: Path, worker: Worker) -> None:
    offered(worker.party, PLAN)
    browser = client(party_console(home, "a token"))
    cells = {f"p{number}" for number in range(50, 200)}  # identifiers
    for path in ("/", "/ledger", "/audit", f"/plans/{PLAN.digest()}"):
        assert not cells & set(re.findall(r"\w+", browser.get(path).text))


def test_an_offer_is_no_approval_and_few_are_kept(home: Path) -> None:
    party = Party(home)
    with closing(party.ledger):
        for number in range(MOST_OFFERS + 5):
            offered(party, plan_of({"name": "marginals"}, name=f"plan-{number}"))
        offered(party, plan_of({"name": "marginals"}, name=f"plan-{MOST_OFFERS + 4}"))  # again, and still refused
        assert len(list((home / OFFERED).glob("*.json"))) == MOST_OFFERS
        assert party.approvals.digests() == []


def test_a_volume_that_cannot_be_written_changes_no_refusal(tmp_path: Path) -> None:
    (tmp_path / "offered").write_text("a file, no folder")
    with pytest.raises(NotApproved), Offers(tmp_path / "offered", "party-1").kept_if_refused(PLAN):
        raise NotApproved("as ever")
    with pytest.raises(NotApproved), Offers(tmp_path / "other", "somebody-else").kept_if_refused(PLAN):
        raise NotApproved("as ever")
    assert not (tmp_path / "other").exists()
