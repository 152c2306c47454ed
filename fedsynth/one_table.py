"""A table and nothing else: its schema is drafted, its plan written, and both are kept to be read."""

from __future__ import annotations

from pathlib import Path

from fed_node.source import read_table_as_text
from fedsynth.documents import write_yaml
from fedsynth.draft import draft_schema
from fedsynth.plan_content import new_plan
from synth.messages.archive import write_durably
from synth.plan import parse_plan

TABLES = (".csv", ".tsv", ".gz", ".parquet", ".pq")
REVIEW = "# Drafted from {name}: every bound and every label is a fact about its rows. Review before sharing.\n"


def is_table(path: Path) -> bool:
    """By its name: plans are YAML or JSON."""
    return path.suffix.lower() in TABLES


def write_plan_for(table: Path, folder: Path, parties: int, epsilon: float, target: str | None) -> Path:
    """schema.yaml and plan.yaml in the folder; the path of the latter."""
    cells = read_table_as_text(table)
    names = ["table"] if parties == 1 else [f"party-{number}" for number in range(1, parties + 1)]
    schema = draft_schema(cells, target)
    shares = {name: max(len(cells) // parties, 2) for name in names}
    parse_plan(new_plan("one-table", schema, shares, epsilon=epsilon))  # before anything is written
    content = new_plan("one-table", "schema.yaml", shares, epsilon=epsilon)
    write_durably(folder / "schema.yaml", (REVIEW.format(name=table.name) + write_yaml(schema)).encode())
    write_durably(folder / "plan.yaml", write_yaml(content).encode())
    return folder / "plan.yaml"
