"""`vae`: the ELBO by hand, rows that are drawn rather than guessed, conditions by weighting, the published form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from synth.encoding.records import Codec
from synth.errors import ProtocolError
from synth.interface import Ask
from synth.neural.released import Released
from synth.neural.streams import Stream
from synth.privacy.dpsgd import ClippedSum
from synth.synthesizers.registry import build
from synth.synthesizers.vae.synthesizer import Autoencoder, Network
from tests.inline import Inline, statistics_of, trained
from tests.small import plan_of, table

SMALL: dict[str, Any] = {"name": "vae", "rounds": 2, "steps_per_round": 2, "width": 8, "code_width": 3}


def world(rows: int = 300, **changes: Any) -> Inline:
    plan = plan_of(SMALL | changes.pop("synthesizer", {}), rows=rows, **changes)
    codec = Codec(plan.table)
    return Inline(plan, {p.name: codec.encode(table(p.rows, n)) for n, p in enumerate(plan.parties)}, 1)


def begun(**changes: Any) -> tuple[Autoencoder, Network, Released]:
    federation = world(**changes)
    model = Autoencoder(federation.plan)
    released = Released.of(federation.plan, statistics_of(federation), model.schedule.bins)
    torch.manual_seed(0)
    network = model.network(released.features)
    model.begin(network, released, Stream(0))
    return model, network, released


@pytest.mark.parametrize("profile", ["rigorous", "faithful"])
def test_the_loss_is_the_negative_elbo_of_each_row(profile: str) -> None:
    model, network, released = begun(profile=profile)
    features = released.features
    rows = torch.from_numpy(features.encode(Codec(model.plan.table).encode(table(6, 9)), np.random.default_rng(0)))
    found = model.losses(network, rows, Stream(5))
    mean, log_variance = network.encode(rows)
    raw = network.decoder(mean + (log_variance / 2).exp() * Stream(5).normal(*mean.shape))
    prior, posterior = torch.distributions.Normal(0.0, 1.0), torch.distributions.Normal(mean, (log_variance / 2).exp())
    expected = torch.distributions.kl_divergence(posterior, prior).sum(1) / model.settings.loss_factor
    for span in features.spans:
        block, wanted = raw[:, span.slice], rows[:, span.slice]
        if span.kind == "alpha":
            near = torch.distributions.Normal(torch.tanh(block[:, 0]), 0.1)
            expected = expected - near.log_prob(wanted[:, 0]) - 0.5 * np.log(2 * np.pi)
        else:
            expected = expected - torch.distributions.Categorical(logits=block).log_prob(wanted.argmax(1))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("profile", ["rigorous", "faithful"])
def test_every_parameter_has_a_gradient_of_its_own_row(profile: str) -> None:
    """TVAE's spreads included; the engine tries the loss on made-up rows and refuses coupled ones."""
    model, network, released = begun(profile=profile)
    clipped = ClippedSum(network, 1.0)
    rows = torch.rand(5, released.features.width)
    total = clipped(lambda batch: model.losses(network, batch, Stream(1)), rows)
    assert len(total) == sum(parameter.numel() for parameter in network.parameters())
    assert float(total.norm()) <= 5 + 1e-6


def test_it_begins_with_the_released_histograms() -> None:
    model, network, released = begun(rows=2_000)
    with torch.no_grad():
        rows, _ = model.draw(network, released, 20_000, {}, Stream(3))
    for span in released.features.spans:
        drawn = rows[:, span.slice].mean(0)
        assert float((drawn - torch.from_numpy(released.shares(span))).abs().sum()) < 0.5


def test_rare_labels_are_drawn_and_only_the_published_form_takes_the_likeliest() -> None:
    def labels(profile: str) -> set[int]:
        model, network, released = begun(profile=profile)
        span = released.features.discrete_spans[0]
        with torch.no_grad():
            last = network.decoder[-1]
            last.weight.zero_()
            last.bias[span.slice] = torch.tensor([2.0, 0.0])
            rows, _ = model.draw(network, released, 500, {}, Stream(2))
        return set(rows[:, span.slice].argmax(1).tolist())

    assert labels("rigorous") == {0, 1}
    assert labels("faithful") == {0}


def test_conditions_weight_codes_by_how_likely_they_make_them() -> None:
    """Fixing a label by force alone would leave the other columns as they are; the code that likes it must count."""
    model, network, released = begun()
    with torch.no_grad():
        _, scores = model.draw(network, released, 200, {"died": 1}, Stream(2))
        raw = network.decoder(Stream(2).normal(200, 3))
    span = next(span for span in released.features.spans if span.column == "died")
    chances = raw[:, span.slice].softmax(1)[:, 1]
    torch.testing.assert_close(scores.exp(), chances / chances.max(), rtol=1e-4, atol=1e-5)


def test_without_noise_it_learns_what_depends_on_what() -> None:
    settings = {"rounds": 6, "steps_per_round": 50, "width": 32, "code_width": 4, "sample_rate": 0.2}
    federation = world(rows=1_000, privacy="none", synthesizer=settings)
    rows = trained(federation).sample(3_000, seed=1).columns
    present = ~np.isnan(rows["dose"])
    assert np.corrcoef(rows["age"][present], rows["dose"][present])[0, 1] > 0.6
    assert rows["age"][rows["died"] == 1].mean() > rows["age"][rows["died"] == 0].mean() + 8


@pytest.mark.parametrize("wrong", ["falling", "many", "absent", "mixture"])
def test_cuts_that_no_histogram_gives_are_refused_before_anything_is_charged(wrong: str) -> None:
    federation = world()
    synthesizer = build(federation.plan)
    synthesizer.begin(statistics_of(federation), 1)
    ask = synthesizer.ask(0)
    assert ask is not None
    arrays = dict(ask.arrays)
    if wrong == "absent":
        del arrays["cuts/age"]
    elif wrong == "mixture":
        arrays["mixture/age"] = np.ones((3, 2))
    else:
        arrays["cuts/age"] = np.arange(100.0) if wrong == "many" else arrays["cuts/age"][::-1].copy()
    with pytest.raises(ProtocolError):
        synthesizer.cost(Ask(arrays, ask.options), "party-1")


def test_the_published_settings_are_the_theses() -> None:
    plan = plan_of({"name": "vae", "preset": "published"}, profile="faithful")
    settings = plan.synthesizer.model_dump()
    assert (settings["width"], settings["depth"], settings["code_width"], settings["loss_factor"]) == (64, 2, 64, 4.0)
    assert plan.family.statistics == "mixture rounds"
