"""What `fedsynth evaluate` says aloud, and what it refuses before it measures anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from aggregator.publish import Release
from aggregator.watch import Silent
from fed_node.source import read_records_from
from fedsynth.evaluation.files import require_place
from fedsynth.evaluation.quick import quick_evaluation
from fedsynth.simulation.report import write_report
from fedsynth.simulation.simulate import Folders
from synth.certificate.certificate import Certificate
from synth.errors import InputError, OutputError
from synth.metrics.evaluation import Evaluation
from synth.schema import Schema
from tests.fedsynth.evaluated import Page, evaluated
from tests.fedsynth.test_report_verdicts import certificate_for, closed_gate
from tests.small import SCHEMA, plan_of, table

ANOTHER = "0" * 64


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick look in the place of all figures: these tests are about what stands around them."""

    def measured(real: Any, synthetic: Any, schema: Schema, holdout: Any, *_: Any, **__: Any) -> Evaluation:
        return quick_evaluation(real, synthetic, schema, holdout)

    monkeypatch.setattr("synth.metrics.evaluate.evaluate", measured)


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(*_: Any) -> None:
        pytest.fail("measured before the input was checked")

    monkeypatch.setattr("synth.metrics.evaluate.fidelity_scores", measured)


def with_certificate(folder: Path, certificate: Certificate, *options: str) -> tuple[str, str, dict[str, Any]]:
    """What stands on the terminal, on the error stream and in evaluation.json."""
    (folder / "certificate.json").write_text(certificate.model_dump_json())
    given = ("--certificate", str(folder / "certificate.json"), *options)
    result = evaluated(folder, *given, real=table(120, seed=1), synthetic=table(120, seed=2))
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr, json.loads((folder / "out" / "evaluation.json").read_text())


@pytest.mark.usefixtures("quick")
def test_a_certificate_of_another_table_is_an_alarm_everywhere(tmp_path: Path) -> None:
    out, _, document = with_certificate(tmp_path, certificate_for(ANOTHER))
    assert "does NOT hold for this table" in out
    assert "synthetic.csv: is not what was certified" in out
    failed = {finding["what"] for finding in document["findings"] if finding["holds"] is False}
    assert "table synthetic.csv" in failed
    assert "does NOT hold for this table" in document["alarms"][0]
    html = (tmp_path / "out" / "report.html").read_text()
    assert html.index('class="notice alarm"') < html.index("In short")


@pytest.mark.usefixtures("quick")
def test_an_alarm_does_not_spoil_json_on_standard_output(tmp_path: Path) -> None:
    out, err, document = with_certificate(tmp_path, certificate_for(ANOTHER), "--json")
    assert json.loads(out) == document
    assert "does NOT hold for this table" in err


@pytest.mark.usefixtures("quick")
def test_a_withheld_table_is_called_so(tmp_path: Path) -> None:
    withheld = certificate_for(ANOTHER).model_copy(update={"assessment": closed_gate()})
    out, _, document = with_certificate(tmp_path, withheld)
    assert "is WITHHELD by the gate of its plan: minimum_auroc 0.9 is not kept" in out
    assert any("WITHHELD" in words for words in document["alarms"])


@pytest.mark.usefixtures("unmeasured")
def test_an_assessment_that_cannot_be_told_is_refused(tmp_path: Path) -> None:
    gate = closed_gate().model_copy(update={"figures": {}})
    (tmp_path / "certificate.json").write_text(
        certificate_for(ANOTHER).model_copy(update={"assessment": gate}).model_dump_json()
    )
    options = ("--certificate", str(tmp_path / "certificate.json"))
    result = evaluated(tmp_path, *options, real=table(10), synthetic=table(10))
    assert isinstance(result.exception, InputError)
    assert "assessment" in str(result.exception)


def test_the_report_of_a_simulation_names_its_own_option_and_the_closed_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of({"name": "marginals"})
    table(120, seed=1).to_csv(tmp_path / "real.csv", index=False)
    made = table(120, seed=2).drop(columns="patient")
    made.to_csv(tmp_path / "synthetic.csv", index=False)
    rows = read_records_from(tmp_path / "real.csv", plan.table)
    monkeypatch.setattr("fedsynth.simulation.report.real_records", lambda *_: rows)
    certificate = certificate_for(ANOTHER).model_copy(update={"assessment": closed_gate()})
    (tmp_path / "certificate.json").write_text(certificate.model_dump_json())
    write_report(plan, Folders(tmp_path), Release(tmp_path, made, certificate), None, Silent())
    text = Page((tmp_path / "report.html").read_text()).text
    assert "(--test)" in text
    assert "--holdout" not in text
    assert text.index("WITHHELD") < text.index("In short")


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(("--secret", "age"), "'age' is not a categorical or boolean column", id="a number as the secret"),
        pytest.param(("--secret", "nothing"), "'nothing'", id="no such secret"),
        pytest.param(("--known", "sex", "--known", "nothing"), "nothing", id="no such known column"),
        pytest.param(("--secret", "sex", "--known", "sex"), "sex", id="the secret is known"),
    ],
)
def test_an_attacker_that_cannot_be_is_refused_before_measuring(
    options: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump(SCHEMA, sort_keys=False))
    given = ("--schema", str(tmp_path / "schema.yaml"), *options)
    result = evaluated(tmp_path, *given, real=table(10), synthetic=table(10))
    assert isinstance(result.exception, InputError)
    assert result.exception.exit_code == 2
    assert said in str(result.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("beside", [(), ("report.json", "evaluation.json")])
def test_the_report_of_another_command_is_not_replaced(beside: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name in ("report.html", *beside):
        (tmp_path / "out" / name).write_text("another's")
    result = evaluated(tmp_path, real=table(10), synthetic=table(10))
    assert isinstance(result.exception, InputError)
    assert "choose another --out" in str(result.exception)
    assert (tmp_path / "out" / "report.html").read_text() == "another's"


@pytest.mark.usefixtures("unmeasured")
def test_a_place_that_cannot_be_written_to_is_noticed_before_measuring(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file, not a folder")
    result = evaluated(tmp_path, real=table(10), synthetic=table(10))
    assert isinstance(result.exception, OutputError)
    assert result.exception.exit_code == 5


@pytest.mark.usefixtures("quick")
def test_an_earlier_evaluation_is_replaced(tmp_path: Path) -> None:
    for _ in range(2):
        result = evaluated(tmp_path, real=table(30, seed=1), synthetic=table(30, seed=2))
        assert result.exit_code == 0, result.output
    assert "Caution: the real table has 30 rows" in result.stdout


def test_looking_for_a_place_leaves_nothing_behind(tmp_path: Path) -> None:
    require_place(tmp_path / "new" / "folder")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("seed", ["-1", str(2**32)])
def test_a_seed_out_of_range_is_refused(seed: str, tmp_path: Path) -> None:
    result = evaluated(tmp_path, "--seed", seed, real=table(10), synthetic=table(10))
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert "--seed" in result.output
