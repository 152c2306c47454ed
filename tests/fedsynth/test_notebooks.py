"""The notebooks do what they say: their cells, in order, in a process of their own, as a kernel would run them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
RUNNER = """
import ast, json, sys
names = {"__name__": "__main__"}
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, sys.argv[1], "exec"), names)
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), sys.argv[1], "eval"), names)
            html = getattr(shown, "_repr_html_", lambda: None)()
            print("shown:", type(shown).__name__, len(html or repr(shown)))
"""


@pytest.mark.parametrize("name", ["one-table", "three-hospitals"])
def test_a_notebook_runs_from_top_to_bottom(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, f"{name}.ipynb"], cwd=NOTEBOOKS, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "shown: Report" in done.stdout


def test_notebooks_are_kept_without_their_output() -> None:
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        cells = json.loads(path.read_text())["cells"]
        assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code"), path
