"""A plan carried out through the interface, every party with its own noise; sums are added in the open."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from synth.encoding.gathering import OwnedRows, gathered
from synth.encoding.records import Codec, Records
from synth.encoding.unrolling import unrolled
from synth.interface import Inquiry, Sum
from synth.layout import Layout
from synth.plan import Plan
from synth.privacy.coin import Coin
from synth.privacy.noise import seeded_source
from synth.schema import Schema
from synth.statistics.histograms import StatisticsInquiry
from synth.synthesizers.registry import build


def records_of(table: pd.DataFrame, plan: Plan, seed: int) -> Records:
    """The plan's records of rows whose owner and time are columns of the table."""
    layout = plan.layout
    assert layout is not None
    return gathered(layout, owned(table, plan.table), Coin(seeded_source(seed)).draws)


def owned(table: pd.DataFrame, schema: Schema) -> OwnedRows:
    places, names = pd.factorize(table[schema.owner]) if schema.owner else (np.zeros(len(table)), [""])
    time = schema.sequence.time if schema.sequence else None
    rows, _, left_out = Codec(schema).fit_all(table[list(schema.released)].astype(str))
    when = None if time is None else table[time].to_numpy(dtype=np.float64)
    return OwnedRows(rows, [str(name) for name in names], places.astype(np.int64), when, ~left_out)


def synthesized(plan: Plan, parts: Mapping[str, Records], seed: int, count: int) -> Records:
    """Rows of `count` synthetic people or sequences, in order."""
    statistics = StatisticsInquiry(plan)
    _carry_out(statistics, parts, seed)
    model = build(plan)
    model.begin(statistics.result(), seed)
    _carry_out(model, parts, seed)
    layout = plan.layout
    assert isinstance(layout, Layout)
    return unrolled(layout, model.sample(count, seed))[0]


def _carry_out(inquiry: Inquiry, parts: Mapping[str, Records], seed: int) -> None:
    number = 0
    while (ask := inquiry.ask(number)) is not None:
        answers = {}
        for party, rows in parts.items():
            inquiry.cost(ask, party)  # refuses what the plan does not contain
            noise = seeded_source(seed, party, inquiry.phase, number)
            answers[party] = inquiry.answer(ask, party, rows, {}, noise)[0]
        inquiry.absorb(Sum.of(answers))
        number += 1
