"""A dozen runs, a hundred faults of a dozen kinds, nobody at the keyboard (`make test-chaos`).

CHAOS_SEED, CHAOS_RUNS and CHAOS_FAULTS choose; what was done is printed, so that a failure can be played again, and a
session that was cut short goes on with CHAOS_FIRST. After every run: released by itself; every ask charged once at
every party; ε in the certificate is that of the undisturbed first run; the certificate verifies; nothing is left over.
Noise comes from the operating system, so two tables differ; that the *same* table comes out is tested with seeded
parties in tests/fed_node/test_faults_node.py.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aggregator.states import ENDED, RunState
from synth.certificate.certificate import Certificate
from synth.plan import Plan
from synth.programme import programme
from tests.e2e.faults import Fault, chosen
from tests.e2e.federation import AGGREGATOR, Federation, a_cluster, call, fedsynth
from tests.small import plan_of, table

pytestmark = pytest.mark.chaos
PARTIES = ["party-1", "party-2", "party-3"]
SEED, RUNS, COUNT = (int(os.environ.get(f"CHAOS_{name}", given)) for name, given in
                     (("SEED", "1"), ("RUNS", "12"), ("FAULTS", "108")))  # fmt: skip
FIRST = int(os.environ.get("CHAOS_FIRST", "0"))
POLICY = {
    "maximum_epsilon_per_run": 4.0,
    "maximum_epsilon_in_total": 400.0,
    "maximum_delta": 1e-4,
    "minimum_rows": 10,
}
SETTLE_SECONDS, RUN_SECONDS = 10, 1800


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    with a_cluster():
        made = Federation(tmp_path_factory.mktemp("chaos"), PARTIES)
        made.provision()
        try:
            made.install_aggregator()
            for number, party in enumerate(PARTIES):
                rows = table(200, seed=number).to_csv(index=False).encode()
                made.install_party(party, rows, policy=POLICY)
            made.wait_until_connected(set(PARTIES))
            yield made
        finally:
            made.remove()


@pytest.fixture(scope="module")
def calm(federation: Federation) -> float:
    """ε of a run that nothing happened to."""
    return _epsilon(federation, _started(federation, "calm"))


@pytest.mark.parametrize("number", range(FIRST, RUNS))
def test_a_run_is_released_whatever_happens(federation: Federation, calm: float, number: int) -> None:
    share = -(-COUNT // RUNS)
    faults = chosen(SEED, COUNT, PARTIES)[number * share : (number + 1) * share]
    plan = _started(federation, f"chaos-{number}")
    for fault, party in faults:
        if _is_over(federation, plan):
            plan = _went_well(federation, plan, calm) or _started(federation, f"{plan.name}-again")
        _strike(fault, party)
    _went_well(federation, plan, calm)


def _started(federation: Federation, name: str) -> Plan:
    plan = plan_of({"name": "ctgan", "rounds": 25}, name=name)
    federation.approve(plan)
    assert federation.run(plan).returncode == 0
    return plan


def _strike(fault: Fault, party: str) -> None:
    sys.stderr.write(f"\n{time.strftime('%H:%M:%S')} {fault.__name__} ({party})")
    fault(party)
    time.sleep(SETTLE_SECONDS)


def _is_over(federation: Federation, plan: Plan) -> bool:
    standing = federation.standing(plan)
    return standing is not None and standing.state in ENDED


def _went_well(federation: Federation, plan: Plan, calm: float) -> None:
    assert _epsilon(federation, plan) == pytest.approx(calm)
    left = json.loads(call("kubectl", "get", "pods", "-n", AGGREGATOR, "-o", "json"))["items"]
    running = [pod["metadata"]["name"] for pod in left if pod["status"]["phase"] in ("Running", "Pending")]
    assert len(running) == 1, running  # the aggregator, and no job that hangs


def _epsilon(federation: Federation, plan: Plan) -> float:
    """Of the release, once it is there and every ledger agrees with it."""
    federation.wait_for(lambda: _is_over(federation, plan), f"the end of {plan.name}", RUN_SECONDS, pause=5)
    standing = federation.standing(plan)
    assert standing is not None
    assert standing.state is RunState.released, standing
    out = Path(federation.folder / plan.name)
    fedsynth("fetch", plan.name, "--out", str(out), "-n", AGGREGATOR)
    fedsynth("verify", str(out / "certificate.json"), "--keys", str(federation.kits / "keys.yaml"))
    for party in PARTIES:
        entries = federation.ledger(party)["entries"]
        charged = [each for each in entries if each["kind"] == "charge" and each["plan_digest"] == plan.digest()]
        assert sorted(each["sequence"] for each in charged) == list(range(programme(plan).asks))
    certificate = Certificate.model_validate_json((out / "certificate.json").read_bytes())
    assert certificate.claim.epsilon is not None
    return certificate.claim.epsilon
