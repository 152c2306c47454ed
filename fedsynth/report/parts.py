"""Pieces that several sections are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fedsynth.report.markup import Content, Markup, element
from fedsynth.report.words import Verdict

HOLDOUT = "--holdout"  # by which `fedsynth evaluate` takes them
SIGNS = {"good": "✓", "fair": "~", "poor": "!", "unknown": "–"}  # colour alone would not do on paper


def section(identifier: str, title: str, *content: Content) -> Markup:
    return element("section", element("h2", title), *content, id=identifier)


def paragraph(*content: Content, class_: str | None = None) -> Markup:
    return element("p", *content, class_=class_)


def notice(words: str) -> Markup:
    return element("div", paragraph(words), class_="notice")


def alarm(words: str) -> Markup:
    """A notice that nobody may overlook."""
    return element("div", paragraph(words), class_="notice alarm")


def card(title: str, verdict: Verdict | None, *content: Content) -> Markup:
    chip = None
    if verdict is not None:
        chip = element("span", f"{SIGNS[verdict.tone]} {verdict.words}", class_=f"chip {verdict.tone}")
    head = element("div", element("h3", title), chip, class_="head")
    return element("div", head, *content, class_="card")


def grid(*cards: Markup, class_: str = "grid", style: str | None = None) -> Markup:
    return element("div", *cards, class_=class_, style=style)


def unmeasured(titles: Sequence[str], reasons: Iterable[str | None], option: str) -> Markup | None:
    """What has no figure, in one line, with why and the command that would measure it."""
    if not titles:
        return None
    why = "; ".join(dict.fromkeys(filter(None, reasons)))
    command = element("code", f"fedsynth evaluate REAL SYNTHETIC {option} FILE")
    said = f"Not measured: {', '.join(titles)} ({why}). With rows that the synthesizer never saw, "
    return element("p", said, command, " measures what can be.", class_="quiet small")


def legend(real: str = "real", synthetic: str = "synthetic", other: str | None = None) -> Markup:
    entries = [("real", real), ("synthetic", synthetic), *([("other", other)] if other else [])]
    return element("div", *(_entry(style, words) for style, words in entries), class_="legend")


def _entry(style: str, words: str) -> Markup:
    swatch = element("svg", element("rect", width=15, height=12, rx=3, class_=style), viewBox="0 0 15 12")
    return element("span", swatch, words)
