"""Small files, short functions, shallow classes, nothing written twice: a rule that nobody checks is soon broken."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("synth", "crypto", "fed_node", "aggregator", "fedsynth")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TREES = {path: ast.parse(path.read_text()) for path in MODULES}

MOST_LINES = 300  # of a file
MOST_FUNCTION_LINES = 40  # without its docstring, which gives reasons and need not be short
MOST_BASES = 3  # above a class, in this repository
REPEATED_LINES = 6

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_no_file_is_long(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MOST_LINES


def test_functions_are_long_only_where_a_command_declares_its_options() -> None:
    found = [
        f"{named(path)}: {function.name}"
        for path, tree in TREES.items()
        if "fedsynth/commands/" not in named(path)
        for function in functions(tree)
        if _lines(function) > MOST_FUNCTION_LINES
    ]
    assert found == []


def test_the_body_of_a_command_is_short() -> None:
    found = [
        f"{named(path)}: {function.name}"
        for path, tree in TREES.items()
        for function in functions(tree)
        if _lines(function) - (function.body[0].lineno - function.lineno) > MOST_FUNCTION_LINES
    ]
    assert found == []


def test_classes_are_shallow() -> None:
    bases = {
        node.name: [ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases]
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }

    def above(name: str) -> int:
        return max((1 + above(base) for base in bases.get(name, []) if base in bases and base != name), default=0)

    assert [name for name in bases if above(name) > MOST_BASES] == []


def test_no_six_lines_are_written_twice() -> None:
    """Signatures, imports and lines of punctuation left out: two functions may well take the same arguments."""
    places: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for path, tree in TREES.items():
        lines = _statements(path, tree)
        for start in range(len(lines) - REPEATED_LINES + 1):
            block = lines[start : start + REPEATED_LINES]
            places[tuple(text for _, text in block)].append(f"{named(path)}:{block[0][0]}")
    assert [where for where in places.values() if len(where) > 1] == []


def test_only_privacy_tells_events_apart() -> None:
    """Screens, ledgers, certificates and audits ask the event (see synth/privacy/events.py)."""
    kinds = {"CountNoise", "SampledGaussian", "SharedGaussian", "Gaussian", "Laplace", "Unaccounted"}
    found = []
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            names = _asked_types(node)
            if names & kinds and not named(path).startswith("synth/privacy/"):
                found.append(f"{named(path)}:{getattr(node, 'lineno', 0)}")
    assert found == []


def _asked_types(node: ast.AST) -> set[str]:
    if isinstance(node, ast.MatchClass):
        return {ast.unparse(node.cls)}
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
        return {each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)}
    return set()


def _lines(function: Function) -> int:
    documented = ast.get_docstring(function) is not None
    first = function.body[0]
    docstring = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


def _statements(path: Path, tree: ast.Module) -> list[tuple[int, str]]:
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, Function):
            left_out.update(range(node.lineno, node.body[0].lineno))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            left_out.update(range(node.lineno, (node.end_lineno or 0) + 1))
    numbered = enumerate((line.strip() for line in path.read_text().splitlines()), start=1)
    return [(number, text) for number, text in numbered if number not in left_out and len(text) > 3]
