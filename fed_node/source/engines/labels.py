"""Columns of labels as the engine holds them: texts, truth values, or numbers that some export made of codes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import ibis

from fed_node.source.engines.expressions import Expression, empty_text, exactly, position, tree
from fed_node.source.engines.forms import Form
from fed_node.source.engines.numbers import empty_number, real_value, spelled_exactly
from fed_node.source.engines.place import with_rule
from synth.encoding.contingency import Ints
from synth.encoding.fallbacks import Kind, rule_for
from synth.encoding.plain_cells import blanks_matter, text_of
from synth.schema import Boolean, DiscreteColumn

WHOLE = re.compile(r"-?\d+")
LARGEST_WHOLE = 2**63 - 1
Position = Callable[[Sequence[str]], Expression]  # of the cell among some values, from 1; 0: it is none of them


@dataclass(frozen=True, eq=False)
class Labelled:
    """A place (see `place`). `codes` of the values that are labels, and of cells that are empty or undeclared."""

    codes: Mapping[str, int]
    position: Position
    empty: Expression
    empty_code: int
    undeclared_code: int
    out: Expression

    def bin(self, of_cell: Ints) -> Expression:
        """Values are looked up in the order of their bins, so that few comparisons lead from a place to its bin."""
        bins = {value: int(of_cell[code]) for value, code in self.codes.items()}
        ordered = sorted(bins, key=bins.__getitem__)
        found = ibis.literal(int(of_cell[self.undeclared_code]))
        if ordered:
            place = self.position(ordered)
            found = ibis.ifelse(place == 0, found, _by_place(place, [bins[value] for value in ordered]))
        return ibis.ifelse(self.empty, int(of_cell[self.empty_code]), found)


def label_place(cell: Expression, form: Form, column: DiscreteColumn, empty_texts: list[str]) -> Labelled | None:
    codes, found = _search(cell, form, column.labels, isinstance(column, Boolean))
    if found is None or not (form in (Form.TEXT, Form.TRUTH) or spelled_exactly(empty_texts)):
        return None
    empty = _empty(cell, form, column.labels, empty_texts)
    last, missing = len(column.labels) - 1, len(column.labels)
    flaws = {} if column.missing else {Kind.EMPTY: empty}
    empty_code = missing if column.missing else last
    undeclared_code = last
    if isinstance(column, Boolean) or column.other is None:
        flaws[Kind.UNDECLARED] = ~empty & (found(list(codes)) == 0 if codes else ibis.literal(True))
        undeclared_code = missing if rule_for(column, Kind.UNDECLARED) == "missing" else last
    return Labelled(codes, found, empty, empty_code, undeclared_code, with_rule(column, flaws, "leave-out"))


def _empty(cell: Expression, form: Form, labels: list[str], empty_texts: list[str]) -> Expression:
    if form is Form.TEXT and blanks_matter(labels):
        return cell.isnull() | cell.isin(empty_texts).fill_null(False)
    if form is Form.TEXT:
        return empty_text(cell, empty_texts)
    return cell.isnull() if form is Form.TRUTH else empty_number(cell, real_value(cell, form), form, empty_texts)


def _search(cell: Expression, form: Form, labels: list[str], yes_or_no: bool) -> tuple[dict[str, int], Position | None]:
    """The values of the engine that are labels, with their codes, and how they are found; None: not by the engine."""
    code_of = {label: code for code, label in enumerate(labels)}
    if form is Form.TEXT and all(label.isascii() for label in labels if WHOLE.fullmatch(label)):
        text = _without_noughts(cell if blanks_matter(labels) else cell.strip(), labels)
        return code_of, lambda texts: position(texts, "string", text)
    if form is Form.TRUTH:
        known = {"False": 0, "True": 1} if yes_or_no else {k: v for k, v in code_of.items() if k in ("False", "True")}
        return known, lambda texts: ibis.ifelse(cell, _number("True", texts), _number("False", texts))
    if form is Form.WHOLE and not cell.type().is_uint64():
        known = {k: v for k, v in code_of.items() if _is_whole(k)}
        return known, lambda texts: position(texts, "int64", cell.cast("int64"))
    if form in (Form.REAL, Form.DECIMAL):
        value = real_value(cell, form)
        value = ibis.ifelse(value == exactly("0", "float64"), exactly("0", "float64"), value)  # no negative zero
        known = {repr(float(k)): v for k, v in code_of.items() if _is_real(k)}
        return known, lambda texts: position(texts, "float64", value)
    return {}, None


def _without_noughts(cell: Expression, labels: list[str]) -> Expression:
    """'3.00' as '3', where that is a label and the other is none: a whole number that some export wrote as a real."""
    whole = [label for label in labels if WHOLE.fullmatch(label)]
    if not whole:
        return cell
    point = ibis.greatest(cell.find("."), 0)
    head, tail = cell.substr(0, point), cell.substr(point + 1)
    noughts = (point > 0) & (tail != "") & (tail.replace("0", "") == "")
    shorter = noughts & head.isin(whole) & ~cell.isin(labels)
    return ibis.ifelse(shorter.fill_null(False), head, cell)


def _number(value: str, values: Sequence[str]) -> int:
    return list(values).index(value) + 1 if value in values else 0


def _is_whole(label: str) -> bool:
    plain = label.isascii() and WHOLE.fullmatch(label) is not None
    return plain and str(int(label)) == label and abs(int(label)) <= LARGEST_WHOLE


def _is_real(label: str) -> bool:
    try:
        return text_of(float(label)) == label and label != "nan"
    except ValueError:
        return False


def _by_place(place: Expression, bins: list[int]) -> Expression:
    """The bin from the place: stretches on which it stays, or rises by one with the place, need one comparison."""
    starts, leaves, here = list[int](), list[Expression](), 0
    while here < len(bins):
        rise = bins[here + 1] - bins[here] if here + 1 < len(bins) else 0
        after = here + 1
        while rise in (0, 1) and after < len(bins) and bins[after] - bins[after - 1] == rise:
            after += 1
        leaves.append(place + (bins[here] - here - 1) if rise == 1 else bins[here])
        starts.append(here + 1)
        here = after
    return tree(place, starts[1:], leaves)
