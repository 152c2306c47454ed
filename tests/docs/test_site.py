"""The site can be built, holds every page, and asks nobody for anything when it is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from mkdocs.commands.build import build
from mkdocs.config import load_config

ROOT = Path(__file__).resolve().parents[2]
FETCHED = re.compile(
    r"<(?:script|img|iframe)[^>]* src=\"(https?:)?//"
    r"|<link[^>]* rel=\"(?:stylesheet|preconnect)\"[^>]* href=\"(https?:)?//"
)


@pytest.mark.filterwarnings("ignore")  # of mkdocs and its theme
def test_the_site_is_built_and_needs_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path)))
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        assert not FETCHED.search(page.read_text()), page
    assert "synthesize" in (tmp_path / "api-reference.html").read_text()


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r"[\w/-]+\.md", yaml.safe_dump(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])))
    there = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert there <= listed
    assert listed - there == {"api-reference.md", "decisions/README.md"}
