"""The whole page. It needs no script, no file beside it and no network; its policy forbids the browser all three."""

from __future__ import annotations

from fedsynth.report.answers import answers, headlines
from fedsynth.report.columns import columns
from fedsynth.report.dynamics import dynamics
from fedsynth.report.markup import Markup, element
from fedsynth.report.pairs import pairs
from fedsynth.report.parts import alarm, notice, paragraph
from fedsynth.report.safety import safety
from fedsynth.report.sources import all_figures, certificate, sources
from fedsynth.report.style import STYLE
from fedsynth.report.subject import Subject
from fedsynth.report.usefulness import usefulness
from fedsynth.report.words import count

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
LINKS = {
    "scores": "Scores",
    "columns": "Columns",
    "pairs": "Pairs",
    "usefulness": "Usefulness",
    "safety": "Privacy attacks",
    "certificate": "Certificate",
    "figures": "All figures",
    "sources": "Sources",
}


def page(subject: Subject) -> str:
    """report.html as text."""
    evaluation = subject.evaluation
    body = element(
        "main",
        _title(subject),
        answers(subject),
        headlines(evaluation),
        columns(subject),
        pairs(evaluation),
        usefulness(evaluation),
        dynamics(evaluation.sequences),
        safety(evaluation),
        certificate(subject),
        all_figures(evaluation),
        sources(subject),
    )
    return "<!doctype html>\n" + element("html", _head(subject), element("body", body), lang="en") + "\n"


def _head(subject: Subject) -> Markup:
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", subject.title),
        element("style", Markup(STYLE)),
    )


def _title(subject: Subject) -> Markup:
    evaluation = subject.evaluation
    rows = (
        f"{count(evaluation.rows_synthetic, 'synthetic row')} compared with {count(evaluation.rows_real, 'real row')}"
    )
    holdout = f", {count(evaluation.rows_holdout, 'holdout row')}" if evaluation.rows_holdout else ", no holdout rows"
    names = ", ".join(file.name for file in subject.provenance.tables)
    return element(
        "header",
        element("h1", subject.title),
        paragraph(f"Measured {subject.provenance.date}", class_="quiet"),
        *map(alarm, subject.alarms),
        paragraph(f"{rows}{holdout}; {count(len(evaluation.columns), 'column')}. Tables: {names}.", class_="quiet"),
        element("nav", *(element("a", words, href=f"#{anchor}") for anchor, words in LINKS.items())),
        notice(
            "This page holds exact statistics of the real rows, without noise. It belongs to whoever may see those "
            "rows, and must not be published with the synthetic table."
        ),
    )
