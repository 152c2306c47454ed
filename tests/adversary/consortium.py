"""Four institutions with real homes, keys, ledgers and approvals, and plans that overlap: the adversary's board.

The table is tiny and the family is `marginals`, the one whose noise is shared, so that a step costs milliseconds and
what must not be opened alone really carries less noise than was promised. The plans are chosen to be played against
each other: the same parties under another list, another mode, with and without tolerance of losses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from crypto.keys import IdentityKey
from fed_node.party import Party
from synth.plan import Plan, parse_plan

NAMES = ("east", "north", "south", "west")
COLLUDER = "west"  # tells the aggregator everything it knows
ROWS = 40
SCHEMA: dict[str, Any] = {
    "columns": {
        "age": {"kind": "integer", "min": 0, "max": 7},
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
        "died": {"kind": "categorical", "categories": ["no", "yes"]},
    },
    "target": "died",
}


def table(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 8, ROWS).astype(str),
            "sex": rng.choice(["f", "m"], ROWS),
            "died": rng.choice(["no", "yes"], ROWS),
        }
    )


def neighbour(rows: pd.DataFrame, case: int) -> pd.DataFrame:
    """The same table with one row more or less; some of the rows fit no schema."""
    odd = [
        {"age": "3", "sex": "f", "died": "no"},
        {"age": "4711", "sex": "f", "died": "yes"},
        {"age": "old", "sex": "x", "died": ""},
        {"age": "", "sex": "", "died": ""},
    ]
    if case % (len(odd) + 1) == len(odd):
        return rows.iloc[1:]
    return pd.concat([rows, pd.DataFrame([odd[case % (len(odd) + 1)]])], ignore_index=True)


def _plan(name: str, parties: tuple[str, ...], mode: str, **secure_sum: Any) -> Plan:
    return parse_plan(
        {
            "name": name,
            "schema": SCHEMA,
            "parties": [{"name": party, "rows": ROWS} for party in parties],
            "synthesizer": {"name": "marginals", "rounds": 1, "round_pairs": 2, "bins": 4},
            "privacy": {"epsilon": 1.0, "delta": 1e-4},
            "statistics": {"bins": 8},
            "secure_sum": {"statistics": mode, "updates": mode} | secure_sum,
        }
    )


@cache
def plans() -> tuple[Plan, ...]:
    return (
        _plan("all-masked", NAMES, "masked"),
        _plan("two-masked", ("east", "north"), "masked"),
        _plan("lossy-masked", NAMES, "masked", minimum_parties=3),
        _plan("all-ckks", NAMES, "ckks"),
        _plan("three-ckks", ("east", "north", "west"), "ckks"),
        _plan("lossy-ckks", NAMES, "ckks", minimum_parties=3),
        _plan("unapproved", ("east", "north", "west"), "masked"),
    )


def approved_by(party: str) -> list[Plan]:
    """Every plan that names the party, except one that nobody has approved."""
    return [plan for plan in plans() if plan.name != "unapproved" and party in {each.name for each in plan.parties}]


@dataclass
class Home:
    """A party's volume, its process, and what a person there has decided."""

    path: Path
    party: Party

    def restart(self) -> None:
        """Another process on the same volume: whatever was only in memory is gone."""
        self.party.ledger.close()
        self.party = Party(self.path)


def make_homes(folder: Path, tables: dict[str, pd.DataFrame], keys: dict[str, IdentityKey]) -> dict[str, Home]:
    homes = {}
    for name in NAMES:
        home = folder / name
        home.mkdir(parents=True)
        peers = {peer: key.identity.to_text() for peer, key in keys.items() if peer != name}
        settings = {"name": name, "data": {"kind": "csv", "path": "rows.csv"}, "peers": peers}
        settings["budget"] = {"epsilon": 1000.0, "delta": 1e-4}
        (home / "party.yaml").write_text(yaml.safe_dump(settings))
        (home / "identity.key").write_bytes(keys[name].to_pem())
        tables[name].to_csv(home / "rows.csv", index=False)
        homes[name] = Home(home, Party(home))
        for plan in approved_by(name):
            homes[name].party.approve(plan)
    return homes
