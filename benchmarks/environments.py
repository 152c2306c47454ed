"""Separate Python environments for packages whose pins or licences keep them out of ours.

Each is made once, from benchmarks/requirements/NAME.txt, in a folder that git ignores. torch goes in first and alone,
so that no peer's resolver chooses another build of it; TORCH_INDEX names an index that has the build to take, as for
the container images (PyTorch's CPU index on a machine without a GPU).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
REQUIREMENTS = Path(__file__).parent / "requirements"
FOLDER = ROOT / ".environments"


class EnvironmentFailed(Exception):
    """pip could not make the environment; the text is pip's last line."""


def python_of(name: str) -> Path:
    """The interpreter of an environment, which is made or brought up to date first."""
    wanted = (REQUIREMENTS / f"{name}.txt").read_text()
    python, installed = FOLDER / name / "bin" / "python", FOLDER / name / "installed.txt"
    if not installed.exists() or installed.read_text() != wanted:
        _run([sys.executable, "-m", "venv", str(FOLDER / name)])
        torch = [line for line in wanted.splitlines() if line.startswith("torch==")]
        for packages in ([torch] if torch else []) + [["-r", str(REQUIREMENTS / f"{name}.txt")]]:
            _run([str(python), "-m", "pip", "install", "--quiet", *_index(), *packages])
        installed.write_text(wanted)
    return python


def _index() -> list[str]:
    url = os.environ.get("TORCH_INDEX")
    return ["--extra-index-url", url] if url else []


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EnvironmentFailed((done.stderr.strip().splitlines() or ["no message"])[-1])
