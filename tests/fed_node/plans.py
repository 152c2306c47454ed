"""A small plan to approve, refuse and take apart."""

from typing import Any

from synth.plan import Plan, parse_plan


def plan_with(**changes: Any) -> Plan:
    content: dict[str, Any] = {
        "name": "diabetes-2026",
        "parties": [{"name": "north", "rows": 4000}, {"name": "south", "rows": 6000}, {"name": "west", "rows": 500}],
        "schema": {
            "columns": {
                "patient": {"kind": "identifier"},
                "sex": {"kind": "categorical", "categories": ["f", "m"]},
                "age": {"kind": "integer", "min": 0, "max": 120},
                "glucose": {"kind": "continuous", "min": 0, "max": 50, "missing": True},
                "seen": {"kind": "datetime", "min": "2020-01-01T00:00:00", "max": "2026-01-01T00:00:00"},
            }
        },
        "synthesizer": {"name": "ctgan", "rounds": 12},
        "privacy": {"epsilon": 2.0, "delta": 1e-6},
    }
    return parse_plan(content | changes)
