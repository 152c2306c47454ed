"""The party administrator's commands, as typed."""

from __future__ import annotations

import json
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from crypto.keys import IdentityKey
from fed_node.consent.approvals import Approvals
from fed_node.consent.policy import Policy
from fed_node.ledger.ledger import Budget, Ledger
from fed_node.process.worker_client import ping
from fed_node.settings import PartySettings
from fedsynth.cli import app
from fedsynth.cluster.api import Cluster
from fedsynth.documents import read_document, read_plan
from fedsynth.provision.federation import Member
from fedsynth.provision.fingerprints import bare
from synth.errors import FedsynthError
from tests.fed_node.two_parties import COST, CheapTraining
from tests.small import SCHEMA, plan_content, table


@pytest.fixture(autouse=True)
def cheap_training() -> Iterator[None]:
    with mock.patch("synth.programme.build", CheapTraining):
        yield


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    table(200).to_csv(path, index=False)
    return path


@pytest.fixture
def home(tmp_path: Path, rows: Path) -> Path:
    home = tmp_path / "north"
    assert run("init", "--home", home, "--name", "party-1", "--data", rows).exit_code == 0
    return home


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.yaml"
    content = plan_content({"name": "ctgan", "rounds": 4}, privacy={"epsilon": 0.9, "delta": 1e-6})
    path.write_text(yaml.safe_dump(content))
    return path


def run(*words: object, typed: str | None = None) -> Result:
    """Exit codes of our own errors are given by `main`; here the error itself is at hand."""
    result = CliRunner().invoke(app, ["node", *map(str, words)], input=typed)
    if isinstance(result.exception, FedsynthError):
        result.exit_code = result.exception.exit_code
    return result


def digest_of(plan: Path) -> str:
    return read_plan(plan).digest()


def agreed(plan: Path, home: Path) -> Result:
    """Approved as a program does it, by the whole digest."""
    return run("approve", plan, "--home", home, "--digest", digest_of(plan))


def test_a_new_home_explains_itself_and_is_cautious(home: Path) -> None:
    settings, policy = PartySettings.load(home), Policy.load(home / "policy.yaml")
    assert settings.name == "party-1"
    assert (policy.maximum_epsilon_per_run, policy.maximum_epsilon_in_total) == (1.0, 3.0)
    for model, file in ((PartySettings, "party.yaml"), (Policy, "policy.yaml")):
        text = (home / file).read_text()
        plain = " ".join(line.removeprefix("# ") for line in text.splitlines())
        for name in yaml.safe_load(text):
            assert str(model.model_fields[name].description) in plain
    assert stat.S_IMODE((home / "identity.key").stat().st_mode) == 0o600


def test_a_home_and_a_key_are_never_replaced(home: Path, rows: Path) -> None:
    before = (home / "identity.key").read_bytes()
    assert run("init", "--home", home, "--name", "party-1", "--data", rows).exit_code == 2
    shown = run("keygen", "--home", home)  # its name is in party.yaml
    assert shown.exit_code == 0
    identity = IdentityKey.from_pem(before).identity
    assert bare(identity.fingerprint()) in bare(shown.output)
    assert Member.model_validate(read_document(home / "join.yaml")).identity == identity.to_text()
    assert (home / "identity.key").read_bytes() == before


def test_keygen_and_names(tmp_path: Path, rows: Path) -> None:
    words = ("keygen", "--home", tmp_path / "new", "--name", "north")
    assert run(*words[:3]).exit_code == 2  # whose?
    made = run(*words)
    assert made.exit_code == 0
    folder = tmp_path / "new"
    member = Member.model_validate(read_document(folder / "join.yaml"))
    assert (member.name, member.brings_keys) == ("north", True)
    for line in made.output.splitlines()[1:]:
        assert len(line) <= 80
    secret = yaml.safe_load((folder / "secrets.yaml").read_text())["stringData"]
    for name in ("node.key", "identity.key"):
        assert secret[name] == (folder / name).read_text()
        assert (folder / name).read_text().splitlines()[1] not in made.output + (folder / "join.yaml").read_text()
    for name in ("node.key", "identity.key", "secrets.yaml"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    assert run(*words).output == made.output
    (folder / "node.key").write_text("not a key")
    assert run(*words).exit_code == 2
    for strange in ("North!", "north\x1b[2J", "\u202enorth"):
        assert run("keygen", "--home", tmp_path / "y", "--name", strange).exit_code == 2
        assert run("init", "--home", tmp_path / "x", "--name", strange, "--data", rows).exit_code == 2


def test_data_that_fits_and_data_that_does_not(home: Path, rows: Path, tmp_path: Path, plan: Path) -> None:
    schema = tmp_path / "schema.yaml"
    schema.write_text(yaml.safe_dump(SCHEMA))
    assert run("check-data", "--home", home).exit_code == 2  # no schema yet
    assert run("check-data", "--schema", schema).exit_code == 2  # no rows
    fits = run("check-data", "--home", home, "--schema", schema)
    assert fits.exit_code == 0
    assert "200 rows" in fits.output.replace("\n", " ")
    assert run("check-data", "--home", home, "--schema", plan).exit_code == 0
    bad = tmp_path / "bad.csv"
    content = table(50)
    content.loc[3, "age"] = "secret-177"
    content.to_csv(bad, index=False)
    told = run("check-data", "--data", bad, "--schema", schema)
    assert told.exit_code == 0  # a rule takes care of it
    assert "age" in told.output
    assert "5" in told.output  # row 3 of the table is line 5 of the file
    assert "49 of 50 rows are used" in told.output
    assert "secret" not in told.output
    content.rename(columns={"age": "years"}).to_csv(bad, index=False)
    assert run("check-data", "--data", bad, "--schema", schema).exit_code == 2
    content.head(1).to_csv(bad, index=False)
    assert run("check-data", "--data", bad, "--schema", schema).exit_code == 2


def test_approving_shows_the_rows_beside_the_plan(home: Path, rows: Path, plan: Path) -> None:
    content = table(50)
    content.loc[3, "age"] = "177"
    content.to_csv(rows, index=False)
    shown = run("approve", plan, "--home", home, "--show")
    assert "numbers above 100" in shown.output.replace("\n", " ") or "above" in shown.output
    assert "50 of 50 rows are used" in shown.output
    rows.unlink()
    away = agreed(plan, home)
    assert away.exit_code == 0
    assert "could not be looked at from here" in away.output


def test_the_schemas_of_approved_plans_are_checked_by_default(home: Path, plan: Path) -> None:
    assert agreed(plan, home).exit_code == 0
    assert run("check-data", "--home", home).exit_code == 0


def test_approving_shows_what_leaves_and_what_it_costs_and_asks(home: Path, plan: Path) -> None:
    digest = digest_of(plan)
    for typed in ("n\n", "y\n", "yes\n", "\n", digest[:8] + "\n", digest[-7:] + "\n", ""):
        declined = run("approve", plan, "--home", home, typed=typed)
        assert declined.exit_code == 1
        assert Approvals(home / "approved").digests() == []
    for words in ("What leaves this party", "What it costs", "Your budget: ε = 3", "type its last 8 characters"):
        assert words in declined.output
    assert max(map(len, declined.output.splitlines())) <= 80
    approved = run("approve", plan, "--home", home, typed=f"{digest[-8:].upper()}\n")
    assert approved.exit_code == 0
    assert Approvals(home / "approved").digests() == [digest]
    assert digest in approved.output.replace("\n", "").replace(" ", "")


def test_a_program_names_the_whole_digest_and_showing_approves_nothing(home: Path, plan: Path) -> None:
    other = run("approve", plan, "--home", home, "--digest", "0" * 64)
    assert other.exit_code == 2
    assert run("approve", plan, "--home", home, "--digest", digest_of(plan)[-8:]).exit_code == 2
    shown = run("approve", plan, "--home", home, "--show")
    assert shown.exit_code == 0
    assert "What it costs" in shown.output
    assert run("approve", plan, "--home", home, "--yes").exit_code == 2  # nobody is spared the question any more
    assert run("approve", plan).exit_code == 2
    assert Approvals(home / "approved").digests() == []
    assert agreed(plan, home).exit_code == 0


def test_in_a_cluster_a_person_reads_the_screen_and_the_pod_approves_that_very_plan(home: Path, plan: Path) -> None:
    """The pod is this command again, on the party's home; only the stream between them is played."""
    asked: list[list[str]] = []

    def in_pod(cluster: object, pod: str, container: str, command: list[str], typed: str) -> str:
        assert (pod, container) == ("fed-node-0", "worker")
        assert command[:4] == ["/usr/bin/env", "FEDSYNTH_WHO=kubernetes:ana", "fedsynth", "node"]
        asked.append(command)
        done = run(*(str(home) if word == "/var/lib/fedsynth" else word for word in command[4:]), typed=typed)
        assert done.exit_code == 0, done.output
        return done.output + "\x1b[2J"  # what a pod prints is shown, never obeyed

    pods = [SimpleNamespace(metadata=SimpleNamespace(name="fed-node-0"))]
    place = ("--namespace", "fed")
    with (
        mock.patch.object(Cluster, "__init__", return_value=None),
        mock.patch.object(Cluster, "pods", return_value=pods),
        mock.patch.object(Cluster, "run_in", in_pod),
        mock.patch("fedsynth.cluster.user.kubernetes_user", return_value="kubernetes:ana"),
    ):
        assert run("approve", plan, *place, typed="y\n").exit_code == 1
        assert len(asked) == 1
        approved = run("approve", plan, *place, typed=digest_of(plan)[-8:] + "\n")
        program = run("approve", plan, *place, "--digest", digest_of(plan))
    assert approved.exit_code == 0
    for words in ("What leaves this party", "Your budget: ε = 3", "\\x1b[2J", "Approved"):
        assert words in approved.output
        assert words in program.output
    assert "\x1b" not in approved.output + program.output
    assert asked[-1][-2:] == ["--digest", digest_of(plan)]
    assert Approvals(home / "approved").digests() == [digest_of(plan)]


def test_policy_and_budget_are_no_questions(home: Path, plan: Path, tmp_path: Path) -> None:
    costly = tmp_path / "costly.yaml"
    costly.write_text(plan.read_text().replace("epsilon: 0.9", "epsilon: 1.5"))
    refused = agreed(costly, home)
    assert refused.exit_code == 4
    assert "one run may spend 1" in str(refused.exception)
    ledger = Ledger(home / "ledger.sqlite", "default", Budget(3.0, 1e-5))
    ledger.reserve("earlier", "p" * 64, [COST] * 400, automatic=True)
    ledger.close()
    policy = home / "policy.yaml"
    policy.write_text(policy.read_text().replace("maximum_epsilon_in_total: 3.0", "maximum_epsilon_in_total: 1.0"))
    short = agreed(plan, home)
    assert short.exit_code == 3
    assert Approvals(home / "approved").digests() == []


def test_an_approval_is_seen_in_the_ledger_and_can_be_withdrawn(home: Path, plan: Path) -> None:
    agreed(plan, home)
    again = agreed(plan, home)
    assert again.exit_code == 0
    assert "set aside already" in " ".join(again.output.split())
    (digest,) = Approvals(home / "approved").digests()
    with mock.patch.dict("os.environ", {"COLUMNS": "250"}):
        shown = run("ledger", "--home", home).output
    for words in ("plan approved: its whole cost is set aside", f"approved, not begun, plan {digest}"):
        assert words in shown
    exported = json.loads(run("ledger", "--home", home, "--json").output)
    assert [(each["plan_digest"], each["run"]) for each in exported["reservations"]] == [(digest, "")]
    assert run("withdraw", plan, "--home", home).exit_code == 0
    assert Approvals(home / "approved").digests() == []
    assert run("withdraw", digest, "--home", home).exit_code == 0  # nothing is left to withdraw
    exported = json.loads(run("ledger", "--home", home, "--json").output)
    assert [entry["kind"] for entry in exported["entries"]] == ["open", "approve", "withdraw"]
    assert exported["reservations"] == []
    assert run("withdraw", "no-such-plan.yaml", "--home", home).exit_code == 2


def test_a_plan_that_does_not_fit_is_refused_with_the_figures(home: Path, plan: Path) -> None:
    ledger = Ledger(home / "ledger.sqlite", "default", Budget(3.0, 1e-5))
    ledger.reserve("earlier", "p" * 64, [COST] * 600, automatic=True)
    reserved = ledger.committed().epsilon
    ledger.close()
    policy = home / "policy.yaml"
    policy.write_text(policy.read_text().replace("in_total: 3.0", f"in_total: {reserved + 1e-3}"))
    refused = agreed(plan, home)
    assert refused.exit_code == 3
    assert f"from ε = {reserved:.4g} to ε = " in str(refused.exception)
    assert f"the budget is {reserved + 1e-3:g}" in str(refused.exception)
    assert Approvals(home / "approved").digests() == []


def test_a_plan_that_does_not_name_this_party(home: Path, plan: Path) -> None:
    (home / "party.yaml").write_text((home / "party.yaml").read_text().replace("party-1", "party-9"))
    assert agreed(plan, home).exit_code == 2


def test_the_ledger_is_shown_verified_and_exported(home: Path) -> None:
    assert run("ledger", "--home", home).exit_code == 2  # none yet
    ledger = Ledger(home / "ledger.sqlite", "default", Budget(3.0, 1e-5))
    ledger.reserve("run-1", "p" * 64, [COST] * 3, automatic=True)
    ledger.charge("run-1", "p" * 64, 0, "a", [COST])
    head = ledger.head
    with mock.patch.dict("os.environ", {"COLUMNS": "200"}):
        shown = run("ledger", "--home", home)  # while the worker holds it
    ledger.close()
    assert shown.exit_code == 0
    for words in (
        "ε = 3 at δ = 1e-05",
        "spent and reserved",
        "run-1",
        "ask charged",
        "2 steps on 2.000% of rows",
        head,
    ):
        assert words in shown.output
    assert head in run("ledger", "--home", home, "--verify").output
    exported = json.loads(run("ledger", "--home", home, "--json").output)
    assert exported["head"] == head
    assert [entry["kind"] for entry in exported["entries"]] == ["open", "reserve", "charge"]
    with sqlite3.connect(home / "ledger.sqlite") as database:
        database.executescript("DROP TRIGGER entries_stay; UPDATE entries SET body = replace(body, '1.5', '9.5')")
    database.close()
    assert run("ledger", "--home", home, "--verify").exit_code == 6


@pytest.mark.parametrize(
    ("file", "old", "new", "why"),
    [
        ("party.yaml", "name: party-1", "name: party-1\nseed: 4", "seed"),
        ("policy.yaml", None, None, "budget"),
        ("identity.key", None, None, "identity key"),
    ],
)
def test_a_worker_does_not_start_without_what_protects_the_rows(
    home: Path, file: str, old: str | None, new: str | None, why: str
) -> None:
    path = home / file
    if old is None or new is None:
        path.unlink()
    else:
        path.write_text(path.read_text().replace(old, new))
    refused = run("serve", "--home", home)
    assert refused.exit_code == 2
    assert why in str(refused.exception)


def test_the_worker_serves_as_a_command_and_plans_are_approved_beside_it(home: Path, plan: Path) -> None:
    code = "from fedsynth.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "node", "serve", "--home", str(home)], stderr=subprocess.PIPE, text=True
    )
    ready, deadline = home / "worker.ready", time.monotonic() + 60
    while not ready.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert ping(home / "worker.sock")["party"] == "party-1"
    second = subprocess.run(
        [sys.executable, "-c", code, "node", "serve", "--home", str(home)], capture_output=True, text=True, timeout=60
    )
    assert second.returncode == 6
    assert "has one writer" in second.stderr
    assert ready.exists()
    assert agreed(plan, home).exit_code == 0
    (digest,) = Approvals(home / "approved").digests()
    exported = json.loads(run("ledger", "--home", home, "--json").output)
    assert [(each["plan_digest"], each["run"]) for each in exported["reservations"]] == [(digest, "")]
    assert run("withdraw", digest, "--home", home).exit_code == 0
    process.send_signal(signal.SIGTERM)
    _, printed = process.communicate(timeout=30)
    assert process.returncode == 0
    logged = [json.loads(line)["message"] for line in printed.splitlines()]
    assert logged == ["ready", "ended"]
    assert (home / "party.log").read_text() == printed
