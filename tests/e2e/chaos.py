"""Runs that things happen to while nobody is at the keyboard, and what must hold after each of them.

Released by itself; every ask charged once at every party; ε in the certificate is that of an undisturbed run; the
certificate verifies; nothing is left over. Noise comes from the operating system, so two tables differ; that the *same*
table comes out is tested with seeded parties in tests/fed_node/test_faults_node.py.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from aggregator.states import ENDED, RunState, Standing
from fedsynth.cluster.errors import ClusterError
from synth.certificate.certificate import Certificate
from synth.plan import Plan
from synth.programme import programme
from tests.e2e.faults import TAKES_A_PARTY_AWAY, Fault
from tests.e2e.federation import AGGREGATOR, Federation, call, fedsynth

SETTLE_SECONDS, RUN_SECONDS = 20, 1800
COUNT_ORPHANS = """
import sqlite3
base = sqlite3.connect("file:/var/lib/fedsynth/superlink.sqlite?mode=ro", uri=True)
tables = ("message_ins", "message_res", "objects", "run_objects")
print(sum(base.execute(f"select count(*) from {table}").fetchone()[0] for table in tables))
"""


@dataclass
class Story:
    """One federation, the faults that befell it, and whether people were told whom it waited for."""

    federation: Federation
    plan: Callable[[str], Plan]  # of a run by this name
    struck: list[str] = field(default_factory=list)
    named: list[bool] = field(default_factory=list)  # of faults that took a party away while a run went on

    def started(self, name: str) -> Plan:
        plan = self.plan(name)
        self.federation.approve(plan)
        assert self.federation.run(plan).returncode == 0
        return plan

    def strike(self, fault: Fault, party: str, plan: Plan) -> None:
        """Let it happen, and look meanwhile who is said to be missing, if the run is held up by it."""
        sys.stderr.write(f"\n{time.strftime('%H:%M:%S')} {fault.__name__} ({party})")
        self.struck.append(fault.__name__)
        before, named, began = self._round(plan), False, time.monotonic()
        with ThreadPoolExecutor(1) as pool:
            happening = pool.submit(fault, party)
            while not happening.done() or time.monotonic() - began < SETTLE_SECONDS:
                standing = self._standing(plan)
                named = named or (standing is not None and party in {*standing.waiting_for, *standing.unanswered})
                time.sleep(1)
            happening.result()
        if fault in TAKES_A_PARTY_AWAY and (named or self._round(plan) == before):
            self.named.append(named)

    def _standing(self, plan: Plan) -> Standing | None:
        """None also while the aggregator is not there to be asked."""
        try:
            return self.federation.standing(plan)
        except ClusterError:
            return None

    def _round(self, plan: Plan) -> int | None:
        standing = self._standing(plan)
        return standing.round if standing else None

    def is_over(self, plan: Plan) -> bool:
        standing = self._standing(plan)
        return standing is not None and standing.state in ENDED

    def epsilon(self, plan: Plan) -> float:
        """Of the release, once it is there and every ledger agrees with it."""
        self.federation.wait_for(lambda: self.is_over(plan), f"the end of {plan.name}", RUN_SECONDS, pause=5)
        standing = self.federation.standing(plan)
        assert standing is not None
        assert standing.state is RunState.released, standing
        out = Path(self.federation.folder / plan.name)
        fedsynth("fetch", plan.name, "--out", str(out), "-n", AGGREGATOR)
        fedsynth("verify", str(out / "certificate.json"), "--keys", str(self.federation.kits / "keys.yaml"))
        for party in self.federation.parties:
            entries = self.federation.ledger(party)["entries"]
            charged = [each for each in entries if each["kind"] == "charge" and each["plan_digest"] == plan.digest()]
            assert sorted(each["sequence"] for each in charged) == list(range(programme(plan).asks))
        certificate = Certificate.model_validate_json((out / "certificate.json").read_bytes())
        assert certificate.claim.epsilon is not None
        return certificate.claim.epsilon

    def went_well(self, plan: Plan, calm: float) -> None:
        """Also that no pod hangs and that the SuperLink holds nothing of a run that ended."""
        assert self.epsilon(plan) == pytest.approx(calm)
        pods = json.loads(call("kubectl", "get", "pods", "-n", AGGREGATOR, "-o", "json"))["items"]
        alive = [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] in ("Running", "Pending")]
        assert len(alive) == 1, alive  # the aggregator, and no job
        assert self.orphans() == 0

    def orphans(self) -> int:
        """Messages and their objects that the SuperLink still stores; no run is going on."""
        place = ["-n", AGGREGATOR, "deploy/aggregator", "-c", "superlink", "--"]
        return int(call("kubectl", "exec", *place, "python", "-c", COUNT_ORPHANS))

    def meet(self, faults: list[tuple[Fault, str]], name: str, calm: float) -> None:
        """One run, and another if it ends before all has happened."""
        plan = self.started(name)
        for fault, party in faults:
            if self.is_over(plan):
                self.went_well(plan, calm)
                plan = self.started(f"{plan.name}-again")
            self.strike(fault, party, plan)
        self.went_well(plan, calm)
