"""Schemas: what is accepted, what is refused and in which words, and that digests are stable."""

from __future__ import annotations

from typing import Any

import pytest

from synth.errors import SchemaError
from synth.plan import parse_schema
from tests.small import SCHEMA


def with_column(column: dict[str, Any]) -> dict[str, Any]:
    return {"columns": {"x": column}}


def test_every_kind_is_understood_and_identifiers_are_kept_back() -> None:
    schema = parse_schema(SCHEMA)
    assert next(iter(schema.columns)) == "patient"
    assert "patient" not in schema.released
    assert set(schema.discrete) == {"sex", "ward", "smoker", "died"}
    assert set(schema.numeric) == {"age", "dose", "admitted"}


def test_the_digest_is_known_and_follows_content_not_layout() -> None:
    column = {"kind": "integer", "min": 0, "max": 9}
    schema = parse_schema(with_column(column))
    assert schema.digest() == parse_schema(with_column(column | {"missing": False})).digest()
    assert schema.digest() != parse_schema(with_column(column | {"max": 10})).digest()
    # Pinned: parties compare digests across versions; a change here breaks every approved plan.
    assert schema.digest() == "f1dc341b533542d7c2ced0f1abd943e77c570bee361fff77adc5ca853b5ca89c"


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ({"kind": "integer", "min": 5, "max": 1}, "min 5 is above max 1"),
        ({"kind": "integer", "min": 0, "max": 1, "mx": 3}, "unknown key"),
        ({"kind": "continuous", "min": 1, "max": 1}, "not below max"),
        ({"kind": "continuous", "min": 0, "max": float("inf")}, "finite"),
        ({"kind": "categorical", "categories": ["a", "a"]}, "distinct"),
        ({"kind": "categorical", "categories": ["a"], "other": "a"}, "distinct"),
        ({"kind": "categorical", "categories": []}, "at least 1"),
        ({"kind": "colour"}, "colour"),
        ({"kind": "datetime", "min": "2020-01-01T00:00:00Z", "max": "2021-01-01T00:00:00Z"}, "time zone"),
        ({"kind": "identifier"}, "every column is an identifier"),
    ],
)
def test_mistakes_are_named(column: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        parse_schema(with_column(column))


def test_labels_that_yaml_reads_as_numbers_are_text() -> None:
    schema = parse_schema(with_column({"kind": "categorical", "categories": [0, 1, True]}))
    assert schema.discrete["x"].labels == ["0", "1", "True"]


def test_the_target_must_be_a_released_column() -> None:
    with pytest.raises(SchemaError, match="target 'y' is not among"):
        parse_schema(with_column({"kind": "boolean"}) | {"target": "y"})
