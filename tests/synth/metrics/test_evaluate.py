"""The whole evaluation: an honest table is at the ceiling, a bad one is not, and nothing is ever silently missing."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from synth.errors import InputError
from synth.metrics.comparison import Comparison
from synth.metrics.evaluate import evaluate, fidelity_scores
from synth.metrics.evaluation import Evaluation
from synth.metrics.registry import FIDELITY, METRICS, PRIVACY
from synth.metrics.tables import table_of
from synth.metrics.utility import ALL_CLASSIFIERS, Omission, Scores
from synth.schema import Boolean, Categorical, Continuous, Datetime, Integer, Schema

SCHEMA = Schema(
    columns={
        "age": Integer(min=0, max=120),
        "dose": Continuous(min=0, max=10, decimals=6, missing=True),
        "seen": Datetime(min="2020-01-01", max="2021-01-01"),
        "ward": Categorical(categories=["a", "b", "c"], missing=True),
        "ill": Boolean(false="no", true="yes"),
    },
    target="ill",
)


def people(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 95, n)
    ill = rng.random(n) < np.where(age > 60, 0.9, 0.1)
    return pd.DataFrame(
        {
            "age": age,
            "dose": np.where(rng.random(n) < 0.05, np.nan, np.clip(age / 12 + rng.normal(0, 0.5, n), 0, 10)),
            "seen": (pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 360, n), unit="D")).strftime(
                "%Y-%m-%d"
            ),
            "ward": np.where(age > 60, rng.choice(["a", "b"], n), rng.choice(["b", "c"], n)),
            "ill": np.where(ill, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def honest() -> Evaluation:
    return evaluate(people(500, 1), people(500, 2), SCHEMA, people(500, 3))


def test_every_registered_figure_is_there_and_survives_json(honest: Evaluation) -> None:
    assert [score.metric for score in honest.scores] == [metric.name for metric in FIDELITY]
    assert [risk.metric for risk in honest.risks] == [metric.name for metric in PRIVACY]
    text = json.dumps(honest.model_dump(mode="json"), allow_nan=False)
    assert Evaluation.model_validate_json(text) == honest
    assert honest.utility is not None
    assert set(honest.utility.classifiers) == set(ALL_CLASSIFIERS)
    assert honest.pairs is not None
    assert np.shape(honest.pairs.mixed.real) == np.shape(honest.pairs.tvd) == (5, 5)
    assert [column.name for column in honest.columns] == list(SCHEMA.columns)
    for column in honest.columns:
        assert sum(column.real) + column.real_empty == pytest.approx(1.0)
        assert sum(column.synthetic) + column.synthetic_empty == pytest.approx(1.0)


def test_a_perfect_table_scores_at_the_ceiling_and_is_not_flagged(honest: Evaluation) -> None:
    for score in honest.scores:
        metric = METRICS[score.metric]
        assert score.value is not None
        assert score.ceiling is not None
        if metric.high is not None and metric.low is not None:
            assert metric.low <= score.value <= metric.high
            # Both are samples of one population; the halves are smaller, so they score a little worse.
            assert abs(score.value - score.ceiling) < 0.15 * (metric.high - metric.low)
    # Nine figures at three standard errors each: a false alarm once in about a hundred seeds; the seed is fixed.
    assert honest.flagged == []


def test_the_registry_explains_every_figure() -> None:
    assert len(METRICS) == len({metric.title for metric in METRICS.values()})
    for metric in METRICS.values():
        assert len(metric.meaning) > 20
        assert metric.ceiling
    assert not METRICS["share_closer_to_real"].headline


def test_a_spoiled_table_is_worse_in_the_direction_each_figure_states() -> None:
    real, made = people(400, 1), people(400, 2)
    spoiled = made.assign(
        age=np.random.default_rng(0).permutation(made["age"].to_numpy()) // 3, ward="a", seen="2020-01-01", dose=9.0
    )
    good, bad = (
        {s.metric: s.value for s in fidelity_scores(Comparison(table_of(real, SCHEMA), table_of(t, SCHEMA), 0), print)}
        for t in (made, spoiled)
    )
    for metric in FIDELITY:
        kept, lost = good[metric.name], bad[metric.name]
        assert kept is not None
        assert lost is not None
        match metric.better:
            case "higher":
                assert lost < kept, metric.name
            case "lower":
                assert lost > kept, metric.name
            case "nearer":
                assert abs(lost - metric.ideal) > abs(kept - metric.ideal), metric.name


def test_nothing_is_gained_by_being_farther_from_real_rows_than_strangers_are() -> None:
    metric = METRICS["share_closer_to_real"]
    assert (metric.better, metric.ideal) == ("nearer", 0.5)


def test_shuffled_columns_keep_no_relation() -> None:
    real, rng = people(600, 1), np.random.default_rng(5)
    shuffled = pd.DataFrame({name: rng.permutation(real[name].to_numpy()) for name in real})
    result = evaluate(real, shuffled, SCHEMA, people(500, 3))
    assert result.score("tvd_one_way").value == pytest.approx(0.0, abs=1e-12)
    kept = result.score("association_kept")
    assert kept.value is not None
    assert kept.ceiling is not None
    assert kept.value < 0.1 < 0.8 < kept.ceiling
    assert result.utility is not None
    scores = result.utility.means["all"]
    assert isinstance(scores.synthetic, Scores)
    assert isinstance(scores.real, Scores)
    assert scores.synthetic.auroc < scores.real.auroc - 0.1


def test_copies_are_flagged_by_several_attacks() -> None:
    real, made = people(1200, 1), people(1200, 2)
    leaky = pd.concat([real.head(60), made.iloc[60:]], ignore_index=True)  # one row in twenty is a copy
    flagged = evaluate(real, leaky, SCHEMA, people(1200, 3)).flagged
    assert {"copies", "membership_distance"} <= set(flagged)


def test_progress_rises_to_one() -> None:
    seen: list[float] = []
    evaluate(people(60, 1), people(60, 2), SCHEMA, progress=lambda what, done: seen.append(done))
    assert seen == sorted(seen)
    assert seen[0] == 0.0
    assert seen[-1] == 1.0


def test_the_same_seed_gives_the_same_result() -> None:
    results = [evaluate(people(150, 1), people(150, 2), SCHEMA, people(150, 3), seed=7) for _ in range(2)]
    first, second = (result.model_copy(update={"seconds": 0.0}) for result in results)
    assert first == second


def test_without_holdout_what_cannot_be_known_is_left_out_in_words() -> None:
    result = evaluate(people(100, 1), people(100, 2), SCHEMA)
    assert result.risk("membership_distance").value is None
    assert "holdout" in (result.risk("membership_distance").omitted or "")
    assert result.utility is not None
    assert not result.utility.tested_on_unseen
    assert result.flagged == []


def _complete(result: Evaluation) -> None:
    """Every figure is a number or has a reason."""
    json.dumps(result.model_dump(mode="json"), allow_nan=False)
    for score in result.scores:
        assert (score.value is None) == bool(score.omitted), score
    for risk in result.risks:
        assert (risk.value is None) == bool(risk.omitted), risk
    assert (result.utility is None) == bool(result.utility_omitted)


def test_degenerate_tables_give_omissions_never_nan() -> None:
    real, holdout = people(120, 1), people(120, 3)
    one_row = evaluate(real, real.head(1), SCHEMA, holdout)
    constant = evaluate(real, pd.concat([real.head(1)] * 50), SCHEMA, holdout)
    nothing_filled = evaluate(real, real.assign(dose=None, ward=None), SCHEMA, holdout)
    tiny = evaluate(real.head(1), real.head(1), SCHEMA, holdout.head(1))
    for result in (one_row, constant, nothing_filled, tiny):
        _complete(result)
    assert one_row.utility is not None
    entry = one_row.utility.classifiers["mlp"].synthetic
    assert isinstance(entry, Omission)
    assert "one class" in entry.reason


def test_a_constant_real_column_gives_numbers() -> None:
    real = people(100, 1).assign(age=40, ward="a")
    _complete(evaluate(real, people(100, 2), SCHEMA, people(100, 3)))


def test_one_column_and_no_target() -> None:
    schema = Schema(columns={"ward": Categorical(categories=["a", "b"])})
    rows = pd.DataFrame({"ward": ["a", "b"] * 60})
    result = evaluate(rows, rows, schema, rows)
    _complete(result)
    assert result.pairs is None
    assert "target" in (result.utility_omitted or "")
    assert result.risk("linkability").omitted == "there is only one column"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"drop": "dose"}, "the synthetic table lacks column 'dose'"),
        ({"age": "old"}, "column 'age' in the synthetic table"),
        ({"ward": "z"}, "column 'ward' in the synthetic table"),
        ({"ill": None}, "column 'ill' in the synthetic table"),
    ],
)
def test_tables_that_cannot_be_compared_are_refused(change: dict[str, str], said: str) -> None:
    made = people(20, 2)
    made = made.drop(columns=change["drop"]) if "drop" in change else made.assign(**change)
    with pytest.raises(InputError, match=said):
        evaluate(people(20, 1), made, SCHEMA)


def test_large_tables_say_what_was_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synth.metrics.samplings.TRAINING_ROWS", 50)
    monkeypatch.setattr("synth.metrics.samplings.TEST_ROWS", 40)
    result = evaluate(people(120, 1), people(120, 2), SCHEMA, people(120, 3))
    assert result.utility is not None
    assert (result.utility.train_rows, result.utility.test_rows) == (50, 40)
    assert "training of classifiers: at most 50 rows of each table" in result.samplings
    assert "test of classifiers: 40 holdout rows" in result.samplings
