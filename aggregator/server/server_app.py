"""The aggregator as a Flower ServerApp. It finds the plan in the run's configuration and a workspace on the volume;
the work is `synthesize`. Submitted again after a kill, the same plan continues from its checkpoint.

The chart says the rest in the environment: FEDSYNTH_STATE (the volume), FEDSYNTH_PARTIES (the register; its identities
are the roster), FEDSYNTH_IDENTITY (the key that signs certificates), FEDSYNTH_ANSWER_TIMEOUT_SECONDS.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from aggregator.run import Workspace, synthesize
from aggregator.server.patient_grid import PatientGrid
from aggregator.server.reporter import Reporter
from aggregator.server.run_folder import RunFolder
from aggregator.sums.exchange import GridExchange
from crypto.keys import Identity
from synth.audit_log import FILE, AuditLog, Fact
from synth.errors import FedsynthError, InputError
from synth.plan import Plan, parse_plan

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """plan → workspace → exchange → synthesize, with progress on the volume"""
    plan, state = _plan(context), Path(os.environ["FEDSYNTH_STATE"])
    folder, log = RunFolder.of(state, plan), AuditLog(state / FILE, "aggregator")
    with log.noted("resume" if folder.progress else "run", _submitter(context), **_facts(plan)), folder.taken(plan):
        reporter = Reporter(plan, folder, str(context.run_id))
        timeout_seconds = float(os.environ["FEDSYNTH_ANSWER_TIMEOUT_SECONDS"])
        exchange = GridExchange(PatientGrid(grid), timeout_seconds, reporter.connected)
        try:
            release = synthesize(plan, exchange, _desk(folder), reporter)
        except FedsynthError as error:
            reporter.failed(error)
            raise
        except Exception as error:  # a fault of ours; whoever waits must not see "running" for ever
            reporter.failed(FedsynthError(f"an unexpected {type(error).__name__}; `fedsynth logs` shows its place"))
            raise
        log.note("withhold" if release.withheld else "release", "aggregator", **_facts(plan))
        reporter.finished(release.certificate.claim.epsilon, release.withheld)


def _desk(folder: RunFolder) -> Workspace:
    """Every identity of the register is pinned: a party that shows another one is refused."""
    register = json.loads(Path(os.environ["FEDSYNTH_PARTIES"]).read_bytes())
    roster = {name: Identity.from_text(party["identity"]) for name, party in register.items()}
    identity = Path(os.environ["FEDSYNTH_IDENTITY"])
    return Workspace(folder.path / "work", folder.path / "release", simulated=False, identity=identity, roster=roster)


def _facts(plan: Plan) -> dict[str, Fact]:
    return {"plan": plan.digest(), "name": plan.name, "parties": [party.name for party in plan.parties]}


def _submitter(context: Context) -> str:
    return str(context.run_config.get("who") or "unknown")


def _plan(context: Context) -> Plan:
    text = context.run_config.get("plan")
    if not isinstance(text, str) or not text:
        raise InputError("the run carries no plan; submit it with `fedsynth run`")
    return parse_plan(json.loads(text))
