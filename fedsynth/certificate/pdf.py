"""The page in PDF, for files and letters. Everything that touches ReportLab is here.

The fonts are DejaVu, embedded, because ε and names in most alphabets must show on any reader; letters that they lack
come out as boxes, and the HTML has them.
"""

from __future__ import annotations

import io
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from reportlab.graphics.shapes import Drawing, Line, Polygon, PolyLine, Rect, String
from reportlab.lib.colors import HexColor
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.platypus import KeepTogether, Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

from fedsynth.certificate.content import Page, Section
from fedsynth.certificate.picture import band

FONTS = Path(__file__).with_name("fonts")
INK, QUIET, LINE, BLUE = (HexColor(code) for code in ("#1b2430", "#586474", "#d9dfe6", "#3a6cb4"))
TONES = {"good": HexColor("#1b7a4b"), "fair": HexColor("#8f5d00"), "poor": HexColor("#b3261e")}
WIDTH = A4[0] - 36 * mm
SIDE = 55 * mm
SHARES = {2: (0.3, 0.7), 3: (0.25, 0.15, 0.6)}  # of the width, by how many columns a table has


def as_pdf(page: Page) -> bytes:
    """The same page and the same moment give the same bytes but for ReportLab's own date."""
    buffer = io.BytesIO()
    document = SimpleDocTemplate(
        buffer,
        pagesize=A4,
        leftMargin=18 * mm,
        rightMargin=18 * mm,
        topMargin=18 * mm,
        bottomMargin=18 * mm,
        title=f"{page.title}: {page.about}",
        author="fedsynth",
    )
    story: list[Any] = [
        _text(page.title, "title"),
        _text(page.about, "quiet"),
        Spacer(1, 4 * mm),
        _verdict(page),
    ]
    for section in page.sections:
        story += _section(section)
    document.build(story, onFirstPage=_foot, onLaterPages=_foot)
    return buffer.getvalue()


def _verdict(page: Page) -> Table:
    box = Table([[_text(page.verdict, "strong")]], colWidths=[WIDTH])
    box.setStyle(TableStyle([("BOX", (0, 0), (-1, -1), 1.5, TONES[page.tone]), ("PADDING", (0, 0), (-1, -1), 8)]))
    return box


def _section(section: Section) -> list[Any]:
    head = [_text(section.title, "heading"), *(_text(sentence, "body") for sentence in section.sentences)]
    drawn: list[Any] = [_picture(section.epsilon)] if section.epsilon is not None else []
    listed = [_table(section)] if section.rows else []
    return [KeepTogether([*head, *drawn]), *listed]


def _table(section: Section) -> Table:
    shares = SHARES[len(section.headings)]
    content = [[_text(name, "small-strong") for name in section.headings]]
    content += [[_text(cell, "small") for cell in row] for row in section.rows]
    table = Table(content, colWidths=[share * WIDTH for share in shares], repeatRows=1, spaceBefore=4, spaceAfter=4)
    table.setStyle(TableStyle([("LINEBELOW", (0, 0), (-1, -1), 0.5, LINE), ("VALIGN", (0, 0), (-1, -1), "TOP")]))
    return table


def _picture(epsilon: float) -> Drawing:
    low, high = band(epsilon)
    ring = [value * SIDE for point in [*high, *reversed(low)] for value in point]
    drawing = Drawing(SIDE + 60, SIDE + 26)
    shapes = [
        Rect(40, 20, SIDE, SIDE, strokeColor=LINE, fillColor=None),
        Polygon(_moved(ring), fillColor=BLUE, fillOpacity=0.3, strokeColor=None),
        PolyLine(_moved([value * SIDE for point in high for value in point]), strokeColor=BLUE),
        PolyLine(_moved([value * SIDE for point in low for value in point]), strokeColor=BLUE),
        Line(40, 20, 40 + SIDE, 20 + SIDE, strokeColor=QUIET, strokeDashArray=[3, 3]),
        String(40 + SIDE / 2 - 30, 4, "believed before", fontName="DejaVu", fontSize=8, fillColor=QUIET),
        String(0, 20 + SIDE / 2, "after", fontName="DejaVu", fontSize=8, fillColor=QUIET),
        String(6, 14 + SIDE, "100 %", fontName="DejaVu", fontSize=8, fillColor=QUIET),
    ]
    for shape in shapes:
        drawing.add(shape)
    return drawing


def _moved(points: list[float]) -> list[float]:
    return [value + (40 if place % 2 == 0 else 20) for place, value in enumerate(points)]


def _text(words: str, style: str) -> Paragraph:
    return Paragraph(escape(words), _styles()[style])


@cache
def _styles() -> dict[str, ParagraphStyle]:
    for name, file in (("DejaVu", "DejaVuSans.ttf"), ("DejaVu-Bold", "DejaVuSans-Bold.ttf")):
        pdfmetrics.registerFont(TTFont(name, str(FONTS / file)))
    body = ParagraphStyle("body", fontName="DejaVu", fontSize=9.5, leading=14, textColor=INK, spaceAfter=4)
    small = ParagraphStyle("small", body, fontSize=8, leading=11, spaceAfter=0, splitLongWords=1)
    return {
        "body": body,
        "small": small,
        "quiet": ParagraphStyle("quiet", body, textColor=QUIET),
        "strong": ParagraphStyle("strong", body, fontName="DejaVu-Bold"),
        "small-strong": ParagraphStyle("small-strong", small, fontName="DejaVu-Bold", textColor=QUIET),
        "title": ParagraphStyle("title", body, fontName="DejaVu-Bold", fontSize=20, leading=26),
        "heading": ParagraphStyle("heading", body, fontName="DejaVu-Bold", fontSize=13, leading=18, spaceBefore=12),
    }


def _foot(canvas: Any, document: Any) -> None:
    canvas.setFont("DejaVu", 7)
    canvas.setFillColor(QUIET)
    canvas.drawString(
        18 * mm, 10 * mm, "Only `fedsynth verify certificate.json` proves anything; this page repeats it."
    )
    canvas.drawRightString(A4[0] - 18 * mm, 10 * mm, str(document.page))
