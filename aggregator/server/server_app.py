"""The aggregator as a Flower ServerApp. It finds the plan in the run's configuration and a workspace on the volume;
the work is `synthesize`. Submitted again after a kill, the same plan continues from its checkpoint.

The chart says the rest in the environment: FEDSYNTH_STATE (the volume), FEDSYNTH_PARTIES (the register; its identities
are the roster), FEDSYNTH_IDENTITY (the key that signs certificates), FEDSYNTH_ANSWER_TIMEOUT_SECONDS (for an answer, or
for a party that is away), FEDSYNTH_GO_ON_WITHOUT_SECONDS (for one that the plan can do without).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import httpx
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from aggregator.run import Workspace, synthesize
from aggregator.server.patient_grid import PatientGrid
from aggregator.server.reporter import Reporter
from aggregator.server.run_folder import RunFolder
from aggregator.states import RunState
from aggregator.sums.exchange import GridExchange
from crypto.keys import Identity
from synth.audit_log import FILE, AuditLog, Fact
from synth.errors import FedsynthError, InputError, OutputError
from synth.json_logs import log_as_json
from synth.plan import Plan, parse_plan

log_as_json()
app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """plan → workspace → exchange → synthesize, with its standing on the volume"""
    plan, state = _plan(context), Path(os.environ["FEDSYNTH_STATE"])
    folder, log = RunFolder.of(state, plan), AuditLog(state / FILE, "aggregator")
    known = folder.standing
    first = known is None or (known.state is RunState.queued and not known.resumed and known.stage == "queued")
    with log.noted("run" if first else "resume", _submitter(context), **_facts(plan)), folder.taken(plan):
        reporter = Reporter(plan, folder, str(context.run_id))
        try:
            desk = _desk(folder)
            _require_registered(plan, desk)
            release = synthesize(plan, _exchange(plan, grid, desk, reporter), desk, reporter)
        except (httpx.HTTPError, OSError, OutputError) as error:
            reporter.interrupted(*_passing(error))
            raise
        except FedsynthError as error:
            reporter.failed(error)
            raise
        except Exception as error:  # a fault of ours; whoever waits must not see "running" for ever
            reporter.failed(FedsynthError(f"an unexpected {type(error).__name__}; `fedsynth logs` shows its place"))
            raise
        log.note("withhold" if release.withheld else "release", "aggregator", **_facts(plan))
        reporter.finished(release.certificate.claim.epsilon, release.withheld)


def _exchange(plan: Plan, grid: Grid, desk: Workspace, reporter: Reporter) -> GridExchange:
    """Where the plan goes on without parties, one that is away is not waited for as long as one that is needed."""
    timeout_seconds = float(os.environ["FEDSYNTH_ANSWER_TIMEOUT_SECONDS"])
    tolerated = plan.minimum_parties < len(plan.parties)
    loss_seconds = float(os.environ.get("FEDSYNTH_GO_ON_WITHOUT_SECONDS", timeout_seconds)) if tolerated else None
    return GridExchange(PatientGrid(grid), timeout_seconds, reporter, loss_seconds, desk.lists.needed)


def _require_registered(plan: Plan, desk: Workspace) -> None:
    """Whoever is not in the register cannot connect, however long anybody waits."""
    known = set(desk.roster or {})
    strangers = [party.name for party in plan.parties if party.name not in known]
    if len(plan.parties) - len(strangers) < plan.minimum_parties:
        raise InputError(
            f"{', '.join(strangers)}: in the plan and not in the register (revoked, or never added). Provision and "
            "install the aggregator with them, or take them out of the plan."
        )


def _passing(error: Exception) -> tuple[str, str]:
    """What cut a run short, if it passes: code and words."""
    if isinstance(error, httpx.HTTPError):
        return "superlink-away", f"the SuperLink was away for too long ({type(error).__name__})."
    if isinstance(error, OutputError):
        return error.code, str(error)
    words = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
    return "cannot-write", f"the aggregator's volume cannot be used: {words}."


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
