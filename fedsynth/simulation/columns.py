"""One table cut by columns among pretend parties, and put together again to compare with: for simulations only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from fed_node.linkage.people import NOBODY, People
from fed_node.source import Source
from synth.encoding.records import Records, Values
from synth.errors import InputError
from synth.linkage.own import own_table
from synth.plan import Plan

KEY = "person"  # the key column where the schema names no identifier


def cut_by_columns(content: dict[str, Any], count: int | None) -> dict[str, Any]:
    """The plan's content by columns: as it is if it says so, else its columns in as many even parts as parties."""
    if content.get("partition") == "columns":
        if count is not None:
            raise InputError("--parties goes with a plan by rows; this plan says which columns are at which party")
        return content
    schema = content.get("schema")
    if not isinstance(schema, dict) or not isinstance(schema.get("columns"), dict):
        raise InputError("the plan's schema cannot be read; `fedsynth schema check` says why")
    identifiers = [name for name, column in schema["columns"].items() if column.get("kind") == "identifier"]
    key = identifiers[0] if identifiers else KEY
    released = [name for name in schema["columns"] if name not in identifiers]
    parts = np.array_split(np.array(released, dtype=object), count or len(content["parties"]))
    return content | {
        "schema": schema | {"columns": {key: {"kind": "identifier"}} | schema["columns"]},
        "partition": "columns",
        "linkage": {"key": key},
        "parties": [
            {"name": f"party-{number}", "rows": 2, "columns": list(part)} for number, part in enumerate(parts, start=1)
        ],
    }


def columns_apart(table: pd.DataFrame, plan: Plan, seed: int) -> dict[str, pd.DataFrame]:
    """Everybody's columns of all rows, each party's in an order of its own; rows are numbered if they have no key."""
    if plan.linkage is None:
        raise InputError("the plan is not by columns")
    key, rng = plan.linkage.key, np.random.default_rng(seed)
    if key not in table:
        table = table.assign(**{key: [f"row-{number}" for number in range(1, len(table) + 1)]})
    if missing := [name for name in plan.table.released if name not in table]:
        raise InputError(f"the table has no column {', '.join(missing)}; the plan's schema does")
    return {
        party.name: table[[key, *plan.columns_of(party.name)]].iloc[rng.permutation(len(table))]
        for party in plan.parties
    }


def joined_records(plan: Plan, sources: Mapping[str, Source]) -> Records:
    """Everybody who is at all parties, with all columns: on one machine there is nobody to keep them from."""
    if plan.linkage is None:
        raise InputError("the plan is not by columns")
    key = plan.linkage.key
    people = {name: People.read(sources[name], own_table(plan, name), key) for name in plan.holders}
    fitting = {
        name: {text: place for text, place in zip(each.keys, each.record.tolist(), strict=True) if place != NOBODY}
        for name, each in people.items()
    }
    everybody = sorted(set.intersection(*(set(found) for found in fitting.values())))
    columns: dict[str, Values] = {}
    for name, each in people.items():
        rows = np.array([fitting[name][text] for text in everybody], dtype=np.int64)
        columns |= each.records.take(rows).columns
    return Records({name: columns[name] for name in plan.table.released})
