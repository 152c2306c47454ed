"""A federation that assesses its table: figures and cost are certified, kills cost nothing, a closed gate holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from aggregator.publish import WITHHELD, Release
from aggregator.run import Workspace, synthesize
from aggregator.server.prometheus import metrics_text
from aggregator.server.reporter import Reporter
from aggregator.server.run_folder import RunFolder, as_text
from aggregator.states import RunState
from aggregator.watch import Silent
from crypto.keys import IdentityKey
from fed_node.consent.description import describe
from fed_node.party import Party
from fedsynth.certificate.checking import is_signed
from fedsynth.cli import app
from fedsynth.cluster.runs import Aggregator
from fedsynth.commands import run as commands_run
from fedsynth.report.assessed import assessed
from synth.assessment.inquiry import AssessmentInquiry
from synth.certificate.certificate import Certificate, events_of
from synth.certificate.verification import Evidence, check_certificate
from synth.errors import Withheld
from synth.messages.wire import Envelope
from synth.plan import Plan
from synth.privacy.accounting import as_units
from synth.programme import whole_cost
from tests.fed_node.two_parties import World, make_homes
from tests.small import plan_content, table

ROWS = 400
PAPERS = {
    "certificate.json",
    "certificate.html",
    "certificate.pdf",
    "plan.json",
    "schema.json",
    "assessment.json",
    WITHHELD,
}


def content_with(gate: dict[str, float]) -> dict[str, Any]:
    assessed = {"assessment": {"share": 0.2, "pairs": 5}, "gate": gate}
    return plan_content({"name": "marginals", "rounds": 0, "iterations": 50}, parties=2, rows=ROWS, **assessed)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("rows")
    found = {f"party-{n}": folder / f"party-{n}.csv" for n in (1, 2)}
    for number, path in enumerate(found.values()):
        table(ROWS, seed=number).to_csv(path, index=False)
    return found


@pytest.fixture(scope="module")
def withheld(files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a simulation whose gate nothing could pass."""
    folder = tmp_path_factory.mktemp("withheld")
    (folder / "plan.yaml").write_text(yaml.safe_dump(content_with({"minimum_auroc": 1.0}), sort_keys=False))
    data = [part for name, path in files.items() for part in ("--data", f"{name}={path}")]
    out = folder / "out"
    result = CliRunner().invoke(app, ["simulate", str(folder / "plan.yaml"), *data, "--out", str(out), "--no-evaluate"])
    assert isinstance(result.exception, Withheld), result.output
    assert result.exception.exit_code == 10
    assert "minimum_auroc 1" in str(result.exception)
    assert "Synthetic table withheld" in result.stdout
    return out


def test_a_withheld_table_is_kept_and_marked(withheld: Path) -> None:
    assert (withheld / "synthetic.csv").exists()
    assert "minimum_auroc 1" in (withheld / WITHHELD).read_text()
    record = json.loads((withheld / "assessment.json").read_text())
    assert [verdict["outcome"] for verdict in record["verdicts"]] != ["passed"]
    assert json.loads((withheld / "certificate.json").read_text())["assessment"] == record
    assert CliRunner().invoke(app, ["verify", "--unsigned", str(withheld / "certificate.json")]).exit_code == 0


def test_the_report_tells_the_figures_and_that_the_gate_is_closed(withheld: Path) -> None:
    record = Certificate.model_validate_json((withheld / "certificate.json").read_text()).assessment
    told = "".join(map(str, assessed(record)))
    assert "WITHHELD" in told
    assert "minimum_auroc 1" in told
    assert all(name in told for name in ("auroc", "tvd_two_way", "copy_excess"))
    assert assessed(None) == []


def test_approving_tells_of_the_assessment_and_its_price() -> None:
    plan = Plan.model_validate(content_with({"minimum_auroc": 1.0}))
    words = describe(plan, "party-1", whole_cost(plan, "party-1"))
    assert "3. Once, when the synthetic table is made" in words
    assert "5 histograms with integer noise" in words  # of the pairs
    without = plan.model_copy(update={"assessment": None, "gate": None})
    assert "3. Once" not in describe(without, "party-1")


class Pod(Aggregator):
    """An aggregator's volume with one finished run, without a cluster around it."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    def ask(self, *words: str) -> str:
        assert words[:2] == ("fetch", "small")
        return as_text(self.folder.archive(despite_gate="--despite-gate" in words))


def fetch(pod: Pod, out: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> tuple[BaseException | None, set[str]]:
    monkeypatch.setattr(commands_run, "operated", lambda *_: pod)
    result = CliRunner().invoke(app, ["fetch", "small", "--out", str(out), *more])
    return result.exception, {path.name for path in out.iterdir()}


def test_fetch_hands_out_a_withheld_table_only_if_told_to(
    withheld: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "release").symlink_to(withheld)
    pod = Pod(RunFolder(tmp_path / "run"))
    refused, papers = fetch(pod, tmp_path / "papers", monkeypatch)
    assert isinstance(refused, Withheld)
    assert "--despite-gate" in str(refused)
    assert papers == PAPERS
    nothing, everything = fetch(pod, tmp_path / "all", monkeypatch, "--despite-gate")
    assert nothing is None
    assert everything >= PAPERS | {"synthetic.csv", "model.npz"}


def test_no_rows_are_drawn_from_a_withheld_model_unless_told_to(withheld: Path) -> None:
    arguments = ["sample", str(withheld / "model.npz"), "--rows", "5"]
    refused = CliRunner().invoke(app, arguments)
    assert isinstance(refused.exception, Withheld)
    assert refused.exception.exit_code == 10
    assert "minimum_auroc 1" in str(refused.exception)
    assert "--despite-gate" in str(refused.exception)
    assert refused.stdout == ""
    drawn = CliRunner().invoke(app, [*arguments, "--despite-gate"])
    assert drawn.exit_code == 0
    assert len(drawn.stdout.splitlines()) == 6


def test_status_and_metrics_say_that_a_table_is_withheld(tmp_path: Path) -> None:
    plan = Plan.model_validate(content_with({"minimum_auroc": 1.0}))
    folder = RunFolder.of(tmp_path, plan)
    reporter = Reporter(plan, folder, "7")
    assert withheld_metric(folder) == "0"
    reporter.stage("drawing", RunState.releasing)
    reporter.finished(1.0, "minimum_auroc 1 could not be shown")
    assert folder.standing is not None
    assert folder.standing.state is RunState.withheld
    assert folder.standing.withheld
    assert withheld_metric(folder) == "1"


def withheld_metric(folder: RunFolder) -> str:
    assert folder.standing is not None
    lines = metrics_text({"superlink": True, "nodes": [], "runs": [folder.standing.to_json()]}).splitlines()
    return next(line for line in lines if 'state="withheld"' in line).split()[-1]


class Everybody(World):
    """All parties in this process."""

    def discover(self, hello: Envelope, parties: list[str], _fewest: int) -> dict[str, Envelope]:
        return dict(self("hello", dict.fromkeys(parties, hello)).received)


class Killed(Silent):
    def stage(self, text: str, state: RunState = RunState.running) -> None:
        if text.startswith("collecting"):
            raise KeyboardInterrupt


def test_kills_around_the_assessment_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed when the parties have answered and nothing is written, and again before they sign."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    plan = Plan.model_validate(content_with({"minimum_auroc": 0.0, "maximum_tvd_one_way": 1.0}))
    homes = make_homes(tmp_path, plan, seed=None)
    roster = {name: IdentityKey.from_pem((home / "identity.key").read_bytes()).identity for name, home in homes.items()}
    workspace = Workspace(tmp_path / "work", tmp_path / "out", simulated=True, roster=roster)

    def run(watch: Silent) -> Release:
        parties = {name: Party(home) for name, home in homes.items()}
        try:
            everybody = Everybody({name: party.handle for name, party in parties.items()})
            return synthesize(plan, everybody, workspace, watch)  # type: ignore[arg-type]
        finally:
            for party in parties.values():
                party.ledger.close()

    with monkeypatch.context() as patch:
        patch.setattr(AssessmentInquiry, "absorb", killed)
        with pytest.raises(KeyboardInterrupt):
            run(Silent())
    with pytest.raises(KeyboardInterrupt):
        run(Killed())
    with monkeypatch.context() as patch:
        patch.setattr(AssessmentInquiry, "absorb", killed)  # nobody is asked a third time
        release = run(Silent())
    assert release.withheld is None
    assert not (workspace.output / WITHHELD).exists()
    certificate = Certificate.model_validate_json((workspace.output / "certificate.json").read_text())
    for signed in certificate.statements:
        statement = signed.statement
        assert as_units(events_of(statement)) == as_units(whole_cost(plan, statement.party))  # each paid for once
    assert certificate.claim.epsilon is not None
    assert certificate.claim.epsilon <= 3.0
    findings = {
        each.what: each.holds for each in check_certificate(certificate, Evidence(is_signed, plan=plan, unsigned=True))
    }
    assert findings["assessment"] is True
    assert False not in findings.values()


def test_an_assessment_that_does_not_follow_is_found(withheld: Path) -> None:
    good = Certificate.model_validate_json((withheld / "certificate.json").read_text())
    plan = Plan.model_validate_json((withheld / "plan.json").read_text())
    assert good.assessment is not None

    def holds(**changes: Any) -> bool | None:
        record = good.assessment.model_copy(update=changes) if good.assessment else None
        changed = good.model_copy(update={"assessment": record if changes else None})
        found = check_certificate(changed, Evidence(is_signed, plan=plan, unsigned=True))
        return next(each.holds for each in found if each.what == "assessment")

    assert holds(confidence=0.95) is True
    assert holds(verdicts=[]) is False
    assert holds(cost=[]) is False
    assert holds(cost=[good.assessment.cost[0] | {"variance": 1.0}]) is False
    assert holds(cost=[{"kind": "unheard of"}]) is False
    assert holds(figures={}) is False
    assert holds() is False  # the plan has one, the certificate does not
