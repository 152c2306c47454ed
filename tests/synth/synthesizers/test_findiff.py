"""`findiff`: masks that cover evenly, a loss that bounds the likelihood, rows drawn given what is fixed; and the
published diffusion by the figures of its specification, its accountant's reset included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.encoding.features import Features
from synth.encoding.mixtures import Mixture
from synth.encoding.records import Codec
from synth.neural.released import Released
from synth.neural.streams import Stream
from synth.privacy.accounting import compose
from synth.privacy.dpsgd import ClippedSum
from synth.programme import whole_cost
from synth.schema import Categorical, Integer, Schema
from synth.synthesizers.findiff.gaussian import Denoiser, Embedding, GaussianDiffusion, Steps
from synth.synthesizers.findiff.masked import MaskedDiffusion, Unmasker, masks
from synth.synthesizers.findiff.settings import FindiffSettings
from tests.inline import Inline, statistics_of, trained
from tests.small import plan_of, table

SMALL: dict[str, Any] = {"name": "findiff", "rounds": 2, "steps_per_round": 2, "width": 8}


def world(rows: int = 300, **changes: Any) -> Inline:
    plan = plan_of(SMALL | changes.pop("synthesizer", {}), rows=rows, **changes)
    codec = Codec(plan.table)
    return Inline(plan, {p.name: codec.encode(table(p.rows, n)) for n, p in enumerate(plan.parties)}, 1)


def begun(**changes: Any) -> tuple[MaskedDiffusion, Unmasker, Released]:
    federation = world(**changes)
    model = MaskedDiffusion(federation.plan)
    released = Released.of(federation.plan, statistics_of(federation), model.schedule.bins)
    network = model.network(released.features)
    model.begin(network, released, Stream(0))
    return model, network, released


@given(st.integers(1, 9), st.integers(1, 12), st.integers(0, 99))
@settings(max_examples=30)
def test_masks_hide_as_many_columns_as_they_say(draws: int, columns: int, seed: int) -> None:
    masked, counts = masks(20, draws, columns, Stream(seed))
    assert masked.shape == (20, draws, columns)
    torch.testing.assert_close(masked.sum(2), counts.float())
    assert int(counts.min()) >= 1
    assert int(counts.max()) <= columns


def test_every_number_of_columns_and_every_column_is_masked_equally_often() -> None:
    masked, counts = masks(30_000, 4, 5, Stream(1))
    shares = torch.bincount(counts.flatten(), minlength=6)[1:] / counts.numel()
    torch.testing.assert_close(shares, torch.full((5,), 0.2), atol=0.01, rtol=0)
    torch.testing.assert_close(masked.mean((0, 1)), torch.full((5,), 0.6), atol=0.01, rtol=0)
    assert float(counts.float().std(1).mean()) > 1.2  # a row's own draws are spread: independent ones vary less evenly


def test_the_loss_of_a_network_that_sees_nothing_is_the_rows_own_surprise() -> None:
    """d / k · Σ over the masked has the mean Σ over all columns, so the bound is tight where nothing is learned."""
    model, network, released = begun(synthesizer={"draws": 8})
    with torch.no_grad():
        network.head.weight.zero_()
    row = torch.from_numpy(
        released.features.encode(Codec(model.plan.table).encode(table(1, 3)), np.random.default_rng(0))
    )
    with torch.no_grad():
        found = model.losses(network, row.repeat(20_000, 1), Stream(4)).mean()
    expected = -sum(float((row[0, s.slice] * released.biases[s.slice].log_softmax(0)).sum()) for s in network.spans)
    assert float(found) == pytest.approx(expected, rel=0.02)


def test_every_row_has_one_clipped_gradient_however_many_masks() -> None:
    model, network, released = begun(synthesizer={"draws": 4})
    total = ClippedSum(network, 1.0)(
        lambda rows: model.losses(network, rows, Stream(1)), torch.rand(3, released.features.width)
    )
    assert float(total.norm()) <= 3 + 1e-6


def test_what_is_fixed_is_seen_by_every_other_column() -> None:
    """A network that copies one column's first label into another's: fixing the first decides the second."""
    model, network, released = begun()
    spans = {span.column: span for span in network.spans}
    sex, smoker = spans["sex"], spans["smoker"]
    with torch.no_grad():
        for part in network.parameters():
            part.zero_()
        network.body[0].weight[:2, sex.slice] = torch.eye(2)
        network.head.weight[smoker.slice, :2] = 50 * torch.eye(2)
        for code in (0, 1):
            rows, _ = model.draw(network, released, 100, {"sex": code}, Stream(code))
            assert set(rows[:, sex.slice].argmax(1).tolist()) == {code}
            assert set(rows[:, smoker.slice].argmax(1).tolist()) == {code}
        assert all(bool((rows[:, span.slice].sum(1) == 1).all()) for span in network.spans)


@pytest.mark.slow
def test_without_noise_it_learns_what_depends_on_what() -> None:
    federation = world(
        rows=1_000, privacy="none", synthesizer={"rounds": 20, "steps_per_round": 10, "width": 32, "sample_rate": 0.2}
    )
    rows = trained(federation).sample(2_000, seed=1).columns
    present = ~np.isnan(rows["dose"])
    assert np.corrcoef(rows["age"][present], rows["dose"][present])[0, 1] > 0.7
    assert rows["age"][rows["died"] == 1].mean() > rows["age"][rows["died"] == 0].mean() + 8


# ── as published ──


def test_the_schedule_keeps_what_the_specification_says() -> None:
    assert float(Steps(500).kept[-1]) == pytest.approx(3.77e-5, rel=0.01)
    assert float(Steps(1000).kept[-1]) == pytest.approx(4.04e-5, rel=0.01)  # not scaled: DDPM's own


def credit_default() -> Features:
    """Nine labels, thirteen numbers and a class: dataset A of the paper, 31 numbers a row."""
    columns: dict[str, Any] = {f"c{n}": Categorical(categories=["a", "b", "c"]) for n in range(9)}
    columns |= {f"n{n}": Integer(min=0, max=100) for n in range(13)}
    schema = Schema(columns=columns | {"y": Categorical(categories=["0", "1"])}, target="y")
    mixture = Mixture(np.array([0.5, 0.5]), np.array([20.0, 60.0]), np.array([8.0, 10.0]))
    return Features(schema, {f"n{n}": mixture for n in range(13)})


def test_the_network_has_as_many_weights_as_the_papers() -> None:
    network = Denoiser(FindiffSettings.model_validate({"preset": "published"}), credit_default(), "y")
    assert network.embedding.width == 31
    assert sum(parameter.numel() for parameter in network.parameters()) == 2_212_191


def test_points_lead_back_to_the_rows_they_came_from() -> None:
    features = credit_default()
    embedding = Embedding(features, "y")
    rng = np.random.default_rng(0)
    codes = {span.column: rng.integers(0, span.width, 200) for span in features.discrete_spans}
    numbers = {name: rng.integers(5, 90, 200).astype(float) for name in features.mixtures}
    from synth.encoding.records import Records

    records = Records(codes | numbers)
    rows = torch.from_numpy(features.encode(records, rng))
    again = features.decode(embedding.rows(embedding.points(rows), rows[:, features.spans[-1].slice]).numpy())
    for name in codes:
        np.testing.assert_array_equal(again.columns[name], records.columns[name])
    for name in numbers:
        np.testing.assert_allclose(again.columns[name], records.columns[name], atol=1)


def test_a_reset_accountant_spends_more_than_it_prints_and_no_certificate_repeats_it() -> None:
    """The noise is enough for one round; over fifty the same steps cost several times the ε. Nothing is promised."""
    plan = plan_of({**SMALL, "rounds": 50, "steps_per_round": 20, "sample_rate": 0.02}, profile="faithful")
    model = GaussianDiffusion(plan)
    steps = [event for event in whole_cost(plan, "party-1") if event.kind == "sampled_gaussian"]
    one_round = model.schedule.step_privacy("party-1").event(20)
    assert compose([one_round], 1e-5).epsilon <= 3.0
    assert compose(steps, 1e-5).epsilon > 9.0
    assert any("starts anew" in event.words() for event in whole_cost(plan, "party-1"))


def test_the_published_form_trains_and_draws_rows_of_the_schema() -> None:
    federation = world(
        profile="faithful",
        synthesizer={"diffusion_steps": 10, "depth": 2},
        secure_sum={"statistics": "plain", "updates": "plain", "colluders": 0},
        privacy={"epsilon": 3.0, "delta": 1e-5, "noise": "local"},
    )
    synthesizer = trained(federation)
    codec = Codec(federation.plan.table)
    rows = codec.decode(synthesizer.sample(60, seed=1, where={"died": "yes"}))
    codec.encode(rows.astype("string"))
    assert set(rows["died"]) == {"yes"}
