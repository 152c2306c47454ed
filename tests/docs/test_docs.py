"""Documents stay true: links lead somewhere, the tree is the real tree, commands and families are documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

from fedsynth.cli import app
from fedsynth.plan_reference import reference
from synth.synthesizers.registry import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(p for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"


def test_files_that_pages_and_docstrings_name_exist() -> None:
    named = re.compile(r"\b((?:synth|fed_node|aggregator|crypto|fedsynth|tests|benchmarks)/[a-z_/0-9]+\.py)\b")
    sources = [
        path for package in ("synth", "fed_node", "aggregator", "crypto") for path in (ROOT / package).rglob("*.py")
    ]
    for page in [*PAGES, *sources]:
        if page.name != "CHANGELOG.md":
            for path in named.findall(page.read_text()):
                assert (ROOT / path).exists(), f"{page.name} names {path}, which does not exist"


def test_the_annotated_tree_is_the_real_tree() -> None:
    block = next(b for b in re.findall(r"```\w*\n(.*?)```", README, re.DOTALL) if "interface.py" in b)
    parent, named = "", set()
    for line in block.splitlines():
        if match := re.match(r"(\s*)([\w.-]+/?)\s", line):
            indent, name = match.groups()
            path = name if not indent else parent + name
            parent = name if not indent else parent
            named.add(path.rstrip("/"))
            assert (ROOT / path).exists(), f"the README's tree names {path}, which does not exist"
    packages = {p.name for p in ROOT.iterdir() if p.is_dir() and (p / "__init__.py").exists()}
    assert packages <= named


def test_every_family_is_in_the_readme_and_in_the_guide() -> None:
    guide = (ROOT / "docs" / "choosing-a-synthesizer.md").read_text()
    for family in FAMILIES:
        assert f"`{family}`" in README
        assert f"`{family}`" in guide


def test_every_command_has_help_and_is_documented_somewhere() -> None:
    pages = " ".join(page.read_text() for page in PAGES)

    def walk(command: object, path: str) -> None:
        commands = getattr(command, "commands", None)
        if commands is None:
            assert getattr(command, "help", None), f"`{path}` has no help"
            assert path in pages, f"`{path}` is documented nowhere"
        for name, child in (commands or {}).items():
            walk(child, f"{path} {name}")

    walk(get_command(app), "fedsynth")


def test_every_decision_is_listed() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    for page in (ROOT / "docs" / "decisions").glob("0*.md"):
        assert f"({page.name})" in index


def test_no_path_of_one_machine_is_in_the_repository() -> None:
    tracked = [
        p
        for folder in ("synth", "crypto", "fed_node", "aggregator", "fedsynth", "docs", "examples", "benchmarks")
        for p in (ROOT / folder).rglob("*")
        if p.suffix in {".py", ".md", ".yaml", ".toml"}
    ]
    for path in tracked:
        assert not re.search(r"(?<![\w.)}\]])/(work|farm|root)/", path.read_text()), path


def test_the_plan_reference_is_what_the_models_say() -> None:
    """`python -m fedsynth.plan_reference > docs/plan-reference.md` brings it up to date."""
    assert (ROOT / "docs" / "plan-reference.md").read_text() == reference()
