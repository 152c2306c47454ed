"""A party whose node is killed in the middle of a message: SuperNode and task loop, over Flower's own servers.

The worker has the message in hand when the processes that brought it die; its answer finds nobody to carry it. The
aggregator misses the party and stops; nothing is lost. When the node is back, the resumed run ends with the very table
of a run that nobody disturbed, and no ask was charged twice.
"""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import yaml

from aggregator import checkpoint
from aggregator.checkpoint import Position
from aggregator.run import Workspace, synthesize
from aggregator.sums.exchange import GridExchange
from aggregator.watch import Silent
from fed_node.ledger.ledger import LedgerView
from fedsynth.sandbox.programs import Program
from fedsynth.simulation.local_grid import LocalGrid
from synth.certificate.certificate import Certificate, events_of
from synth.plan import Plan
from synth.programme import programme
from tests.e2e.loopback import Deployment
from tests.small import plan_of

ROWS = 60
POLICY = {"maximum_epsilon_per_run": 3.0, "maximum_epsilon_in_total": 3.5, "maximum_delta": 1e-4, "minimum_rows": 10}
HEARTBEAT_SECONDS, SHORT_SECONDS = 30, 10  # Flower's usual and its least; a killed SuperNode is missed after two
VICTIM = "party-1"
SUPERNODE = """
import sys
from flwr.supernode import fleet_http_connection
from fed_node.process import supernode
fleet_http_connection.HEARTBEAT_DEFAULT_INTERVAL = int(sys.argv.pop(1))
supernode.main()
"""


class SeededDeployment(Deployment):
    """Parties whose noise is fixed, so that two runs of one name can be compared; a victim that is soon missed."""

    def make_home(self, name: str) -> None:
        super().make_home(name)
        settings = yaml.safe_load((self.home(name) / "party.yaml").read_text())
        (self.home(name) / "party.yaml").write_text(yaml.safe_dump(settings | {"seed": 7}))
        shutil.copytree(self.home(name), self.calm_home(name))

    def calm_home(self, name: str) -> Path:
        return self.folder / "calm" / name

    def start_party(self, name: str) -> None:
        self.start_worker(name)
        self.start_beating(name, SHORT_SECONDS if name == VICTIM else HEARTBEAT_SECONDS)

    def start_worker(self, name: str) -> None:
        """Without the command, which refuses a seed."""
        serve = "import sys; from pathlib import Path; from fed_node.process.worker import serve; "
        serve += "serve(Path(sys.argv[1]), Path(sys.argv[2]))"
        command = [sys.executable, "-c", serve, str(self.home(name)), str(self.socket(name))]
        self._start(f"worker {name}", Program(command))

    def start_beating(self, name: str, heartbeat_seconds: int = HEARTBEAT_SECONDS) -> None:
        self.start_node(name, [sys.executable, "-c", SUPERNODE, str(heartbeat_seconds)])

    def name_run(self, work: Path) -> None:
        """The checkpoint of a run that has a name and nothing else yet."""
        checkpoint.save(work / "checkpoint.npz", Position("run-1", self.plan.digest(), seed=5), {})

    @property
    def run_folder(self) -> Path:
        return self.state / "runs" / self.plan.digest()

    def charges(self, name: str) -> list[int]:
        path = self.home(name) / "ledger.sqlite"
        if not path.exists():
            return []
        with closing(LedgerView(path)) as ledger:
            return [entry.sequence for entry in ledger.history() if entry.kind == "charge"]


def undisturbed(deployment: SeededDeployment, plan: Plan, folder: Path) -> tuple[bytes, Certificate]:
    """The same run in this process, over the same homes."""
    deployment.name_run(folder / "work")
    grid = LocalGrid({party.name: deployment.calm_home(party.name) for party in plan.parties}, processes=1)
    try:
        workspace = Workspace(folder / "work", folder / "release", simulated=True)
        release = synthesize(plan, GridExchange(grid, 120), workspace, Silent())
    finally:
        grid.close()
    return (folder / "release" / "synthetic.csv").read_bytes(), release.certificate


def drive(deployment: SeededDeployment, done: Callable[[], bool], seconds: float = 240) -> None:
    """Submit once and wait: whatever ends an attempt too early, the supervisor makes another."""
    deployment.submit()
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, deployment.log("runner")[-4000:]
        time.sleep(0.05)


def kill_in_the_middle_of_a_message(deployment: SeededDeployment) -> None:
    """Stop the worker once it has charged, let the next message reach it, and kill what brought that message."""
    worker = deployment.processes[f"worker {VICTIM}"]
    worker.send_signal(signal.SIGSTOP)
    time.sleep(1.5)  # whatever the aggregator asks next waits at the worker's socket
    for process in ("supernode", "tasks"):
        deployment.kill(f"{process} {VICTIM}")
    worker.send_signal(signal.SIGCONT)


def test_a_node_killed_in_the_middle_of_a_message_costs_a_wait_and_nothing_else(tmp_path: Path) -> None:
    masked = {"statistics": "masked", "updates": "masked"}
    settings = {"name": "marginals", "iterations": 50, "rounds": 1}
    plan = plan_of(settings, parties=2, rows=ROWS, secure_sum=masked, output={"formats": ["csv"]})
    with SeededDeployment(tmp_path / "deployment", plan, ROWS, POLICY) as deployment:
        deployment.name_run(deployment.run_folder / "work")
        drive(deployment, lambda: bool(deployment.charges(VICTIM)))
        kill_in_the_middle_of_a_message(deployment)
        deployment.start_beating(VICTIM)
        expected, calm = undisturbed(deployment, plan, tmp_path)  # meanwhile
        deployment.wait("released")  # by itself: the run waits for its party and asks again
        release = deployment.run_folder / "release"
        assert (release / "synthetic.csv").read_bytes() == expected
        certificate = Certificate.model_validate_json((release / "certificate.json").read_bytes())
        stated = {signed.statement.party: events_of(signed.statement) for signed in certificate.statements}
        assert stated == {signed.statement.party: events_of(signed.statement) for signed in calm.statements}
        for party in plan.parties:
            assert Counter(deployment.charges(party.name)) == Counter(range(programme(plan).asks))
