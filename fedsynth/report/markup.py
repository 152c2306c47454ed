"""HTML made of elements, so that escaping cannot be forgotten: only what `element` returned is taken as markup.

Column names and labels come from data files and may hold anything. Text becomes part of the page through `element`
alone, and there it is escaped.
"""

from __future__ import annotations

from html import escape

VOID = frozenset({"br", "meta", "line", "rect", "circle", "path"})  # written without an end tag; SVG's close themselves


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


Content = str | Markup | None
Attribute = str | float | int | None


def element(tag: str, *content: Content, **attributes: Attribute) -> Markup:
    """`class_` stands for class, other underscores for hyphens; an attribute that is None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = joined(*content)
    if tag in VOID and not inner:
        return Markup(f"<{tag}{written}/>")
    return Markup(f"<{tag}{written}>{inner}</{tag}>")


def joined(*content: Content) -> Markup:
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in content if part is not None))


def table(headings: list[str], rows: list[list[Content]], **attributes: Attribute) -> Markup:
    """A table whose first column names the row. Wide ones scroll inside their own box; where the style sheet stacks
    the cells, each shows its heading."""
    head = element("tr", *(element("th", heading, scope="col") for heading in headings))
    body = []
    for row in rows:
        cells = (element("td", cell, data_label=name) for name, cell in zip(headings[1:], row[1:], strict=True))
        body.append(element("tr", element("th", row[0], scope="row"), *cells))
    inner = element("table", element("thead", head), element("tbody", *body), **attributes)
    return element("div", inner, class_="scroll")


def _text(value: str | float | int) -> str:
    """Coordinates need no more than two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
