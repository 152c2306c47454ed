"""The mechanisms under audit, of every family there is, over the small table and over one of three coins."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from synth.assessment.inquiry import AssessmentInquiry
from synth.audit.replay import Subject
from synth.encoding.records import Codec, Records
from synth.interface import Ask, Inquiry
from synth.plan import Plan
from synth.privacy.events import CountNoise
from synth.statistics.histograms import StatisticsInquiry
from synth.synthesizers.registry import FAMILIES, build
from tests.contract.test_synthesizers import SMALLEST
from tests.inline import Inline, statistics_of, trained
from tests.small import plan_of, table

FAMILY_NAMES = sorted(FAMILIES)
COINS: dict[str, Any] = {
    "columns": {name: {"kind": "categorical", "categories": ["0", "1"]} for name in ("a", "b", "c")}
}


@cache
def small_run(family: str) -> Inline:
    """A finished run over the small table: its plan, everybody's rows and the asks."""
    plan = plan_of(SMALLEST[family])
    codec = Codec(plan.table)
    world = Inline(plan, {p.name: codec.encode(table(p.rows, n)) for n, p in enumerate(plan.parties)}, seed=1)
    trained(world)
    return world


@cache
def coin_run(family: str, epsilon: float, noise: str = "shared", parties: int = 2, colluders: int = 0) -> Inline:
    """The same over three coins a row; everybody's coins show 0."""
    world = _coin_world(family, epsilon, noise, parties, colluders)
    trained(world)
    return world


def coin_assessment(epsilon: float, share: float) -> tuple[Plan, Ask]:
    """What parties are asked about a drawn table of coins that all show 0."""
    world = _coin_world("marginals", epsilon, "shared", 2, 0, assessment={"share": share, "pairs": 3})
    inquiry = AssessmentInquiry(world.plan)
    inquiry.begin(statistics_of(world), zeros(world.plan.rows))
    ask = inquiry.ask(0)
    assert ask is not None
    return world.plan, ask


def _coin_world(family: str, epsilon: float, noise: str, parties: int, colluders: int, **more: Any) -> Inline:
    plan = plan_of(
        SMALLEST[family],
        parties=parties,
        rows=10,
        schema=COINS,
        privacy={"epsilon": epsilon, "delta": 1e-5, "noise": noise},
        secure_sum={"statistics": "masked", "updates": "masked", "colluders": colluders},
        **more,
    )
    return Inline(plan, {p.name: zeros(4) for p in plan.parties}, seed=1)


def counting_families() -> list[str]:
    """Those that release nothing but noisy counts."""
    return [f for f in FAMILY_NAMES if all(isinstance(e, CountNoise) for e in small_run(f).charged["party-1"])]


def zeros(rows: int) -> Records:
    return Records({name: np.zeros(rows, dtype=np.int64) for name in COINS["columns"]})


def ones(rows: int = 1) -> Records:
    return Records({name: np.ones(rows, dtype=np.int64) for name in COINS["columns"]})


def statistics_subject(plan: Plan, asks: list[Ask]) -> Subject:
    return _subject(plan, StatisticsInquiry, asks[:1])


def training_subject(plan: Plan, asks: list[Ask]) -> Subject:
    return _subject(plan, build, asks[1:])


def assessment_subject(plan: Plan, ask: Ask) -> Subject:
    return _subject(plan, AssessmentInquiry, [ask])


def _subject(plan: Plan, make: Any, asks: list[Ask]) -> Subject:
    def inquiry() -> Inquiry:
        made: Inquiry = make(plan)
        return made

    return Subject(inquiry, asks, plan.parties[0].name, plan.noisy_parties)
