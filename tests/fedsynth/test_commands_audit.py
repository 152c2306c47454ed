"""`fedsynth audit` as a user meets it: a result, a refusal to pretend, and going on where it stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from fedsynth.cli import app
from fedsynth.commands import audit as commands_audit
from fedsynth.evaluation import audit_runs as audit_run
from fedsynth.evaluation.audit_runs import CLAIM, NONE, Folder, Settings
from synth.errors import InputError
from synth.messages import archive
from tests.small import plan_content, table

QUICK = {"name": "marginals", "bins": 8, "model_size_mb": 0.05, "iterations": 100}
TRIALS, CANARIES = 8, 30


def files(folder: Path, **changes: Any) -> list[str]:
    content = plan_content(QUICK, parties=2, rows=60, privacy={"epsilon": 0.5, "delta": 1e-5}) | changes
    (folder / "plan.yaml").write_text(yaml.safe_dump(content))
    table(120).to_csv(folder / "rows.csv", index=False)
    return [str(folder / "plan.yaml"), "--data", str(folder / "rows.csv")]


def audit(arguments: list[str], folder: Path, *more: str) -> Any:
    numbers = ["--trials", str(TRIALS), "--control-trials", "4", "--canaries", str(CANARIES), "--rows", "60"]
    return CliRunner().invoke(app, ["audit", *arguments, *numbers, "--out", str(folder / "audit"), *more])


def settings_of(folder: Path) -> Settings:
    return Settings(**json.loads((folder / "audit" / "settings.json").read_text()))


@pytest.fixture
def made_up_runs(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """No synthesis: a canary that joined is this much likelier to be seen, by series of runs."""
    strength = {NONE: 9.0, "epsilon-5": 9.0, CLAIM: 0.0}

    def carry_out(settings: Settings, folder: Folder, jobs: int, done: Any) -> None:
        for rung, number in folder.missing(settings):
            rng = np.random.default_rng([number, len(rung)])
            joined = rng.random(settings.canaries) < 0.5
            likeness = rng.normal(size=(settings.canaries, 3)) + strength[rung] * joined[:, None]
            content = archive.pack({"likeness": likeness, "joined": joined}, {})
            archive.write_durably(folder.trial(rung, number), content)
            done(rung)

    monkeypatch.setattr(audit_run, "carry_out", carry_out)
    return strength


def test_nothing_found_by_an_attack_with_power(tmp_path: Path, made_up_runs: dict[str, float]) -> None:
    found = audit(files(tmp_path), tmp_path, "--seed", "1")
    assert found.exit_code == 0, found.output
    assert "would have detected ε ≥ 5" in found.stdout
    report = json.loads((tmp_path / "audit" / "audit.json").read_text())
    assert (report["refuted"], report["has_power"]) == (False, True)
    assert report["attacks"][NONE]["epsilon"] > 0.5 >= report["attacks"][CLAIM]["epsilon"]


def test_only_a_release_without_noise_is_detected(tmp_path: Path, made_up_runs: dict[str, float]) -> None:
    made_up_runs["epsilon-5"] = 0.0
    found = audit(files(tmp_path), tmp_path, "--seed", "1", "--json")
    assert found.exit_code == 0
    assert json.loads(found.stdout)["would_have_detected_epsilon"] is None
    assert "no finite ε" in json.loads(found.stdout)["verdict"]


def test_a_refuted_claim(tmp_path: Path, made_up_runs: dict[str, float]) -> None:
    made_up_runs[CLAIM] = 9.0
    found = audit(files(tmp_path), tmp_path, "--seed", "1")
    assert isinstance(found.exception, commands_audit.ClaimRefuted)
    assert found.exception.exit_code == 11
    assert "REFUTED" in found.stdout


def test_an_attack_without_power_says_so(tmp_path: Path, made_up_runs: dict[str, float]) -> None:
    made_up_runs.update({NONE: 0.0, "epsilon-5": 0.0})
    found = audit(files(tmp_path), tmp_path, "--seed", "1")
    assert isinstance(found.exception, commands_audit.NoPower)
    assert found.exception.exit_code == 12


def test_results_are_kept_and_other_audits_kept_out(tmp_path: Path, made_up_runs: dict[str, float]) -> None:
    arguments = files(tmp_path)
    audit(arguments, tmp_path)
    settings, folder = settings_of(tmp_path), Folder(tmp_path / "audit")
    assert folder.missing(settings) == []
    folder.trial(CLAIM, 3).unlink()
    assert folder.missing(settings) == [(CLAIM, 3)]
    assert audit(arguments, tmp_path).exit_code == 0  # no seed was given, the folder's own is used
    assert settings_of(tmp_path) == settings
    assert isinstance(audit(arguments, tmp_path, "--rows", "50").exception, InputError)


@pytest.mark.parametrize("content", ["", "patient,age\n", "no,header,here\n1,2,3\n4,5,6\n"])
def test_data_that_cannot_be_read_leave_nothing_behind(
    tmp_path: Path, made_up_runs: dict[str, float], content: str
) -> None:
    arguments = files(tmp_path)
    good = (tmp_path / "rows.csv").read_text()
    (tmp_path / "rows.csv").write_text(content)
    assert isinstance(audit(arguments, tmp_path).exception, InputError)
    assert not (tmp_path / "audit").exists()
    (tmp_path / "rows.csv").write_text(good)
    assert audit(arguments, tmp_path, "--trials", "10").exit_code == 0


def test_rows_that_are_not_there_are_said_and_not_recorded(tmp_path: Path, made_up_runs: dict[str, float]) -> None:
    plan, _, rows = files(tmp_path)
    table(10).to_csv(tmp_path / "few.csv", index=False)
    assert "every run uses" not in audit([plan, "--data", rows], tmp_path, "--rows", "61").stderr
    one = audit([plan, "--data", rows], tmp_path, "--rows", "99999", "--out", str(tmp_path / "one"))
    assert "every run uses 120 rows" in one.stderr
    recorded = json.loads((tmp_path / "one" / "settings.json").read_text())["rows"]
    assert recorded == {"party-1": 60, "party-2": 60}
    each = ["--data", f"party-1={rows}", "--data", f"party-2={tmp_path / 'few.csv'}"]
    uneven = audit([plan, *each], tmp_path, "--rows", "100", "--out", str(tmp_path / "each"))
    assert "every run uses 60 rows" in uneven.stderr
    text = (tmp_path / "each" / "settings.json").read_text()
    assert {name: len(part) for name, part in audit_run.world_of(text).rows.items()} == {"party-1": 50, "party-2": 10}


def test_every_party_needs_a_row(tmp_path: Path) -> None:
    crowd = plan_content(QUICK, parties=12, rows=60, privacy={"epsilon": 0.5, "delta": 1e-5})["parties"]
    found = audit(files(tmp_path, parties=crowd), tmp_path, "--rows", "11")
    assert "without a row" in str(found.exception)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"rows": 3}', b"\xff"])
def test_damaged_settings_are_said(tmp_path: Path, made_up_runs: dict[str, float], content: bytes) -> None:
    arguments = files(tmp_path)
    audit(arguments, tmp_path)
    (tmp_path / "audit" / "settings.json").write_bytes(content)
    found = audit(arguments, tmp_path).exception
    assert isinstance(found, InputError)
    assert "settings.json is damaged" in str(found)
    assert "another --out" in str(found)


def test_a_damaged_result_is_to_be_deleted_and_is_made_again(tmp_path: Path, made_up_runs: dict[str, float]) -> None:
    arguments = files(tmp_path)
    audit(arguments, tmp_path)
    damaged = Folder(tmp_path / "audit").trial(CLAIM, 3)
    damaged.write_bytes(damaged.read_bytes()[:-9])
    found = audit(arguments, tmp_path).exception
    assert isinstance(found, InputError)
    assert f"{damaged} is damaged; delete it" in str(found)
    damaged.unlink()
    assert audit(arguments, tmp_path).exit_code == 0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"privacy": "none"}, "nothing to refute"),
        ({"privacy": {"epsilon": 6.0, "delta": 1e-5}}, "could not fail"),
    ],
)
def test_what_cannot_be_audited(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    found = audit(files(tmp_path, **changes), tmp_path)
    assert isinstance(found.exception, InputError)
    assert sentence in str(found.exception)


def test_files_of_every_party_or_one_for_all(tmp_path: Path) -> None:
    plan, _, rows = files(tmp_path)
    for data in (["--data", "north=x.csv"], ["--data", str(tmp_path / "absent.csv")], ["--data", f"party-1={rows}"]):
        assert isinstance(audit([plan, *data], tmp_path).exception, InputError)


def test_one_run_of_the_real_thing(tmp_path: Path, made_up_runs: dict[str, float]) -> None:
    """Rows, coins and synthesis as the worker processes carry them out; repeatable under a seed."""
    audit(files(tmp_path), tmp_path, "--seed", "1")
    text = (tmp_path / "audit" / "settings.json").read_text()
    found = []
    for out in ("first", "second"):
        audit_run.run_trial(text, str(tmp_path / out), CLAIM, 0)
        arrays, _ = archive.unpack(Folder(tmp_path / out).trial(CLAIM, 0).read_bytes(), "trial")
        found.append(arrays)
    assert found[0]["likeness"].shape == (CANARIES, 28)  # seven columns and their pairs
    assert 0 < found[0]["joined"].sum() < CANARIES
    np.testing.assert_array_equal(found[0]["likeness"], found[1]["likeness"])
