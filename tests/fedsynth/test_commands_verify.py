"""The auditor's command on files, as a release leaves them."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from aggregator.publish import signed
from fedsynth.cli import app
from synth.errors import FedsynthError
from tests.synth.test_verification import CERTIFICATE, KEYS, PLAN


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """certificate.json with its table, its plan and everybody's public keys beside it."""
    (tmp_path / "synthetic.csv").write_text("a,b\n1,2\n")
    digest = sha256((tmp_path / "synthetic.csv").read_bytes()).hexdigest()
    certificate = CERTIFICATE.model_copy(update={"table_sha256": {"synthetic.csv": digest}})
    text = signed(certificate, KEYS["aggregator"]).model_dump_json(indent=2)
    (tmp_path / "certificate.json").write_text(text)
    (tmp_path / "plan.json").write_text(PLAN.model_dump_json(by_alias=True))
    pins = {name: key.identity.to_text() for name, key in KEYS.items()}
    (tmp_path / "keys.yaml").write_text(yaml.safe_dump(pins))
    return tmp_path


def verify(*words: object) -> Result:
    result = CliRunner().invoke(app, ["verify", *map(str, words)])
    if isinstance(result.exception, FedsynthError):
        result.exit_code = result.exception.exit_code
    return result


def test_a_whole_release_holds(release: Path) -> None:
    result = verify(release / "certificate.json", "--plan", release / "plan.json", "--keys", release / "keys.yaml")
    assert result.exit_code == 0, result.output
    assert "FAILS" not in result.output
    assert "not checked" not in result.output
    assert "Promised:" in result.output
    assert verify(release / "certificate.json").exit_code == 7
    assert verify(release / "certificate.json", "--unsigned").exit_code == 0


def test_a_changed_table_is_named(release: Path) -> None:
    (release / "synthetic.csv").write_text("a,b\n1,3\n")
    result = verify(release / "certificate.json")
    assert result.exit_code == 7
    assert "table synthetic.csv" in str(result.exception)
    other = release / "other.csv"
    other.write_text("x")
    assert verify(release / "certificate.json", "--table", other).exit_code == 7


def test_a_changed_certificate_is_named(release: Path) -> None:
    path = release / "certificate.json"
    path.write_text(path.read_text().replace('"simulated": false', '"simulated": true'))
    result = verify(path)
    assert result.exit_code == 7
    assert "aggregator's signature" in str(result.exception)


@pytest.mark.parametrize("content", ["", "[]", "{}", "\x00", '{"format": "fedsynth-certificate-9"}'])
def test_what_is_no_certificate_is_said(release: Path, content: str) -> None:
    (release / "certificate.json").write_text(content)
    assert verify(release / "certificate.json").exit_code == 2


def test_unreadable_files_are_said(release: Path) -> None:
    assert verify(release / "none.json").exit_code == 2
    assert verify(release / "certificate.json", "--table", release / "none.csv").exit_code == 2
    (release / "keys.yaml").write_text("- a\n- b\n")
    assert verify(release / "certificate.json", "--keys", release / "keys.yaml").exit_code == 2
    (release / "keys.yaml").write_text("party-1: nonsense\n")
    assert verify(release / "certificate.json", "--keys", release / "keys.yaml").exit_code == 2
