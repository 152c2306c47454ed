"""A ledger that is replaced by an older copy, or chained anew, is found by those who saw more, and made up for.

Real parties, ledgers and seals; only the network is a function.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aggregator.sums.secure_sum import SecureSum
from crypto.keys import IdentityKey
from fed_node.consent import administration
from fed_node.errors import RolledBack
from fed_node.ledger.ledger import Ledger, LedgerView
from fed_node.party import Party
from fed_node.seal.standing import Seen
from fed_node.settings import LEDGER
from fed_node.witnesses import MISSING, STANDING, WITNESSED, Witnesses
from fedsynth.cli import app
from synth.certificate.certificate import Certificate, SignedStatement
from synth.errors import BudgetError, FedsynthError, InputError, Refusal
from synth.programme import whole_cost
from tests.fed_node.two_parties import CheapTraining, World, make_homes, run_all, small_plan

PLAN = small_plan(rounds=2)
FIRST, SECOND = "party-1", "party-2"
BUDGET = {"budget": {"epsilon": 50.0, "delta": 1e-4}, "seed": None}


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synth.programme.build", CheapTraining)


@pytest.fixture
def homes(tmp_path: Path) -> dict[str, Path]:
    return make_homes(tmp_path, PLAN, **BUDGET)


@contextmanager
def served(homes: dict[str, Path]) -> Iterator[World]:
    parties = {name: Party(home) for name, home in homes.items()}
    try:
        yield World({name: party.handle for name, party in parties.items()})
    finally:
        for party in parties.values():
            party.ledger.close()


def run(homes: dict[str, Path], name: str) -> None:
    """Approved anew by everybody, and carried out."""
    for home in homes.values():
        administration.approve(home, PLAN)
    with served(homes) as world:
        run_all(PLAN, world, name)


def greeted(homes: dict[str, Path], name: str) -> None:
    with served(homes) as world:
        sums = SecureSum(PLAN, name, world)
        sums.agree_on_keys(world("hello", dict.fromkeys(sums.parties, sums.hello())).received)


def copied(home: Path, *files: str) -> dict[str, bytes]:
    return {name: (home / name).read_bytes() for name in files}


def put_back(home: Path, copy: dict[str, bytes]) -> None:
    for name, content in copy.items():
        (home / name).write_bytes(content)


def spent(home: Path) -> float:
    with closing(LedgerView(home / LEDGER)) as view:
        return view.spent().epsilon


def node_ledger(home: Path, *words: object) -> int:
    result = CliRunner().invoke(app, ["node", "ledger", "--home", str(home), *map(str, words)])
    return result.exception.exit_code if isinstance(result.exception, FedsynthError) else result.exit_code


@pytest.fixture
def rolled_back(homes: dict[str, Path]) -> dict[str, Path]:
    """The whole volume of a party is as it was before the last run."""
    run(homes, "run-1")
    before = homes[FIRST].with_name("backup")
    shutil.copytree(homes[FIRST], before)
    run(homes, "run-2")
    shutil.rmtree(homes[FIRST])
    shutil.copytree(before, homes[FIRST])
    return homes


def test_an_older_ledger_beside_a_newer_volume_does_not_open(homes: dict[str, Path]) -> None:
    """It opened silently, with the budget that was spent since."""
    run(homes, "run-1")
    older = copied(homes[FIRST], LEDGER)
    run(homes, "run-2")
    put_back(homes[FIRST], older)
    with pytest.raises(RolledBack, match="run-2"):
        Party(homes[FIRST])
    (homes[FIRST] / STANDING).unlink()
    with pytest.raises(RolledBack, match="run-2"):  # the folder of its keys remembers, too
        Party(homes[FIRST])


def test_a_whole_volume_that_is_older_is_found_by_what_the_others_saw(rolled_back: dict[str, Path]) -> None:
    administration.approve(rolled_back[FIRST], PLAN)
    administration.approve(rolled_back[SECOND], PLAN)
    before = spent(rolled_back[FIRST])
    with pytest.raises(Refusal) as refusal:
        greeted(rolled_back, "run-3")
    assert (refusal.value.party, refusal.value.code) == (FIRST, "ledger-rolled-back")
    assert (rolled_back[FIRST] / MISSING).exists()
    with pytest.raises(RolledBack):
        Party(rolled_back[FIRST])
    assert spent(rolled_back[FIRST]) == before


def test_a_party_whose_ledger_went_back_is_refused_by_those_who_saw_more(
    rolled_back: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should it not look for itself."""
    for home in rolled_back.values():
        administration.approve(home, PLAN)
    monkeypatch.setattr(Witnesses, "_look_for_own", lambda *_: None)
    with pytest.raises(Refusal) as refusal:
        greeted(rolled_back, "run-3")
    assert (refusal.value.party, refusal.value.code) == (SECOND, "peer-rolled-back")


def test_a_ledger_that_was_begun_anew_is_another_one(homes: dict[str, Path]) -> None:
    run(homes, "run-1")
    kept = copied(homes[FIRST], "party.yaml", "identity.key", "rows.csv")
    shutil.rmtree(homes[FIRST])
    homes[FIRST].mkdir()
    put_back(homes[FIRST], kept)
    for home in homes.values():
        administration.approve(home, PLAN)
    with pytest.raises(Refusal, match="ledger-rolled-back"):
        greeted(homes, "run-2")


def test_nobody_can_close_a_party_with_a_head_that_it_never_signed(homes: dict[str, Path]) -> None:
    run(homes, "run-1")
    path = homes[SECOND] / WITNESSED
    content = json.loads(path.read_text())
    content[FIRST] |= {"number": 10**6, "head": "f" * 64}
    path.write_text(json.dumps(content))
    for home in homes.values():
        administration.approve(home, PLAN)
    with pytest.raises(Refusal) as refusal:  # the liar refuses; the other stays open
        greeted(homes, "run-2")
    assert refusal.value.party == SECOND
    assert not (homes[FIRST] / MISSING).exists()


def test_honest_parties_go_on_through_many_runs_and_epochs(homes: dict[str, Path]) -> None:
    for name in ("run-1", "run-2"):
        run(homes, name)
    for home in homes.values():
        administration.approve(home, PLAN)
    for _ in range(2):
        greeted(homes, "run-3")
    seen = json.loads((homes[SECOND] / WITNESSED).read_text())[FIRST]
    assert Seen.model_validate(seen).run == "run-3"


def test_runs_whose_messages_cross_are_no_rollback(homes: dict[str, Path]) -> None:
    """Greeted for one run, then for another, then agreed on keys in the other order."""
    other = small_plan(rounds=3)
    for home in homes.values():
        administration.approve(home, PLAN)
        administration.approve(home, other)
    with served(homes) as world:
        first, second = SecureSum(PLAN, "run-1", world), SecureSum(other, "run-2", world)
        greetings = [world("hello", dict.fromkeys(each.parties, each.hello())).received for each in (first, second)]
        second.agree_on_keys(greetings[1])
        first.agree_on_keys(greetings[0])
    assert json.loads((homes[SECOND] / WITNESSED).read_text())[FIRST]["run"] == "run-2"


# ── what the heads tell ──


def test_heads_depend_on_plans_and_charges_and_on_no_answer(tmp_path: Path) -> None:
    heads = []
    for answer in ("a" * 64, "b" * 64):
        with closing(Ledger(tmp_path / f"{answer[0]}.sqlite", "patients", None)) as ledger:
            ledger._current().heads[0] = "the same beginning"
            ledger.reserve("r", PLAN.digest(), whole_cost(PLAN, FIRST), automatic=True)
            ledger.charge("r", PLAN.digest(), 0, "c" * 64, whole_cost(PLAN, FIRST)[:1])
            ledger.answer("r", 0, "c" * 64, answer)
            ledger.finish("r")
            heads.append((ledger.head_at(5), ledger.head))
    assert heads[0][0] == heads[1][0]
    assert heads[0][1] != heads[1][1]


# ── the drill ──


def certificate_of(homes: dict[str, Path], name: str, path: Path) -> Path:
    """A certificate as far as a party's own statement in it goes."""
    with served(homes) as world:
        sums = SecureSum(PLAN, name, world)
        sums.agree_on_keys(world("hello", dict.fromkeys(sums.parties, sums.hello())).received)
        statements: list[SignedStatement] = sums.finish()
    claim = {"epsilon": 1.0, "nominal_epsilon": 1.0, "delta": 1e-5, "method": "pld"}
    told = dict.fromkeys(("noise", "sampling", "code_version", "schema_digest"), "")
    content = told | {
        "run": name,
        "plan_digest": PLAN.digest(),
        "profile": "rigorous",
        "secure_sum": {},
        "claim": claim,
    }
    content |= {"simulated": False, "table_sha256": {}, "statements": [each.model_dump() for each in statements]}
    path.write_text(Certificate.model_validate(content).model_dump_json())
    return path


def test_the_ledger_is_held_against_a_certificate(homes: dict[str, Path], tmp_path: Path) -> None:
    run(homes, "run-1")
    older = copied(homes[FIRST], LEDGER)
    run(homes, "run-2")
    certificate = certificate_of(homes, "run-2", tmp_path / "certificate.json")
    assert node_ledger(homes[FIRST], "--against", certificate) == 0
    newer = copied(homes[FIRST], LEDGER)
    put_back(homes[FIRST], older)
    assert node_ledger(homes[FIRST], "--verify") == 0  # the chain alone knows nothing
    assert node_ledger(homes[FIRST], "--against", certificate) == 7
    put_back(homes[FIRST], newer)
    (homes[FIRST] / "identity.key").write_bytes(IdentityKey.generate().to_pem())
    assert node_ledger(homes[FIRST], "--against", certificate) == 2


def test_the_drill_charges_what_the_certificate_states_and_opens(homes: dict[str, Path], tmp_path: Path) -> None:
    run(homes, "run-1")
    older = copied(homes[FIRST], LEDGER)
    run(homes, "run-2")
    certificate = certificate_of(homes, "run-2", tmp_path / "certificate.json")
    whole = spent(homes[FIRST])
    put_back(homes[FIRST], older)
    assert spent(homes[FIRST]) < whole
    assert node_ledger(homes[FIRST], "--restored", "--certificate", certificate) == 0
    assert spent(homes[FIRST]) == pytest.approx(whole)
    run(homes, "run-3")
    assert node_ledger(homes[FIRST], "--restored", "--certificate", certificate) == 0  # again: nothing is lacking
    assert node_ledger(homes[FIRST], "--against", certificate) == 0


def test_without_a_certificate_the_whole_plan_is_charged(rolled_back: dict[str, Path]) -> None:
    """The plan lies on the volume, as it was approved there; the approval that the lost run used is gone."""
    for home in rolled_back.values():
        administration.approve(home, PLAN)
    with pytest.raises(Refusal):
        greeted(rolled_back, "run-3")
    before = spent(rolled_back[FIRST])
    assert node_ledger(rolled_back[FIRST], "--restored") == 0
    assert spent(rolled_back[FIRST]) > before
    with closing(LedgerView(rolled_back[FIRST] / LEDGER)) as view:
        assert view.is_finished("run-2")
        assert view.lost()
    run(rolled_back, "run-4")


def test_what_nobody_knows_is_written_off_for_good(homes: dict[str, Path]) -> None:
    run(homes, "run-1")
    older = copied(homes[FIRST], LEDGER)
    run(homes, "run-2")
    put_back(homes[FIRST], older)
    for folder in ("approved", "begun"):
        shutil.rmtree(homes[FIRST] / folder, ignore_errors=True)
    assert node_ledger(homes[FIRST], "--restored") == 2
    with pytest.raises(RolledBack):
        Party(homes[FIRST])
    assert node_ledger(homes[FIRST], "--restored", "--write-off") == 0
    with pytest.raises((BudgetError, InputError)):
        administration.approve(homes[FIRST], PLAN)
