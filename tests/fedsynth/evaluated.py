"""An evaluation by the command, and its page as a reader of HTML sees it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
from click.testing import Result
from typer.testing import CliRunner

from fedsynth.cli import app
from fedsynth.evaluation.quick import quick_evaluation
from fedsynth.report.page import page
from fedsynth.report.subject import Subject, TableFile, provenance
from synth.metrics.evaluation import Evaluation
from synth.schema import Schema
from tests.small import SCHEMA

ROWS = 120


HOSTILE = '<script>alert("x")</script>&\'"'


def evaluated(folder: Path, *options: str, real: pd.DataFrame, synthetic: pd.DataFrame) -> Result:
    real.to_csv(folder / "real.csv", index=False)
    synthetic.to_csv(folder / "synthetic.csv", index=False)
    files = [str(folder / "real.csv"), str(folder / "synthetic.csv")]
    return CliRunner().invoke(app, ["evaluate", *files, "--out", str(folder / "out"), *options])


class Page(HTMLParser):
    """Tags in order, whether they nest, and the words people read."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == [], "unclosed elements"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def in_short(evaluation: Evaluation, *promise: Any) -> str:
    """The words at the top of a page about `SCHEMA`."""
    schema = Schema.model_validate(SCHEMA)
    text = assert_sound(page(Subject(evaluation, schema, provenance([], "of this test", schema), *promise))).text
    return text[text.index("In short") : text.index("Headline scores")]


def quick_page(schema: Schema, real: pd.DataFrame, synthetic: pd.DataFrame, holdout: pd.DataFrame | None = None) -> str:
    found = quick_evaluation(real, synthetic, schema, holdout)
    files = [TableFile(role="real", name=HOSTILE, sha256=None, rows=len(real))]
    return page(Subject(found, schema, provenance(files, "of this test", schema)))


def assert_sound(html: str) -> Page:
    found = Page(html)
    written = [found.text, *(value for _, value in found.attributes if value)]
    assert not any(re.search(r"\b([Nn]a[Nn]|inf|None)\b", words) for words in written)
    return found
