"""Luck that real rows advance is used for nothing else, so nothing that leaves without noise knows how many joined."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch.optim import Adam

from synth.audit.canaries import extreme_rows
from synth.audit.replay import Neighbours, Subject, replay
from synth.encoding.records import Codec, Records
from synth.interface import Answer, Ask
from synth.neural.model import settings_of
from synth.neural.streams import StepStreams, Stream
from synth.neural.weights import load, set_gradient, to_arrays
from synth.plan import Plan
from synth.privacy.noise import NoiseSource, seeded_source
from synth.synthesizers.ctgan.conditions import Conditions
from synth.synthesizers.ctgan.networks import Networks
from synth.synthesizers.ctgan.settings import CtganSettings
from synth.synthesizers.ctgan.steps import generator_loss, made_up
from synth.synthesizers.ctgan.synthesizer import SECOND_BETA, ctgan
from tests.inline import Inline, statistics_of
from tests.small import plan_of, table

PARTY = "party-1"
ONE_STEP: dict[str, Any] = {
    "name": "ctgan",
    "rounds": 2,
    "steps_per_round": 1,
    "sample_rate": 0.2,
    "generator": {"warm_start_steps": 2, "width": 16, "noise_width": 8},
    "discriminator": {"fake_batch": 20, "width": 8, "dropout": 0.5},
}


@cache
def begun() -> tuple[Plan, Ask, Records]:
    """A plan of one step a round, its first ask and 200 rows."""
    plan = plan_of(ONE_STEP)
    codec = Codec(plan.table)
    world = Inline(plan, {p.name: codec.encode(table(p.rows, n)) for n, p in enumerate(plan.parties)}, 1)
    synthesizer = ctgan(plan)
    synthesizer.begin(statistics_of(world), 1)
    ask = synthesizer.ask(0)
    assert ask is not None
    return plan, ask, world.data[PARTY]


def answered(rows: Records, noise: NoiseSource) -> Answer:
    plan, ask, _ = begun()
    return ctgan(plan).answer(ask, PARTY, rows, {}, noise)[0]


def generator_change(answer: Answer, noise: NoiseSource) -> dict[str, np.ndarray[Any, Any]]:
    """The attacker's guess, who has even the seed: the generator's step after the discriminator's released one.

    Nothing here knows how many rows joined. In the attack this guess came out right only together with the right
    number of rows, because their conditions were drawn from the same stream.
    """
    plan, ask, _ = begun()
    synthesizer, settings = ctgan(plan), settings_of(plan, CtganSettings)
    asked = synthesizer.read(ask, PARTY)
    networks = Networks(settings, asked.features)
    load(networks, ask.arrays)
    conditions = Conditions(asked.features, asked.frequencies, plan.table.target)
    before, share = to_arrays(networks), plan.share(PARTY)
    stream, spans = StepStreams.of(noise, 1).made_up, asked.features.spans
    made_up(networks.generator, conditions.draw(20, stream), spans, stream)
    stream.uniform(8, 16)  # dropout on the trial rows, once a round
    stream.uniform(64, 16)  # and on the made-up ones, padded
    load(
        networks, before | {n: before[n] + a / share for n, a in answer.arrays.items() if n.startswith("discriminator")}
    )
    loss = generator_loss(networks, conditions, spans, settings, stream)
    set_gradient(networks.generator, torch.autograd.grad(loss, list(networks.generator.parameters())))
    rate, betas = settings.generator.learning_rate, (settings.momentum, SECOND_BETA)
    Adam(networks.generator.parameters(), rate, betas=betas, weight_decay=settings.weight_decay).step()
    after = to_arrays(networks)
    assert synthesizer.schedule.steps(0) == 1
    return {name: share * (after[name] - before[name]) for name in answer.arrays if name.startswith("generator")}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("rows", [0, 1, 37, 200])
def test_the_size_of_the_batch_does_not_show_in_the_made_up_half(rows: int, seed: int) -> None:
    """One guess fits whatever the batch: the residual (2e-10 for the right size, 7e-3 for others) says nothing now."""
    _, _, data = begun()
    answer = answered(data.take(slice(0, rows)), seeded_source(seed, "attack"))
    for name, guess in generator_change(answer, seeded_source(seed, "attack")).items():
        np.testing.assert_allclose(answer.arrays[name], guess, atol=1e-6)
    elsewhere = generator_change(answer, seeded_source(seed, "another stream"))
    assert max(np.abs(answer.arrays[name] - guess).max() for name, guess in elsewhere.items()) > 1e-4


def test_an_empty_batch_leaves_every_public_stream_where_a_full_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions of all streams after a round, without rows and with 200: only those of real rows may differ."""
    _, _, data = begun()
    positions = []
    for rows in (0, 200):
        made: list[StepStreams] = []
        with monkeypatch.context() as watched:
            watched.setattr(StepStreams, "of", classmethod(kept(made)))
            answered(data.take(slice(0, rows)), seeded_source(5, "empty"))
        positions.append([str(streams.made_up.rng.bit_generator.state) for streams in made])
    assert positions[0] == positions[1]
    assert len(positions[0]) == 1


def kept(made: list[StepStreams]) -> Any:
    original = StepStreams.of.__func__  # type: ignore[attr-defined]

    def of(cls: Any, noise: NoiseSource, step: int) -> StepStreams:
        made.append(original(cls, noise, step))
        return made[-1]

    return of


def test_one_row_changes_nothing_else_in_a_round_of_one_step() -> None:
    plan, ask, data = begun()
    subject = Subject(lambda: ctgan(plan), [ask], PARTY, plan.noisy_parties)
    for joins in (True, False):
        found = replay(subject, Neighbours(data.take(slice(0, 64)), extreme_rows(plan.table)[1], joins))
        assert found.violations == []
        assert (found.tightness > 0.9) == joins
    assert replay(subject, Neighbours(data.take(slice(0, 0)), extreme_rows(plan.table)[1])).violations == []


def test_answers_do_not_depend_on_torchs_generator() -> None:
    """It keeps 32 bits of its seed, which can be tried one by one."""
    _, _, data = begun()
    answers = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        state = torch.random.get_rng_state()
        answers.append(answered(data, seeded_source(3)).arrays)
        assert torch.equal(torch.random.get_rng_state(), state)
    np.testing.assert_equal(answers[0], answers[1])


def test_streams_start_from_more_than_128_bits_and_each_is_its_own() -> None:
    asked: list[int] = []

    class Counting(NoiseSource):
        def child(self, *labels: str | int) -> NoiseSource:
            return Counting()

        def random_bytes(self, count: int) -> bytes:
            asked.append(count)
            return super().random_bytes(count)

    first, second = (StepStreams.of(Counting(), 1) for _ in range(2))
    assert asked == [32] * 6
    seeded = [StepStreams.of(seeded_source(1), step) for step in (1, 2)]
    streams: list[Stream] = [
        s for each in (first, second, *seeded) for s in (each.conditions, each.dropout, each.made_up)
    ]
    assert len({float(stream.uniform(1, 1)) for stream in streams}) == len(streams)


def test_modes_are_drawn_from_a_seed_that_cannot_be_tried() -> None:
    plan, ask, data = begun()
    _, local = ctgan(plan).answer(ask, PARTY, data, {}, seeded_source(3))
    assert local["encoding_seed"].nbytes * 8 >= 128
    ctgan(plan).answer(ask, PARTY, data, {"encoding_seed": np.array([7], np.uint64)}, seeded_source(3))  # as before


@pytest.mark.parametrize(
    "changes",
    [{}, {"privacy": "none"}, {"profile": "faithful"}, {"privacy": "none", "profile": "faithful"}],
    ids=["rigorous", "no privacy", "faithful", "published"],
)
def test_an_empty_table_answers(changes: dict[str, Any]) -> None:
    """Under privacy with noise alone; in no case does it refuse, for that would tell."""
    _, ask, data = begun()
    critic = ONE_STEP["discriminator"] | ({"loss": "wasserstein"} if changes.get("privacy") == "none" else {})
    other = plan_of(ONE_STEP | {"discriminator": critic}, **changes)
    answer, _ = ctgan(other).answer(ask, PARTY, data.take(slice(0, 0)), {}, seeded_source(1))
    assert all(np.isfinite(array).all() for array in answer.arrays.values())
    moved = any(array.any() for name, array in answer.arrays.items() if name.startswith("discriminator"))
    assert moved == ("privacy" not in changes)


# ── BatchNorm ──


def test_answers_and_asks_carry_parameters_only() -> None:
    plan, ask, data = begun()
    answer = answered(data, seeded_source(1))
    networks = Networks(settings_of(plan, CtganSettings), ctgan(plan).read(ask, PARTY).features)
    names = {f"generator/{n}" for n, _ in networks.generator.named_parameters()}
    names |= {f"discriminator/{n}" for n, _ in networks.discriminator.named_parameters()}
    assert set(answer.arrays) == names
    assert not [name for name in ask.arrays if "running" in name or "num_batches" in name]


def test_models_of_the_version_before_are_read_and_draw_the_same_rows() -> None:
    """They hold BatchNorm's statistics beside the weights; rows are drawn with statistics made anew."""
    plan, _, _ = begun()
    world = Inline(plan, {p.name: Codec(plan.table).encode(table(p.rows, n)) for n, p in enumerate(plan.parties)}, 1)
    synthesizer = ctgan(plan)
    synthesizer.begin(statistics_of(world), 1)
    state = synthesizer.state()
    older = dict(state)
    for prefix in ("", "average/"):
        for layer in ("first", "second"):
            for name in ("running_mean", "running_var"):
                older[f"{prefix}generator/{layer}.norm.{name}"] = np.full(16, 9.0, np.float32)
    restored = ctgan(plan)
    restored.restore(older)
    assert set(restored.state()) == set(state)
    ours, theirs = synthesizer.sample(30, seed=4), restored.sample(30, seed=4)
    for name in ours.columns:
        np.testing.assert_array_equal(ours.columns[name], theirs.columns[name])
