"""The certificate for people: the same words in HTML and PDF, one form of fingerprints, no promise by a forgery."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from aggregator.publish import signed
from crypto.keys import Identity
from fedsynth.certificate.checking import checked, write_beside
from fedsynth.certificate.content import belief_after
from fedsynth.certificate.html import as_html
from fedsynth.certificate.pdf import as_pdf
from fedsynth.cli import assembled
from fedsynth.documents import read_plan
from tests.synth.test_verification import CERTIFICATE, KEYS, PLAN


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """certificate.json with its table, model and plan beside it."""
    folder = tmp_path / "release"
    folder.mkdir()
    (folder / "synthetic.csv").write_text("a,b\n1,2\n")
    (folder / "model.npz").write_bytes(b"a model")
    digests = {name: sha256((folder / name).read_bytes()).hexdigest() for name in ("synthetic.csv", "model.npz")}
    facts = {
        "table_sha256": {"synthetic.csv": digests["synthetic.csv"]},
        "model_sha256": {"model.npz": digests["model.npz"]},
        "plan_name": PLAN.name,
        "issued": "2026-11-18T03:04:28+00:00",
    }
    certificate = signed(CERTIFICATE.model_copy(update=facts), KEYS["aggregator"])
    (folder / "certificate.json").write_text(certificate.model_dump_json(indent=2))
    (folder / "plan.json").write_text(PLAN.model_dump_json(by_alias=True))
    return folder


def found(folder: Path) -> str:
    return as_html(checked(folder / "certificate.json", read_plan(folder / "plan.json"), unsigned=True).page)


def test_the_page_says_who_what_when_and_which_columns(release: Path) -> None:
    html, certificate = found(release), json.loads((release / "certificate.json").read_bytes())
    plan = read_plan(release / "plan.json")
    assert certificate["plan_name"] == plan.name
    assert certificate["issued"].replace("T", " ")[:16] in html
    for word in (plan.name, *plan.table.released, *(party.name for party in plan.parties), "What is not promised"):
        assert word in html
    key = Identity(bytes.fromhex(json.loads((release / "certificate.json").read_bytes())["signature"]["public_key"]))
    assert key.fingerprint() in html
    assert key.public.hex() not in html
    assert key.to_text() not in html
    assert "<script" not in html


def test_pages_lie_beside_the_certificate(release: Path) -> None:
    folder = release
    for path in write_beside(folder / "certificate.json"):
        assert path.stat().st_size > 1000
    assert (folder / "certificate.pdf").read_bytes().startswith(b"%PDF-")


@pytest.mark.parametrize(
    "forge",
    [
        lambda content: content["claim"].update(epsilon=0.01),
        lambda content: content.update(plan_name="a better name"),
        lambda content: content["statements"].pop(),
        lambda content: content.update(model_sha256={}),
        lambda content: content.pop("issued"),
    ],
)
def test_a_forged_certificate_promises_nothing(release: Path, forge: Callable[[dict[str, Any]], object]) -> None:
    folder = release
    content = json.loads((folder / "certificate.json").read_bytes())
    forge(content)
    (folder / "certificate.json").write_text(json.dumps(content))
    html = found(folder)
    assert "DOES NOT HOLD" in html
    assert "What is promised" not in html
    said = CliRunner().invoke(assembled(["verify"]), ["verify", str(folder / "certificate.json"), "--unsigned"])
    assert said.exit_code != 0
    assert "Promised" not in said.output
    assert "Nothing is promised" in said.output


def test_another_model_is_noticed(release: Path) -> None:
    folder = release
    (folder / "model.npz").write_bytes((folder / "model.npz").read_bytes() + b" ")
    assert "model model.npz: is not what was certified" in found(folder)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 700.0])
def test_the_picture_keeps_the_bound_on_odds(epsilon: float) -> None:
    low, high = belief_after(0.5, epsilon)
    assert low == pytest.approx(1 - high)
    assert 0 <= low <= 0.5 <= high <= 1


def test_the_pdf_holds_what_the_page_holds(release: Path) -> None:
    page = checked(release / "certificate.json", read_plan(release / "plan.json"), unsigned=True).page
    content = as_pdf(page)
    assert len(re.findall(rb"/Type /Page\b", content)) >= 1
    assert b"DejaVu" in content  # embedded, so that ε shows
