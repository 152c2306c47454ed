"""`vertigan`: dependence across parties comes from tables, critics stay where they are, and ε counts all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from synth.encoding.records import Codec
from synth.errors import ProtocolError
from synth.interface import Ask
from synth.privacy.events import CountNoise, SampledGaussian
from synth.privacy.noise import seeded_source
from synth.synthesizers.registry import build
from synth.synthesizers.vertigan.critic import LARGEST_SLOPE, BlockCritic
from synth.synthesizers.vertigan.synthesizer import Vertigan
from tests.inline import Inline, statistics_of
from tests.linkage.consortium import Consortium, carried_out
from tests.small import plan_of, table
from tests.vertical import COLUMNS, plan_by_columns, tables_by_columns, whole_table

SMALL: dict[str, Any] = {
    "name": "vertigan",
    "rounds": 2,
    "critic_steps": 3,
    "made_up_rows": 20,
    "codes": 128,
    "width": 16,
    "teaching_steps": 60,
    "sample_rate": 0.2,
}
ROWS = 400


def by_rows() -> Inline:
    plan = plan_of(SMALL, rows=100)
    codec = Codec(plan.table)
    return Inline(plan, {p.name: codec.encode(table(p.rows, n)) for n, p in enumerate(plan.parties)}, seed=1)


def begun() -> tuple[Inline, Vertigan]:
    federation = by_rows()
    synthesizer = build(federation.plan)
    assert isinstance(synthesizer, Vertigan)
    synthesizer.begin(statistics_of(federation), 1)
    return federation, synthesizer


def years_between_the_dead_and_the_living(tables: dict[str, pd.DataFrame], folder: Path) -> float:
    """Age is the hospital's column, death the registry's."""
    plan = plan_by_columns(COLUMNS, ROWS, privacy="none", synthesizer=SMALL)
    rows = carried_out(Consortium(plan, tables, folder)).model.sample(2_000, 1).columns
    return float(rows["age"][rows["died"] == 1].mean() - rows["age"][rows["died"] == 0].mean())


def test_dependence_across_parties_is_learned_and_gone_when_people_are_shuffled(tmp_path: Path) -> None:
    whole = whole_table(ROWS)
    tables = tables_by_columns(whole, COLUMNS)
    shuffled = dict(tables)
    keys = tables["registry"]["patient"].to_numpy()
    shuffled["registry"] = tables["registry"].assign(patient=np.random.default_rng(1).permutation(keys))
    assert years_between_the_dead_and_the_living(tables, tmp_path / "in order") > 8
    assert abs(years_between_the_dead_and_the_living(shuffled, tmp_path / "shuffled")) < 5


def test_noise_is_for_the_critics_of_all_parties_together() -> None:
    """A person is at every party: each ledger is charged the steps of all critics."""
    synthesizer = build(plan_by_columns(COLUMNS, ROWS, synthesizer=SMALL))
    first, *rounds = synthesizer.planned_costs("hospital")
    assert [type(event) for event in first] == [CountNoise]
    assert [event.steps for events in rounds for event in events if isinstance(event, SampledGaussian)] == [9, 9]


def test_a_critic_stays_at_its_party_and_judges_its_own_columns_only() -> None:
    federation, synthesizer = begun()
    synthesizer.absorb(federation.total(synthesizer, _ask(synthesizer, 0)))
    ask = _ask(synthesizer, 1)
    features, labels = synthesizer._made_up(ask)
    critic = BlockCritic(features, ["age", "ward"])
    lessons = synthesizer._lessons("party-1")
    slopes, local = critic.judged(federation.data["party-1"], labels, lessons, {}, seeded_source(3))
    held = [span for span in features.spans if span.column in ("age", "ward")]
    outside = np.ones(features.width, dtype=bool)
    for span in held:
        outside[span.slice] = False
    assert (slopes[:, outside] == 0).all()
    assert np.linalg.norm(slopes, axis=1).max() <= LARGEST_SLOPE * (1 + 1e-6)
    assert any(name.startswith("critic/") for name in local)
    answer, kept = synthesizer.answer(ask, "party-1", federation.data["party-1"], {}, seeded_source(3))
    assert set(answer.arrays) == {"slopes"}
    assert not set(kept) & set(answer.arrays)


def test_asks_hold_made_up_rows_and_neither_weights_nor_a_seed_that_says_who_is_sampled() -> None:
    federation, synthesizer = begun()
    federation.drive(synthesizer)
    for ask in federation.asks[2:]:
        assert {name for name in ask.arrays if not name.startswith("cuts/")} == {"made_up"}
        assert set(ask.options) == {"phase", "round"}
    sampled = [federation.local[party]["critic/0/weight"] for party in ("party-1", "party-2")]
    assert not np.array_equal(*sampled)


@pytest.mark.parametrize("wrong", ["pairs", "bins", "labels", "more", "late"])
def test_what_the_plan_does_not_contain_is_refused_before_anything_is_charged(wrong: str) -> None:
    federation, synthesizer = begun()
    ask = _ask(synthesizer, 0)
    if wrong in ("labels", "more", "late"):
        synthesizer.absorb(federation.total(synthesizer, ask))
        ask = _ask(synthesizer, 1)
    arrays, options = dict(ask.arrays), dict(ask.options)
    if wrong == "pairs":
        arrays["cliques"] = arrays["cliques"][::-1].copy()
    elif wrong == "bins":
        arrays["bins"] = np.arange(len(arrays["bins"]))
    elif wrong == "labels":
        arrays["made_up"] = arrays["made_up"] + 10_000
    elif wrong == "more":
        arrays["weights"] = np.zeros(1)
    else:
        options["round"] = 3
    with pytest.raises(ProtocolError):
        synthesizer.cost(Ask(arrays, options), "party-1")


def _ask(synthesizer: Vertigan, number: int) -> Ask:
    ask = synthesizer.ask(number)
    assert ask is not None
    return ask
