"""A party with no rows, or with one, answers every question like any other: with noise, in the same shape."""

from __future__ import annotations

import numpy as np
import pytest

from synth.encoding.cells import Cells
from synth.encoding.contingency import count
from synth.encoding.records import Codec, Records
from synth.plan import parse_schema
from synth.synthesizers.registry import FAMILIES
from tests.contract.test_synthesizers import PRIVACIES, SMALLEST
from tests.inline import Inline, trained
from tests.small import SCHEMA, plan_of, table


def rows(number: int) -> Records:
    return Codec(parse_schema(SCHEMA)).encode(table(200)).take(slice(0, number))


def test_an_empty_table_is_counted() -> None:
    cells = Cells(parse_schema(SCHEMA), 32)
    assert cells.count(rows(0)).tolist() == [0] * cells.size
    nothing = np.zeros(0, dtype=np.int64)
    assert count([nothing, nothing], [2, 3], [(0,), (0, 1)]).tolist() == [0] * 8


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("privacy", PRIVACIES)
def test_every_family_is_answered_from_no_rows_and_from_one(family: str, privacy: str) -> None:
    """Whoever else has rows, the shape of an answer is the plan's affair."""
    plan = plan_of(SMALLEST[family], **PRIVACIES[privacy])
    held = dict(zip([party.name for party in plan.parties], (200, 0, 1), strict=True))
    world = Inline(plan, {name: rows(number) for name, number in held.items()}, seed=1)
    model = trained(world)
    for answers in world.answers:
        forms = [{name: (a.dtype, a.shape) for name, a in answer.arrays.items()} for answer in answers.values()]
        assert forms[0] == forms[1] == forms[2]
        assert all(np.isfinite(array).all() for answer in answers.values() for array in answer.arrays.values())
    assert len(model.sample(10, seed=1)) == 10
