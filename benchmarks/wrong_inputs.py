"""Sixty ways to be wrong at the command line: each must end in a sentence, without a traceback, and lose no file.

`tried(folder)` runs them one after the other.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import sys
import traceback
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from fedsynth.cli import main

ROWS = "age,sex,cost\n" + "".join(f"{20 + n % 60},{'fm'[n % 2]},{n * 1.5:.2f}\n" for n in range(120))
SCHEMA = """columns:
  age: {kind: integer, min: 0, max: 100}
  sex: {kind: categorical, categories: [f, m]}
  cost: {kind: continuous, min: 0, max: 500, decimals: 2}
"""
PLAN = """name: wrong
schema: schema.yaml
parties: [{name: a, rows: 60}, {name: b, rows: 60}]
privacy: {epsilon: 1.0, delta: 1.0e-5}
"""


@dataclass(frozen=True)
class Outcome:
    arguments: str
    exit_code: int
    traceback: bool
    said: str


def material(folder: Path) -> None:
    """Files that are right, files that are wrong, and some that nobody may touch."""
    texts = {
        "rows.csv": ROWS, "schema.yaml": SCHEMA, "plan.yaml": PLAN, "kept.csv": "mine", "kept.yaml": "mine",
        "empty.csv": "", "blank.csv": "\n\n\n", "header.csv": "age,sex,cost\n", "one.csv": "age,sex,cost\n1,f,2\n",
        "noheader.csv": "1,2,3\n4,5,6\n", "twice.csv": "a,a,b\n1,2,3\n4,5,6\n", "other.csv": "x;y\n1;2\n3;4\n",
        "ragged.csv": "age,sex,cost\n1,f\n2,m,3,4\n", "text.yaml": "just words", "list.yaml": "- a\n- b\n",
        "broken.yaml": "columns: {a: [", "tabs.yaml": "columns:\n\tage: 1\n", "nothing.yaml": "",
        "delta.yaml": PLAN.replace("1.0e-5", "0.5"), "epsilon.yaml": PLAN.replace("1.0,", "-1,"),
        "key.yaml": PLAN + "colour: red\n", "name.yaml": PLAN.replace("name: a,", "name: A B,"),
        "bounds.yaml": SCHEMA.replace("max: 100", "max: -5"), "kind.yaml": SCHEMA.replace("integer", "number"),
        "absent.yaml": PLAN.replace("schema.yaml", "nowhere.yaml"), "same.yaml": PLAN.replace("name: b", "name: a"),
        "model.npz": "no model", "certificate.json": "{}", "keys.yaml": "a: zz\n",
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "latin.csv").write_bytes("größe,b\nä,1\nö,2\n".encode("latin-1"))
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 64)
    (folder / "sheet.xlsx").write_bytes(b"PK\x03\x04" + bytes(64))
    (folder / "cut.csv.gz").write_bytes(gzip.compress(ROWS.encode())[:200])
    (folder / "no.parquet").write_bytes(b"PAR1 and nothing else")
    (folder / "folder").mkdir(exist_ok=True)
    (folder / "run").mkdir(exist_ok=True)
    (folder / "run" / "certificate.json").write_text("{}")


def commands() -> list[list[str]]:
    draft, simulate, sample = ["schema", "draft"], ["simulate"], ["sample", "model.npz"]
    tables = ("nowhere.csv", "empty.csv", "blank.csv", "header.csv", "one.csv", "noheader.csv", "twice.csv",
              "ragged.csv", "latin.csv", "binary.csv", "sheet.xlsx", "cut.csv.gz", "no.parquet", "folder")  # fmt: skip
    documents = ("nowhere.yaml", "text.yaml", "list.yaml", "broken.yaml", "tabs.yaml", "nothing.yaml", "delta.yaml",
                 "epsilon.yaml", "key.yaml", "name.yaml", "bounds.yaml", "kind.yaml", "absent.yaml", "same.yaml",
                 "latin.csv", "folder")  # fmt: skip
    split = ["--data", "rows.csv", "--partition", "iid"]
    return [
        *([*draft, name] for name in tables),
        [*draft, "rows.csv", "-o", "kept.yaml"],
        [*draft, "rows.csv", "-o", "missing/schema.yaml"],
        [*draft, "rows.csv", "--target", "income"],
        *(["schema", "check", name] for name in documents),
        [*simulate, "plan.yaml"],
        [*simulate, "plan.yaml", "--data", "a=rows.csv"],
        [*simulate, "plan.yaml", "--data", "a=rows.csv", "--data", "b=nowhere.csv"],
        [*simulate, "plan.yaml", "--data", "other.csv", "--partition", "iid"],
        [*simulate, "plan.yaml", *split, "--parties", "0"],
        [*simulate, "plan.yaml", *split, "--parties", "100"],
        [*simulate, "plan.yaml", *split, "--test", "nowhere.csv"],
        [*simulate, "plan.yaml", *split, "--test", "other.csv"],
        [*simulate, "plan.yaml", *split, "--out", "run"],
        [*simulate, "plan.yaml", *split, "--out", "kept.csv"],
        [*simulate, "plan.yaml", *split, "--epsilon", "2"],
        [*simulate, "rows.csv", "--data", "rows.csv"],
        [*simulate, "rows.csv", "--epsilon", "-1"],
        [*simulate, "--resume", "--out", "folder"],
        [*simulate, "delta.yaml", *split],
        sample,
        ["sample", "nowhere.npz"],
        [*sample, "--rows", "0"],
        [*sample, "-o", "kept.csv"],
        [*sample, "-o", "missing/x.csv"],
        [*sample, "-o", "x.xlsx"],
        ["plan", "new", "--schema", "schema.yaml", "--party", "a", "-o", "new.yaml"],
        ["plan", "new", "--schema", "schema.yaml", "--party", "a=9", "--party", "a=9", "-o", "new.yaml"],
        ["plan", "new", "--schema", "schema.yaml", "--party", "a=900", "-o", "kept.yaml"],
        ["plan", "bundle", "plan.yaml", "-o", "kept.yaml"],
        ["verify", "certificate.json"],
        ["verify", "nowhere.json"],
        ["evaluate", "kept.csv", "other.csv"],
        ["simulat"],
    ]


def tried(folder: Path) -> list[Outcome]:
    """What every command said. Each is a process of its own, forked from one that has loaded the libraries: loading
    them sixty times would take most of the time and show nothing."""
    material(folder)
    for name in ("schema", "plan", "simulate", "sample", "verify", "evaluate"):
        import_module(f"fedsynth.commands.{name}")
    return [_tried(arguments, folder) for arguments in commands()]


def _tried(arguments: list[str], folder: Path) -> Outcome:
    reading, writing = os.pipe()
    if not (process := os.fork()):
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(folder)
        os._exit(_exit_code(arguments))
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = " ".join(pipe.read().decode(errors="replace").split())
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return Outcome(" ".join(arguments), code, "Traceback" in said, said)


def _exit_code(arguments: list[str]) -> int:
    """In the forked process: the command, as its console script would run it."""
    sys.argv = ["fedsynth", *arguments]
    os.environ["COLUMNS"] = "80"
    code: object = 0
    try:
        main()
    except SystemExit as left:
        code = left.code
    except BaseException:  # noqa: BLE001 - what nobody caught is what is looked for
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else 0 if code is None else 1


def fingerprints(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def lost(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return [name for name, digest in before.items() if after.get(name) != digest]


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        for outcome in tried(Path(place)):
            print(json.dumps(outcome.__dict__, ensure_ascii=False))
