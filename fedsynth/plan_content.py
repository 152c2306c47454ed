"""A plan that can be approved as it is, from what must be said: whose rows, how many, how much privacy."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log10
from typing import Any

LARGEST_DELTA = 1e-5
ALONE = {"statistics": "plain", "updates": "plain", "colluders": 0}  # a sum over one party hides nothing
MOST_ENCRYPTED = 100  # parties; an opener is sent everybody's ciphertexts, a megabyte or two each


def new_plan(
    name: str,
    schema: Mapping[str, Any] | str,
    rows: Mapping[str, int],
    *,
    epsilon: float,
    delta: float | None = None,
    synthesizer: str = "marginals",
    drawn: int | None = None,
) -> dict[str, Any]:
    """The content of a plan over parties of so many declared `rows`. `schema` is its content, or a path beside the
    plan; `drawn` is how many synthetic rows there will be, as many as real ones if it is left out."""
    content: dict[str, Any] = {
        "name": name,
        "schema": schema,
        "parties": [],
        "synthesizer": {"name": synthesizer},
        "privacy": {"epsilon": epsilon, "delta": delta or small_delta(sum(rows.values()))},
    }
    if drawn is not None:
        content["output"] = {"rows": drawn}
    return with_parties(content, rows)


def with_parties(content: dict[str, Any], rows: Mapping[str, int]) -> dict[str, Any]:
    """The plan's content for these parties instead of its own. One alone has nobody to share noise or sums with; of
    very many, counts are masked unless the plan says otherwise."""
    changed = content | {"parties": [{"name": party, "rows": count} for party, count in rows.items()]}
    if masks_instead(content, len(rows)):
        return changed | {"secure_sum": {"statistics": "masked"} | content.get("secure_sum", {})}
    if len(rows) > 1:
        return changed
    if isinstance(privacy := content.get("privacy"), dict):
        changed["privacy"] = privacy | {"noise": "local"}
    return changed | {"secure_sum": dict(ALONE)}


def masks_instead(content: Mapping[str, Any], parties: int) -> bool:
    """Whether statistics, which are encrypted by default, would make messages of gigabytes: masks add nothing to
    a message, and hide the same counts from the aggregator."""
    said = content.get("secure_sum", {})
    return parties > MOST_ENCRYPTED and isinstance(said, dict) and "statistics" not in said


def small_delta(rows: int) -> float:
    """A power of ten well below 1 / rows, and at most 1e-5."""
    return min(LARGEST_DELTA, 10.0 ** -ceil(log10(max(rows, 1)) + 0.5))
