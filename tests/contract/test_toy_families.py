"""A new family is a folder of three files and one line: each toy is added so to a copy of the tree, where the contract
tests then run on it. A toy needs `ToySettings` in settings.py and `Toy`, built from a plan, in synthesizer.py; its
default settings are its smallest."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOYS = sorted(folder for folder in (ROOT / "tests/contract/toys").iterdir() if (folder / "settings.py").is_file())


@pytest.mark.parametrize("toy", TOYS, ids=lambda folder: folder.name)
def test_a_family_is_three_files_and_one_line(toy: Path, tmp_path: Path) -> None:
    assert len(list(toy.glob("*.py"))) <= 3
    copy_tree(tmp_path)
    shutil.copytree(toy, tmp_path / "synth/synthesizers" / toy.name, ignore=shutil.ignore_patterns("__pycache__"))
    line = f'"{toy.name}": ("{toy.name}.settings:ToySettings", "{toy.name}.synthesizer:Toy"),'
    add_line(tmp_path / "synth/synthesizers/registry.py", "FAMILIES", line)
    add_line(tmp_path / "tests/contract/test_synthesizers.py", "SMALLEST", f'"{toy.name}": {{"name": "{toy.name}"}},')
    command = [sys.executable, "-m", "pytest", "-vv", "-k", f"{toy.name} or every_family", "tests/contract"]
    result = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:]
    passed = [line for line in result.stdout.splitlines() if toy.name in line and "PASSED" in line]
    assert len(passed) >= 10, "few contract tests ran on the toy"


def copy_tree(there: Path) -> None:
    """What the contract tests stand on, and nothing of the toys."""
    ignored = shutil.ignore_patterns("__pycache__", "toys", "test_toy_families.py")
    for folder in ("synth", "tests/contract"):
        shutil.copytree(ROOT / folder, there / folder, ignore=ignored)
    for file in ("pyproject.toml", "tests/__init__.py", "tests/inline.py", "tests/small.py"):
        shutil.copy(ROOT / file, there / file)


def add_line(file: Path, table: str, line: str) -> None:
    """The line as the first entry of a dictionary of that name."""
    text, added = re.subn(rf"(?m)^({table}: .*= \{{.*)$", rf"\1\n    {line}", file.read_text(), count=1)
    assert added == 1
    file.write_text(text)
