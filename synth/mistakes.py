"""What pydantic found wrong, in the words of somebody who writes a plan: no types, no classes, what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

_WORDS = {
    "missing": "is missing; add it",
    "extra_forbidden": "unknown key; remove it or check its spelling (`fedsynth schema export` lists every key)",
    "union_tag_not_found": "does not say of what kind it is; add {discriminator}",
    "union_tag_invalid": "there is no {tag!r}; {discriminator} is one of {expected_tags}",
    "literal_error": "must be {expected}",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be {ge:g} or more",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be {le:g} or less",
    "finite_number": "must be a finite number",
    "too_short": "needs at least {min_length}, and has {actual_length}",
    "too_long": "may have at most {max_length}, and has {actual_length}",
    "string_too_short": "must not be empty",
    "string_too_long": "may have at most {max_length} characters",
}
_KINDS = {
    "int": "a whole number", "float": "a number", "bool": "true or false", "string": "text", "list": "a list",
    "dict": "a mapping of keys to values", "model": "a mapping of keys to values", "datetime": "a date or time",
}  # fmt: skip
_TYPE = re.compile(r"(int|float|bool|string|list|dict|model|datetime)_(?:type|parsing|attributes_type|from_\w+|.*)")
_JARGON = re.compile(r"\[|^(?:Privacy|Between|str|int|float|function-.*)$")


def sentences(document: str, error: ValidationError, patterns: Mapping[str, str]) -> str:
    """One sentence a mistake, each with its place; `patterns` says in words what a pattern wants."""
    items = error.errors(include_url=False)
    lines: dict[str, None] = {}
    for item in items:
        if item["type"] == "literal_error" and len(items) > 1 and item["loc"][-1] == "literal['none']":
            continue  # the other arm of `privacy: Privacy | "none"`; the Privacy arm says what is wrong
        place = ".".join(str(part) for part in item["loc"] if not _JARGON.search(str(part))) or "whole document"
        lines[f"{document}, {place}: {_reason(item, patterns)}."] = None
    return " ".join(lines)


def _reason(item: Any, patterns: Mapping[str, str]) -> str:
    kind, context = str(item["type"]), item.get("ctx", {})
    if kind == "value_error":
        return str(item["msg"]).removeprefix("Value error, ")
    if kind == "string_pattern_mismatch":
        return f"{item['input']!r} will not do: {patterns.get(context['pattern'], item['msg'])}"
    if kind in _WORDS:
        return _WORDS[kind].format(**context)
    if found := _TYPE.fullmatch(kind):
        return f"must be {_KINDS[found.group(1)]}"
    return str(item["msg"]).replace("Input should be", "must be")
