"""Every test that docs/security.md names exists, and every "yes" of its comparison names one."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()


def test_every_named_test_exists() -> None:
    file = ""
    named = re.findall(r"`(tests/[\w/]+\.py)?::(\w+)`", PAGE)
    assert len(named) > 25
    for given, function in named:
        file = given or file
        assert f"def {function}(" in (ROOT / file).read_text(), f"{file}::{function}"


def test_every_yes_of_ours_names_its_test() -> None:
    rows = [line.split("|") for line in PAGE.split("## Beside others")[1].splitlines() if line.startswith("| ")]
    ours = [row[2] for row in rows[1:]]
    assert len(ours) >= 6
    assert all(re.match(r" yes.*`tests/[\w/]+\.py::test_\w+` ", cell) for cell in ours)
