"""A party's audit log: who decided, which runs were admitted and what was refused, whatever the aggregator sends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from unittest import mock

import pytest

from fed_node.consent import administration
from fed_node.party import Party
from fed_node.process.frames import Request
from fed_node.process.worker import Worker
from fed_node.process.worker_client import WorkerRefused, ask_worker
from synth import programme
from synth.audit_log import FILE, WHO, AuditLog
from synth.errors import FedsynthError
from synth.messages.archive import write_durably
from synth.messages.wire import Envelope
from synth.plan import Plan
from tests.fed_node.two_parties import RUN, CheapTraining, World, make_homes, run_all, small_plan


@pytest.fixture(autouse=True)
def cheap_training() -> Iterator[None]:
    with mock.patch.object(programme, "build", CheapTraining):
        yield


@pytest.fixture
def plan() -> Plan:
    return small_plan(rounds=2)


@pytest.fixture
def homes(tmp_path: Path, plan: Plan) -> dict[str, Path]:
    return make_homes(tmp_path, plan, approved=False)


def trail(home: Path) -> list[tuple[str, str]]:
    return [(line["action"], line["who"]) for line in AuditLog(home / FILE, "").read()]


def carry(path: Path, kind: str, envelope: Envelope) -> Envelope:
    return ask_worker(path, Request(kind, envelope))


def test_a_whole_run_leaves_its_trail(homes: dict[str, Path], plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WHO, "kubernetes:anna")
    for home in homes.values():
        administration.approve(home, plan)
    workers = {name: Worker(Party(home), home / "w.sock") for name, home in homes.items()}
    run_all(plan, World({name: partial(carry, worker.path) for name, worker in workers.items()}))
    for worker in workers.values():
        worker.close()
    for home in homes.values():
        expected = [("approve", "kubernetes:anna"), ("admit", "aggregator"), ("finish", "aggregator")]
        assert trail(home) == expected
        admitted = AuditLog(home / FILE, "").read()[1]
        assert (admitted["run"], admitted["plan"]) == (RUN, plan.digest())


def test_who_decides_while_the_worker_runs_is_noted_by_it(
    homes: dict[str, Path], plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = homes["party-1"]
    with closing(Worker(Party(home), home / "w.sock")):
        write_durably(home / administration.ADDRESS, str((home / "administration.sock").absolute()).encode())
        monkeypatch.setenv(WHO, "kubeconfig:ben")
        administration.approve(home, plan)
        administration.withdraw(home, plan.digest())
    assert trail(home) == [("approve", "kubeconfig:ben"), ("withdraw", "kubeconfig:ben")]


def test_a_refused_approval_is_noted_as_refused(homes: dict[str, Path], plan: Plan) -> None:
    home = homes["party-1"]
    (home / "policy.yaml").write_text(
        "maximum_epsilon_per_run: 0.01\nmaximum_epsilon_in_total: 10\nmaximum_delta: 1.0e-5\nminimum_rows: 50\n"
    )
    with pytest.raises(FedsynthError):
        administration.approve(home, plan)
    lines = AuditLog(home / FILE, "").read()
    assert [(line["action"], line.get("code")) for line in lines] == [
        ("approve", None),
        ("approve-failed", "policy-refused"),
    ]


def test_an_aggregator_cannot_fill_or_word_the_log(homes: dict[str, Path]) -> None:
    """Three hundred refused messages, each with words of its own: two lines, and none of the words."""
    home = homes["party-1"]
    with closing(Worker(Party(home), home / "w.sock")) as worker:
        for number in range(150):
            options = {"run": f"run-{number}", "plan": f"{number:064x}", "epoch": 0}
            for kind in ("hello", f"words-{number}"):
                with pytest.raises(WorkerRefused):
                    ask_worker(worker.path, Request(kind, Envelope({}, options)))
    lines = AuditLog(home / FILE, "").read()
    assert {(line["action"], line["kind"]) for line in lines} == {("refuse", "hello"), ("refuse", "other")}
    assert len(lines) <= 4
    assert "run-" not in (home / FILE).read_text()
    assert "words" not in (home / FILE).read_text()
