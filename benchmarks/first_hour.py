"""The first hour, measured: `python -m benchmarks.first_hour`; the last line is one JSON object.

- `api_lines`: lines from a DataFrame to a synthetic table, counted in a script that is then run;
- `light_install_mb`: what `pip install` of the built wheel, without extras, puts into an empty environment (the exact
  versions of constraints.txt), and `light_install_wheels_mb`, the same without the byte code that pip adds and uv does
  not; light commands are then run there, and what an extra is for must say so;
- `import_seconds`, `cli_help_seconds`: `import fedsynth` and `fedsynth --help` in that environment, median of five new
  processes;
- `wrong_inputs`, `tracebacks`, `files_lost`: see `benchmarks/wrong_inputs.py`;
- `parties_100_seconds`: `fedsynth simulate --parties 100` on Adult without evaluation (`--parties N` for others), with
  the seconds of all its processes on the processor and the largest memory of all of them together (proportional set
  size, looked at once a second);
- `sandbox_seconds`, `console_paint_seconds`: see `benchmarks/first_pages.py`.

Each part stands beside the load of the machine when it began; `--only PART` does one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.first_pages import console_paint, sandbox_seconds
from benchmarks.wrong_inputs import fingerprints, lost, material, tried

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = """import pandas as pd
from fedsynth import synthesize
table = pd.read_csv("rows.csv")
result = synthesize(table, epsilon=3.0)
result.table.to_csv("made.csv", index=False)
"""
SHORTAGE = "pip install 'fedsynth[node]'"
RUNS = 5


def api_lines(folder: Path) -> int:
    material(folder)
    (folder / "script.py").write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "script.py"], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    assert (folder / "made.csv").exists()
    return len(SCRIPT.splitlines())


def light_install(folder: Path) -> dict[str, Any]:
    """A wheel of this tree in an environment that has nothing else."""
    tree = folder / "tree"
    tree.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "synth", "crypto", "fed_node", "aggregator", "fedsynth"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tree / name)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(folder), str(tree)], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "empty")], check=True)
    python = folder / "empty" / "bin" / "python"
    before, byte_code_before = size_mb(folder / "empty"), size_mb(folder / "empty", "*.pyc")
    install = [str(python), *pip[1:], "install", "-c", str(ROOT / "constraints.txt"), str(wheel)]
    subprocess.run(install, check=True)
    byte_code = size_mb(folder / "empty", "*.pyc") - byte_code_before
    return {
        "light_install_mb": round(size_mb(folder / "empty") - before),
        "light_install_wheels_mb": round(size_mb(folder / "empty") - before - byte_code),
        "import_seconds": seconds([str(python), "-c", "import fedsynth"], folder),
        "cli_help_seconds": seconds([str(python.with_name("fedsynth")), "--help"], folder),
        "light_commands": light_commands(python.with_name("fedsynth"), folder),
    }


def light_commands(command: Path, folder: Path) -> int:
    """How many of these do what they should without networks, ciphers and clusters."""
    material(folder)
    (folder / "rows.parquet").touch()
    cases = [
        (["schema", "draft", "rows.csv"], 0, "kind: continuous"),
        (["schema", "check", "plan.yaml"], 0, "digest"),
        (["plan", "new", "--schema", "schema.yaml", "--party", "a=900", "-o", "new.yaml"], 0, "Wrote"),
        (["verify", "nowhere.json"], 2, "cannot be read"),
        (["evaluate", "rows.csv", "rows.csv", "--schema", "schema.yaml", "--out", "ev"], 0, "ev/report.html"),
        (["evaluate", "rows.parquet", "rows.csv"], 2, SHORTAGE.replace("node", "formats")),
        (["simulate", "rows.csv"], 2, SHORTAGE),
    ]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"COLUMNS": "200"}
    good = 0
    for arguments, code, words in cases:
        done = subprocess.run(
            [str(command), *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        said = done.stdout + done.stderr
        good += done.returncode == code and words in said and "Traceback" not in said
    return good


def seconds(command: list[str], folder: Path) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    taken = []
    for _ in range(RUNS):
        began = time.perf_counter()
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        taken.append(time.perf_counter() - began)
    return round(statistics.median(taken), 3)


def size_mb(folder: Path, pattern: str = "*") -> float:
    return sum(path.lstat().st_size for path in folder.rglob(pattern) if not path.is_dir()) / 1e6


def wrong_inputs(folder: Path) -> dict[str, Any]:
    material(folder)
    before = fingerprints(folder)
    shutil.rmtree(folder)
    folder.mkdir()
    outcomes = tried(folder)
    for outcome in outcomes:
        if outcome.traceback or outcome.exit_code == 0:
            print(json.dumps(outcome.__dict__, ensure_ascii=False))
    return {
        "wrong_inputs": len(outcomes),
        "tracebacks": sum(outcome.traceback for outcome in outcomes),
        "accepted": sum(outcome.exit_code == 0 for outcome in outcomes),
        "files_lost": len(lost(before, fingerprints(folder))),
    }


def many_parties(folder: Path, count: int) -> dict[str, Any]:
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    running = subprocess.Popen(
        [
            *(sys.executable, "-c", "from fedsynth.cli import main; main()", "simulate", "examples/adult.yaml"),
            *("--data", "examples/data/adult-train.csv.gz", "--partition", "iid", "--parties", str(count)),
            *("--no-evaluate", "--seed", "1", "--out", str(folder / "many")),
        ],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    peak = 0
    while running.poll() is None:
        peak = max(peak, sum(memory_kb(process) for process in [running.pid, *descendants(running.pid)]))
        time.sleep(1)
    assert running.returncode == 0, "the simulation failed"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        f"parties_{count}_seconds": round(time.perf_counter() - began, 1),
        f"parties_{count}_cpu_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
        f"parties_{count}_peak_mb": round(peak * 1024 / 1e6),
    }


def descendants(process: int) -> list[int]:
    try:
        children = [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:  # it has ended
        return []
    return [*children, *(each for child in children for each in descendants(child))]


def memory_kb(process: int) -> int:
    """Pages that several processes share are counted once between them."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the first hour.")
    parser.add_argument("--parties", type=int, default=100)
    parts: dict[str, Callable[[Path], dict[str, Any]]] = {
        "api": lambda folder: {"api_lines": api_lines(folder)},
        "install": light_install,
        "wrong": wrong_inputs,
        "parties": lambda folder: many_parties(folder, said.parties),
        "sandbox": sandbox_seconds,
        "console": console_paint,
    }
    parser.add_argument("--only", choices=list(parts), help="One part alone.")
    said = parser.parse_args()
    found: dict[str, Any] = {"cores": os.cpu_count(), "load_before": {}}
    with tempfile.TemporaryDirectory() as place:
        for name in [said.only] if said.only else list(parts):
            (folder := Path(place) / name).mkdir()
            found["load_before"][name] = round(os.getloadavg()[0], 1)
            found |= parts[name](folder)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
