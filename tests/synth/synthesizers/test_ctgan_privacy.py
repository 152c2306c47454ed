"""What one row can do to an answer, and what the plan says it costs."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from synth.encoding.cells import Cells
from synth.encoding.features import Features
from synth.encoding.mixtures import Mixture
from synth.encoding.records import Codec
from synth.errors import PlanError, ProtocolError
from synth.interface import Ask
from synth.neural.schedule import Schedule
from synth.neural.streams import StepStreams, Stream
from synth.neural.synthesizer import NeuralSynthesizer
from synth.privacy.accounting import compose
from synth.privacy.dpsgd import PrivateGradient, StepPrivacy
from synth.privacy.events import SampledGaussian, Unaccounted
from synth.privacy.noise import seeded_source
from synth.schema import Schema
from synth.statistics.histograms import Statistics, StatisticsInquiry
from synth.synthesizers.ctgan.batches import PoissonBatches
from synth.synthesizers.ctgan.conditions import Conditions, TrainingBySampling
from synth.synthesizers.ctgan.networks import Discriminator
from synth.synthesizers.ctgan.settings import CtganSettings
from synth.synthesizers.ctgan.steps import PrivateStep
from synth.synthesizers.ctgan.synthesizer import ctgan
from tests.small import plan_of

SETTINGS: dict[str, Any] = {"name": "ctgan", "rounds": 3, "steps_per_round": 4, "sample_rate": 0.1}
CODES = Schema.model_validate(
    {
        "columns": {
            "size": {"kind": "integer", "min": 0, "max": 9},
            "colour": {"kind": "categorical", "categories": ["red", "blue", "rare"]},
            "kind": {"kind": "categorical", "categories": ["a", "b"]},
        },
        "target": "kind",
    }
)


def schedule_of(settings: dict[str, Any], **changes: Any) -> Schedule:
    return ctgan(plan_of(SETTINGS | settings, **changes)).schedule


def features() -> Features:
    return Features(CODES, {"size": Mixture(np.array([0.5, 0.5]), np.array([2.0, 7.0]), np.array([1.0, 1.0]))})


def encoded(count: int, seed: int = 0) -> tuple[Features, Tensor]:
    """Rows of which the first alone has the rare colour."""
    rng = np.random.default_rng(seed)
    columns = {
        "size": rng.integers(0, 10, count).astype(np.float64),
        "colour": np.append(2, rng.integers(0, 2, count - 1)),
        "kind": rng.integers(0, 2, count),
    }
    frame = pd.DataFrame(
        {
            "size": columns["size"].astype(int).astype(str),
            "colour": np.array(["red", "blue", "rare"])[columns["colour"]],
            "kind": np.array(["a", "b"])[columns["kind"]],
        }
    )
    layout = features()
    return layout, torch.from_numpy(layout.encode(Codec(CODES).encode(frame), rng))


def frequencies() -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    return {"colour": np.array([0.6, 0.3, 0.1]), "kind": np.array([0.75, 0.25])}


# ── cost ──


def test_noise_is_calibrated_so_that_everything_fits_the_budget() -> None:
    plan = plan_of(SETTINGS)
    synthesizer = ctgan(plan)
    events = StatisticsInquiry(plan).whole_cost("party-1") + synthesizer.whole_cost("party-1")
    spent = compose(events, 1e-5).epsilon
    assert spent <= 3.0
    assert spent > 2.97  # nothing is left lying about
    assert sum(event.steps for event in synthesizer.whole_cost("party-1") if isinstance(event, SampledGaussian)) == 12


@cache
def proper_ask() -> tuple[NeuralSynthesizer, Ask]:
    """A synthesizer that is ready to train, and its first ask."""
    plan = plan_of(SETTINGS | {"generator": {"warm_start_steps": 0}})
    cells = Cells(plan.table, plan.statistics.bins)
    modes = {name: Mixture(np.array([0.4, 0.6]), np.arange(2.0), np.ones(2)) for name in plan.table.numeric}
    synthesizer = ctgan(plan)
    synthesizer.begin(Statistics(cells, np.full(cells.size, 10), 1.0, mixtures=modes), 1)
    ask = synthesizer.ask(0)
    assert ask is not None
    return synthesizer, ask


def test_an_ask_costs_its_own_steps() -> None:
    synthesizer, ask = proper_ask()
    [event] = synthesizer.cost(ask, "party-2")
    assert event == SampledGaussian(0.1, synthesizer.schedule.noise_multiplier, 4)


@pytest.mark.parametrize("name", ["generator/first.linear.weight", "discriminator/head.bias"])
def test_weights_that_no_training_makes_are_refused_before_anything_is_charged(name: str) -> None:
    """Weights near 10^18 drive float32 to its edges, where a row's gradient loses its norm."""
    synthesizer, ask = proper_ask()
    largest = ask.arrays[name].copy()
    largest.flat[0] = -1024.0
    assert synthesizer.cost(replace(ask, arrays=ask.arrays | {name: largest}), "party-1")
    largest.flat[0] = np.nextafter(np.float32(-1024.0), np.float32(-np.inf))
    with pytest.raises(ProtocolError, match="beyond"):
        synthesizer.cost(replace(ask, arrays=ask.arrays | {name: largest}), "party-1")


def test_reading_an_ask_draws_nothing() -> None:
    synthesizer, ask = proper_ask()
    before = torch.random.get_rng_state()
    synthesizer.cost(ask, "party-1")
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize(
    "options",
    [
        {"round": 3, "steps": 4},
        {"round": -1, "steps": 4},
        {"round": 0, "steps": 5},
        {"round": 0, "steps": 3},
        {"round": 0},
        {"round": "0", "steps": 4},
        {"round": True, "steps": 4},
        {"round": 0, "steps": 4, "more": 1},
        {"round": 0, "steps": 4, "phase": "statistics"},
    ],
)
def test_no_step_that_was_not_planned(options: dict[str, Any]) -> None:
    synthesizer, ask = proper_ask()
    with pytest.raises(ProtocolError):
        synthesizer.cost(replace(ask, options={"phase": "training", **options}), "party-1")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"sample_rate": 0.6}, "sample_rate 0.6"),
        ({"discriminator": {"pac": 10}}, "pac 10"),
        ({"discriminator": {"loss": "wasserstein"}}, "wasserstein"),
        ({"noise_multiplier": 1.0}, "noise_multiplier is for profile 'faithful'"),
        ({"discriminator": {"fake_batch": 501, "pac": 10}}, "multiple of pac"),
    ],
)
def test_unsound_plans_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(PlanError, match=sentence):
        ctgan(plan_of(SETTINGS | settings))


def test_without_privacy_packing_is_allowed_and_nothing_is_promised() -> None:
    critic = {"pac": 10, "loss": "wasserstein", "fake_batch": 100}
    schedule = schedule_of({"discriminator": critic}, privacy="none")
    assert [type(event) for event in schedule.cost(0, "party-1")] == [Unaccounted]


def test_the_faithful_profile_stops_when_its_nominal_budget_is_spent() -> None:
    long = {"rounds": 40, "steps_per_round": 20, "noise_multiplier": 2.0}
    schedule = schedule_of(long, profile="faithful")
    assert 0 < schedule.total_steps < 800
    taken = [schedule.steps(number) for number in range(40)]
    assert sum(taken) == schedule.total_steps
    nominal = [SampledGaussian(0.1, 2.0, schedule.total_steps)]
    assert compose(nominal, 1e-5).epsilon <= 3.0
    assert schedule.cost(39, "party-1") == []
    assert math.isinf(compose(schedule.cost(0, "party-1"), 1e-5).epsilon)


# ── sampling ──


def test_every_row_joins_with_the_declared_probability() -> None:
    layout, rows = encoded(60)
    rows[:, 0] = torch.arange(60) / 60  # a mark by which a row is known again
    settings = CtganSettings(sample_rate=0.3)
    batches = PoissonBatches(rows, Conditions(layout, frequencies(), "kind"), settings)
    counts, sizes = torch.zeros(60), []
    for step in range(1500):
        (drawn, _), _ = batches.draw(StepStreams.of(seeded_source(3), step))
        sizes.append(len(drawn))
        counts[(drawn[:, 0] * 60).round().long()] += 1
    # 4.5 standard errors of a rate: 1 false alarm in 2500 runs over 60 rows.
    assert (counts / 1500 - 0.3).abs().max() < 4.5 * math.sqrt(0.3 * 0.7 / 1500)
    # Sizes vary as independent coins do; a fixed batch size has variance 0. χ² with 1499 degrees, 4 standard errors.
    assert np.var(sizes) == pytest.approx(60 * 0.3 * 0.7, rel=4 * math.sqrt(2 / 1500))


def test_an_empty_batch_is_a_batch() -> None:
    layout, rows = encoded(5)
    batches = PoissonBatches(rows, Conditions(layout, frequencies(), "kind"), CtganSettings(sample_rate=1e-9))
    (real, conditions), fake = batches.draw(StepStreams.of(seeded_source(1), 1))
    assert (len(real), len(conditions), len(fake)) == (0, 0, 500)


def test_training_by_sampling_overexposes_rare_rows() -> None:
    """The trap T1 of the specification, reproduced: the only row of a category is drawn far more often than 1/n."""
    stream = Stream(0)
    layout, rows = encoded(400)
    sampler = TrainingBySampling(layout, rows)
    rare = layout.discrete_spans[0].start + 2
    drawn = sum(float(sampler.batch(100, stream)[0][:, rare].sum()) for _ in range(50)) / 5000
    assert drawn > 10 / 400
    batch, conditions = sampler.batch(200, stream)
    for span in layout.discrete_spans:
        start = sampler.conditions.starts[span.column]
        asked = conditions[:, start : start + span.width]
        assert torch.equal((asked * batch[:, span.slice]).sum(1), asked.sum(1))


def test_conditions_name_the_target_and_one_other_column() -> None:
    stream = Stream(0)
    layout, rows = encoded(4000)
    conditions = Conditions(layout, frequencies(), "kind")
    drawn = conditions.draw(20_000, stream)
    assert torch.equal(drawn.sum(1), torch.full((20_000,), 2.0))
    shares = drawn.mean(0)  # colour (red, blue, rare), kind (a, b); 4 standard errors are below 0.0142
    torch.testing.assert_close(shares, torch.tensor([0.6, 0.3, 0.1, 0.75, 0.25]), atol=0.0142, rtol=0)
    own = conditions.of(rows, stream)
    assert torch.equal(own[:, 3:], rows[:, layout.discrete_spans[1].slice])
    assert torch.equal(own[:, :3], rows[:, layout.discrete_spans[0].slice])
    alone = Conditions(layout, frequencies(), None).draw(10, stream)
    assert torch.equal(alone.sum(1), torch.ones(10))


# ── one step ──


def critic_of(layout: Features) -> Discriminator:
    torch.manual_seed(5)
    return Discriminator(row_width=layout.width, condition_width=layout.condition_width, width=8, dropout=0.0, pac=1)


def gradient_over(rows: Tensor, clip: float, noise_multiplier: float) -> Tensor:
    """The flat gradient of one private step over all rows, times the divisor; same noise in every call."""
    layout = features()
    critic = critic_of(layout)
    conditions = rows[:, layout.width - layout.condition_width :]
    privacy = StepPrivacy(clip, noise_multiplier, sample_rate=0.5, expected_batch=50.0)
    step = PrivateStep(critic, PrivateGradient(critic, privacy, seeded_source(7)), privacy.l2_clip_norm)
    torch.manual_seed(6)
    fake = (torch.rand(20, layout.width), torch.rand(20, layout.condition_width))
    return (
        torch.cat([part.flatten() for part in step((rows, conditions), fake, StepStreams.of(seeded_source(7), 1))])
        * 50.0
    )


def test_one_row_changes_the_gradient_by_at_most_the_clip_norm() -> None:
    _, rows = encoded(40)
    without = gradient_over(rows, 0.1, 1.0)
    changes = []
    for outlier in (1000.0, -1000.0):
        added = torch.cat([rows, torch.full((1, rows.shape[1]), outlier)])
        changes.append(float((gradient_over(added, 0.1, 1.0) - without).norm()))
    assert max(changes) == pytest.approx(0.1, rel=1e-4)  # a row can use up its bound, and no more


def test_the_noise_is_there_even_for_no_rows() -> None:
    none = torch.zeros(0, features().width)
    quiet, loud = gradient_over(none, 0.1, 1e-6), gradient_over(none, 0.1, 3.0)
    noise = loud - quiet
    # Standard deviation 3 × 0.1 per coordinate; χ² with some 240 degrees, 5 standard errors.
    assert float(noise.std()) == pytest.approx(0.3, rel=5 / math.sqrt(2 * len(noise)))


def test_the_fake_half_is_the_mean_of_clipped_gradients() -> None:
    layout, rows = encoded(12)
    critic = critic_of(layout)
    fake = (rows, rows[:, layout.width - layout.condition_width :])
    norms, total = [], [torch.zeros_like(p) for p in critic.parameters()]
    for i in range(12):
        loss = F.softplus(critic(fake[0][i : i + 1], fake[1][i : i + 1])).sum()
        slopes = torch.autograd.grad(loss, list(critic.parameters()))
        norms.append(float(torch.cat([s.flatten() for s in slopes]).norm()))
        total = [t + s * min(1.0, 0.6 / norms[-1]) / 12 for t, s in zip(total, slopes, strict=True)]
    assert min(norms) < 0.6 < max(norms)
    privacy = StepPrivacy(0.6, 1.0, sample_rate=0.5, expected_batch=50.0)
    step = PrivateStep(critic, PrivateGradient(critic, privacy, seeded_source(7)), privacy.l2_clip_norm)
    for ours, wanted in zip(step.fake_half(fake, Stream(0)), total, strict=True):
        torch.testing.assert_close(ours, wanted, atol=1e-5, rtol=1e-4)
