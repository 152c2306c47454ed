"""The page in HTML: no script, no file beside it, no network."""

from __future__ import annotations

from fedsynth.certificate.content import Page, Section
from fedsynth.certificate.picture import as_svg
from fedsynth.report.markup import Content, Markup, element, table
from fedsynth.report.page import POLICY
from fedsynth.report.parts import SIGNS, paragraph
from fedsynth.report.style import STYLE

MORE = """
main { max-width: 900px; }
.verdict { border: 2px solid; border-left-width: 10px; border-radius: 8px; background: var(--card); padding: 12px 16px;
  margin: 18px 0; font-weight: 600; }
.verdict p { margin: 0; }
.picture { max-width: 340px; }
.band { fill: var(--real); fill-opacity: 0.3; stroke: var(--real); }
.pair { display: flex; flex-wrap: wrap; gap: 12px 32px; align-items: center; }
.pair > * { flex: 1 1 260px; min-width: 0; }
td { overflow-wrap: anywhere; }
"""


def as_html(page: Page) -> str:
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{page.title}: {page.about}"),
        element("style", Markup(STYLE + MORE)),
    )
    return "<!doctype html>\n" + element("html", head, element("body", as_main(page)), lang="en") + "\n"


def as_main(page: Page) -> Markup:
    """The part that another page may hold."""
    return element(
        "main",
        element("h1", page.title),
        paragraph(page.about, class_="quiet"),
        element("div", paragraph(f"{SIGNS[page.tone]} {page.verdict}"), class_=f"verdict {page.tone}", role="status"),
        *map(_section, page.sections),
    )


def _section(section: Section) -> Markup:
    rows: list[list[Content]] = [list(row) for row in section.rows]
    listed = table(list(section.headings), rows) if rows else None
    if section.epsilon is not None:
        listed = element("div", as_svg(section.epsilon), listed, class_="pair")
    return element("section", element("h2", section.title), *map(paragraph, section.sentences), listed)
