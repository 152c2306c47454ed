"""Write images/locks: everything that the images install, with the SHA-256 of every file that may be installed.

    python images/lock.py UV TORCH_CPU

Versions are those of constraints.txt. Files are PyPI's, but for the CPU build of torch, which
PyTorch publishes itself: TORCH_CPU is a page or folder with its wheels.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ROOT / "images" / "locks"
SETUPTOOLS = "setuptools==80.9.0"
RESOLVE = [
    *("pip", "compile", "--quiet", "--no-config", "--no-header", "--no-annotate", "--generate-hashes"),
    *("--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_28", "--only-binary", ":all:"),
    *("--index-url", "https://pypi.org/simple", "-c", str(ROOT / "constraints.txt")),
]
PARTS = ("formats", "node", "neural", "cluster", "sources")  # extras that the images hold; `aggregator` is `node`
MADE = "Made by `make lock`; never edited."
CPU = f"""# Everything in fedsynth/base with the CPU build of torch, by hash. {MADE}
# torch's wheel is PyTorch's own (its CPU index); all others are PyPI's.
"""
CUDA = f"# Everything in fedsynth/base with PyPI's build of torch (CUDA), by hash. {MADE}\n"
BUILD = f"# What builds our own wheel, by hash. {MADE}\n"


def main() -> None:
    uv, torch_cpu = sys.argv[1:3]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    drivers = [each for each in extras["dev"] if each.startswith("psycopg")]
    parts = [each for name in PARTS for each in extras[name] if not each.startswith("fedsynth[")]
    wanted = [*project["dependencies"], *parts, *drivers]
    pins = (ROOT / "constraints.txt").read_text().split()
    torch = next(each for each in pins if each.startswith("torch=="))
    write(uv, "cpu", CPU, [*wanted, f"{torch}+cpu"], "--find-links", torch_cpu)
    write(uv, "cuda", CUDA, wanted)
    write(uv, "build", BUILD, [SETUPTOOLS])


def write(uv: str, name: str, heading: str, wanted: list[str], *more: str) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".in") as file:
        file.write("\n".join(wanted))
        file.flush()
        done = subprocess.run([uv, *RESOLVE, *more, file.name], check=True, capture_output=True, text=True)
    (LOCKS / f"{name}.txt").write_text(heading + done.stdout)


if __name__ == "__main__":
    main()
