"""Pieces that several sections are made of."""

from __future__ import annotations

from collections.abc import Sequence

from fedsynth.report.markup import Content, Markup, element
from fedsynth.report.words import Verdict

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


def not_measured(missing: Sequence[tuple[str, str]]) -> Markup | None:
    """What has no figure, in a line for each reason: its name and what would measure it."""
    if not missing:
        return None
    by_reason: dict[str, list[str]] = {}
    for title, reason in missing:
        by_reason.setdefault(reason, []).append(title)
    told = "; ".join(f"{', '.join(titles)} ({reason})" for reason, titles in by_reason.items())
    return paragraph(f"Not measured: {told}.", class_="quiet")


def legend(real: str = "real", synthetic: str = "synthetic", other: str | None = None) -> Markup:
    entries = [("real", real), ("synthetic", synthetic), *([("other", other)] if other else [])]
    return element("div", *(_entry(style, words) for style, words in entries), class_="legend")


def _entry(style: str, words: str) -> Markup:
    swatch = element("svg", element("rect", width=15, height=12, rx=3, class_=style), viewBox="0 0 15 12")
    return element("span", swatch, words)
