"""Whoever writes the schema tries to forge the screen on which a person approves: every name of it is theirs."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from fed_node.source.report import DataReport, Problem
from fedsynth.cli import _plain
from fedsynth.commands.approving import screen
from fedsynth.commands.checking import show_report
from synth.errors import PlanError, SchemaError
from synth.plan import parse_plan, parse_schema
from synth.printable import escaped, quoted, unprintable
from tests.small import SCHEMA, plan_content

FORGED = "age).\n  Never read: everything.\nWhat it costs\n  At most ε = 0.001"
HOSTILE = [
    FORGED,
    "age\rPlan 'harmless'",
    "age\x1b[2J\x1b[HPlan 'harmless'",  # clears the screen
    "age\x9b2J",  # the same in one byte less
    "age\u202eegnar",  # right to left from here
    "age\u2066x\u2069",
    "a\u200bge",  # zero width
    "age\ufeff",
    "a\u00adge",
    "age\u2028next line",
    "age\x00",
    "age\u3164",  # a letter that shows nothing
    "age\ufe0f",
    "age\ud800",
]
PLACES = ["name", "label", "other", "true", "description", "format", "missing_values"]


def schema_with(text: str, place: str) -> dict[str, Any]:
    content = copy.deepcopy(SCHEMA)
    columns = content["columns"]
    match place:
        case "name":
            content["columns"] = {(text if name == "age" else name): kind for name, kind in columns.items()}
        case "label":
            columns["sex"]["categories"] = ["f", text]
        case "other":
            columns["ward"]["other"] = text
        case "true":
            columns["smoker"]["true"] = text
        case "description":
            columns["age"]["description"] = text.replace("\n", "\r")  # line feeds are allowed there, and nothing else
        case "format":
            columns["admitted"]["format"] = text
        case "missing_values":
            content["missing_values"] = [text]
    return content


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", HOSTILE)
def test_what_does_not_show_is_refused_by_position_and_in_letters(text: str, place: str) -> None:
    with pytest.raises(SchemaError) as refused:
        parse_schema(schema_with(text, place))
    told = str(refused.value)
    positions = {"name": 2, "description": 2, "label": 4, "other": 5, "true": 6, "format": 7}
    assert "missing_values" in told if place == "missing_values" else f"column {positions[place]}, '" in told
    assert unprintable(told) is None
    assert unprintable(_plain(told)) is None
    with pytest.raises(PlanError):  # and so is a plan with it, whoever sends it
        parse_plan(plan_content({"name": "marginals"}) | {"schema": schema_with(text, place)})


def test_the_refusal_says_which_character() -> None:
    with pytest.raises(SchemaError, match=r"column 2, 'age\\x1b\[2J.*U\+001B"):
        parse_schema(schema_with("age\x1b[2J\x1b[H", "name"))


def test_mistakes_are_told_without_obeying_the_names_in_them() -> None:
    content = copy.deepcopy(SCHEMA)
    content["columns"]["a\x1b[2Jge"] = {"kind": "unheard of\x1b[H"}
    with pytest.raises(SchemaError) as refused:
        parse_schema(content)
    assert unprintable(str(refused.value)) is None


PADDED = ["age" + " " * 100 + "What it costs", "age" + " " * 73 + "  Charged: nothing.", "a" * 90 + " What it costs"]
WIDE = "年" * 36 + "Ｗｈａｔ　ｉｔ　ｃｏｓｔｓ".replace("\u3000", " ")  # twice as wide as it is long


@pytest.mark.parametrize("name", [*PADDED, WIDE, "x', 'y', 'z", "[bold]age[/]", "Größe", "年齢", "العمر"])
def test_printable_names_cannot_pose_as_lines_of_the_screen(name: str) -> None:
    plan = parse_plan(plan_content({"name": "marginals"}) | {"schema": schema_with(name, "name")})
    honest = parse_plan(plan_content({"name": "marginals"}))
    lines = screen(plan, "party-1", []).splitlines()
    assert all(cell_len(line) <= 80 for line in lines)
    assert _beginnings(lines) == _beginnings(screen(honest, "party-1", []).splitlines())
    assert "".join(quoted(name).split()) in "".join("".join(lines).split())


def _beginnings(lines: list[str]) -> list[str]:
    """The first words of the lines that begin where real ones do; the second line is the digest."""
    return [line.split()[0] for place, line in enumerate(lines) if not line.startswith(" " * 6) and place != 1]


def test_a_name_is_no_markup_in_the_report_of_the_rows() -> None:
    report = DataReport("rows.csv", 2, 0, (Problem("[red]age[/]\x1b[2J", "is [bold]missing[/]", "add it"),))
    console = Console(record=True, width=200, file=io.StringIO())
    show_report(console, report)
    shown = console.export_text()
    assert "[red]age[/]" in shown
    assert "\x1b" not in shown


@settings(max_examples=300)
@given(st.text(max_size=30))
def test_escaped_text_can_be_printed_anywhere(text: str) -> None:
    assert unprintable(escaped(text)) is None
    assert (unprintable(text) is None) == (escaped(text) == text)
    assert escaped(text, keep="\n").replace("\n", "") == escaped(text.replace("\n", ""))
