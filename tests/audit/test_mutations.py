"""An audit that could not fail would prove nothing: break the real functions, one at a time, and see it fail.

Every check here is one that passes in test_replay, test_whitebox, test_ledger or test_verification as the code stands.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import synth.neural.synthesizer as neural_synthesizer
import synth.neural.training as neural_training
import synth.synthesizers.ctgan.synthesizer as ctgan_synthesizer
from fed_node.answers import AnswerStore
from fed_node.ledger.book import Book, Budget
from fed_node.ledger.ledger import Ledger
from synth.audit.canaries import extreme_rows
from synth.audit.replay import Neighbours, Subject, replay, unmoved
from synth.audit.whitebox import repeats
from synth.budget import statistics_event
from synth.encoding.cells import Cells
from synth.encoding.records import Records
from synth.errors import Refusal
from synth.interface import Answer, Arrays, Ask
from synth.neural.streams import StepStreams, Stream
from synth.plan import Plan
from synth.privacy import bookkeeping, dpsgd
from synth.privacy.accounting import Spent, compose
from synth.privacy.dpsgd import StepPrivacy
from synth.privacy.events import CountNoise, Event
from synth.privacy.noise import NoiseSource
from synth.privacy.shares import share_of
from synth.statistics.histograms import StatisticsInquiry
from synth.synthesizers.ctgan.batches import PoissonBatches
from synth.synthesizers.ctgan.steps import PrivateStep, made_up
from synth.synthesizers.ctgan.synthesizer import ctgan
from tests.audit.federations import coin_run, small_run
from tests.audit.parties import recorded_parties, understated
from tests.audit.test_replay import replayed
from tests.audit.test_whitebox import TRUSTS, counts_verdict, step_verdict
from tests.synth.synthesizers.test_ctgan_streams import begun
from tests.synth.test_verification import certificate_of, failures

Patch = pytest.MonkeyPatch
HIGHEST = 1  # the worst-case row


@pytest.fixture(autouse=True)
def runs_of_sound_code() -> None:
    """Asks and plans come from runs before anything was broken."""
    small_run("ctgan")
    small_run("marginals")
    coin_run("marginals", 3.0, *TRUSTS["shared"])


def statistics_violations() -> list[str]:
    return replayed("marginals", HIGHEST)[0].violations


def training_violations() -> list[str]:
    return replayed("ctgan", HIGHEST)[1].violations


def statistics_proven_too_much() -> bool:
    """In a whole run's sums, of which the statistics are a part."""
    return counts_verdict("marginals", "shared", runs=20_000).violated


def step_proven_too_much(sample_rate: float = 1.0) -> bool:
    return step_verdict(StepPrivacy(0.5, 1.0, sample_rate, 10.0), runs=3_000).violated


def test_the_checks_pass_as_the_code_stands() -> None:
    assert statistics_violations() == training_violations() == []
    assert not statistics_proven_too_much()
    assert not step_proven_too_much()


# ── noise halved ──


def quarter_share(plan: Plan, event: CountNoise) -> float:
    return share_of(plan, event) / 4


def test_half_the_noise_of_counts(monkeypatch: Patch) -> None:
    for module in ("synth.statistics.histograms", "synth.counting.party_side"):
        monkeypatch.setattr(f"{module}.share_of", quarter_share)
    assert any("variance" in each for each in statistics_violations())
    assert statistics_proven_too_much()


def test_a_source_with_half_the_noise(monkeypatch: Patch) -> None:
    """Replay believes the source; the white-box audit does not."""
    skellam, gaussian = NoiseSource.skellam, NoiseSource.rounded_gaussian
    monkeypatch.setattr(NoiseSource, "skellam", lambda self, v, n: np.rint(skellam(self, v, n) / 2).astype(np.int64))
    monkeypatch.setattr(NoiseSource, "rounded_gaussian", lambda self, sigma, n: gaussian(self, sigma / 2, n))
    assert statistics_proven_too_much()
    assert step_proven_too_much()


@pytest.mark.parametrize("divisor", [2.0, 2**0.5], ids=["halved", "sensitivity/√2"])
def test_too_little_noise_in_a_step(monkeypatch: Patch, divisor: float) -> None:
    honest = dpsgd.lattice_sensitivity
    monkeypatch.setattr(dpsgd, "lattice_sensitivity", lambda parameters: honest(parameters) / divisor)
    assert any("noise of" in each for each in training_violations())
    assert step_proven_too_much()


# ── clip missing ──


def test_no_clipping(monkeypatch: Patch) -> None:
    add = bookkeeping._add_clipped_products

    def unclipped(sums: Any, stacked: Any, clip: float, at_once: int) -> Iterator[None]:
        """Whatever their norm, rows count in full; the sum is in clip norms."""
        total = {parameter: torch.zeros_like(part) for parameter, part in sums.items()}
        yield from add(total, stacked, 1e9, at_once)
        for parameter, part in sums.items():
            part += total[parameter] * (1e9 / clip)

    monkeypatch.setattr(bookkeeping, "_add_clipped_products", unclipped)
    assert any("clip norm" in each for each in training_violations())
    assert step_proven_too_much()


# ── sensitivity / √2 ──


def test_counts_calibrated_for_half_the_columns(monkeypatch: Patch) -> None:
    def halved(plan: Plan, queries: int) -> CountNoise | None:
        return statistics_event(plan, queries // 2)

    monkeypatch.setattr("synth.statistics.histograms.statistics_event", halved)
    assert any("cells" in each for each in statistics_violations())


# ── budget spent twice ──


def test_twice_the_steps(monkeypatch: Patch) -> None:
    monkeypatch.setattr(
        neural_synthesizer,
        "train",
        lambda step, adam, count, *rest: neural_training.train(step, adam, 2 * count, *rest),
    )
    assert any("charged were" in each for each in training_violations())


def test_counts_released_twice(monkeypatch: Patch) -> None:
    answer = StatisticsInquiry.answer

    def twice(self: StatisticsInquiry, *arguments: Any) -> tuple[Answer, Arrays]:
        one, other = (answer(self, *arguments)[0] for _ in range(2))
        return Answer({"counts": (one.arrays["counts"] + other.arrays["counts"]) // 2}, one.weight), {}

    monkeypatch.setattr(StatisticsInquiry, "answer", twice)
    assert any("charged were" in each for each in statistics_violations())


def test_a_repeated_ask_answered_anew(monkeypatch: Patch, tmp_path: Path) -> None:
    monkeypatch.setattr(AnswerStore, "get", lambda self, key: None)
    monkeypatch.setattr(Ledger, "is_answered", lambda self, run, sequence: False)
    with recorded_parties(tmp_path, "marginals") as parties:
        parties.repeated = True
        with suppress(Refusal):  # the ledger's note of the first answer stops such a run as well
            parties.run("run-1")
        assert any("times more than charged" in each for each in parties.unpaid())


# ── domain from data ──


def test_bounds_from_data(monkeypatch: Patch) -> None:
    count = Cells.count

    def rescaled(self: Cells, records: Records) -> np.ndarray:
        """Every numeric column stretched from its own least and largest value over all cells."""
        columns = dict(records.columns)
        for name, scale in self.scales.items():
            low, high = np.nanmin(columns[name]), np.nanmax(columns[name])
            columns[name] = scale.lowest + (columns[name] - low) * (scale.highest - scale.lowest) / max(high - low, 1)
        return count(self, Records(columns))

    monkeypatch.setattr(Cells, "count", rescaled)
    assert any("cells" in each for each in statistics_violations())


def test_categories_from_data(monkeypatch: Patch) -> None:
    def seen_only(
        self: StatisticsInquiry, ask: Ask, party: str, data: Records, local: Arrays, noise: NoiseSource
    ) -> tuple[Answer, Arrays]:
        counts = self.cells.count(data)
        seen = counts[counts > 0]
        assert self.event is not None
        noisy = seen + noise.child("counts").skellam(share_of(self.plan, self.event), len(seen))
        return Answer({"counts": noisy}, self.plan.share(party)), local

    monkeypatch.setattr(StatisticsInquiry, "answer", seen_only)
    assert any("control flow" in each for each in statistics_violations())


# ── accountant reset ──


def two_runs(path: Path) -> bool:
    """Two runs at one ledger; whether it understates them."""
    ledger = Ledger(path, "rows", Budget(10.0, 1e-5))
    for run in ("run-1", "run-2"):
        ledger.reserve(run, "plan", [CountNoise(7, 400.0)], automatic=True)
        ledger.charge(run, "plan", 0, "ask", [CountNoise(7, 400.0)])
        ledger.release(run)
    found = understated(ledger)
    ledger.close()
    return found


def test_a_ledger_that_forgets_earlier_runs(monkeypatch: Patch, tmp_path: Path) -> None:
    assert not two_runs(tmp_path / "honest")
    monkeypatch.setattr(Book, "others", lambda self, *without: [])
    assert two_runs(tmp_path / "forgetful")


def test_a_certificate_that_forgets_all_but_the_last_event(monkeypatch: Patch) -> None:
    def reset(events: list[Event], delta: float) -> Spent:
        return compose(list(events)[-1:], delta)

    assert failures(certificate_of()) == []
    with monkeypatch.context() as broken:
        broken.setattr("synth.privacy.claims.compose", reset)
        certificate = certificate_of()
    assert "ε recomputed" in failures(certificate)


# ── fixed seed ──


def test_a_fixed_seed(monkeypatch: Patch) -> None:
    monkeypatch.setattr(os, "urandom", lambda count: bytes(count))
    assert repeats(NoiseSource)


def test_a_seeded_party_in_a_federation() -> None:
    assert "noise" in failures(certificate_of(seeded=True))


# ── and what else has gone wrong elsewhere ──


def test_every_row_in_every_step(monkeypatch: Patch) -> None:
    monkeypatch.setattr(neural_training, "poisson_batch", lambda source, rows, rate: np.arange(rows))
    assert any("probability" in each for each in training_violations())


def test_a_sampler_that_takes_rows_too_often(monkeypatch: Patch) -> None:
    sample = NoiseSource.poisson_sample
    monkeypatch.setattr(NoiseSource, "poisson_sample", lambda self, rows, rate: sample(self, rows, min(1.0, 2 * rate)))
    assert step_proven_too_much(sample_rate=0.5)


def test_the_true_number_of_rows_as_a_weight(monkeypatch: Patch) -> None:
    answer = StatisticsInquiry.answer

    def weighed(self: StatisticsInquiry, ask: Ask, party: str, data: Records, *rest: Any) -> tuple[Answer, Arrays]:
        found, local = answer(self, ask, party, data, *rest)
        return Answer(found.arrays, float(len(data))), local

    monkeypatch.setattr(StatisticsInquiry, "answer", weighed)
    assert any("weights" in each for each in statistics_violations())


def test_a_path_around_the_noise(monkeypatch: Patch) -> None:
    """The generator sees a real row: smartnoise #301, #484."""

    def leaking(generator: Any, conditions: torch.Tensor, spans: Any, stream: Any) -> Any:
        rows, asked = made_up(generator, conditions, spans, stream)
        return rows + seen[-1].sum(), asked

    seen: list[torch.Tensor] = []
    batches = PoissonBatches.draw

    def draw(self: PoissonBatches, streams: Any) -> Any:
        seen.append(self.rows)
        return batches(self, streams)

    monkeypatch.setattr(ctgan_synthesizer, "made_up", leaking)
    monkeypatch.setattr(PoissonBatches, "draw", draw)
    assert any("differs although" in each for each in training_violations())


# ── luck that rows advance ──


def one_step_subject() -> Subject:
    """Two rounds of one step, from the same weights."""
    plan, ask, _ = begun()
    asks = [replace(ask, options=ask.options | {"round": number}) for number in range(2)]
    return Subject(lambda: ctgan(plan), asks, "party-1", plan.noisy_parties)


def one_step_violations() -> list[str]:
    plan, _, data = begun()
    return replay(one_step_subject(), Neighbours(data.take(slice(0, 60)), extreme_rows(plan.table)[HIGHEST])).violations


def test_conditions_of_real_rows_from_the_stream_of_made_up_ones(monkeypatch: Patch) -> None:
    """Their number then shows in every made-up row: the exact size of a batch was read off an answer."""
    drawn = PoissonBatches.draw

    def shared(self: PoissonBatches, streams: StepStreams) -> Any:
        return drawn(self, replace(streams, conditions=streams.made_up))

    assert one_step_violations() == []
    monkeypatch.setattr(PoissonBatches, "draw", shared)
    for found in (training_violations(), one_step_violations()):
        assert any("differs although" in each for each in found)


def test_dropout_on_real_rows_from_the_stream_of_made_up_ones(monkeypatch: Patch) -> None:
    called = PrivateStep.__call__
    monkeypatch.setattr(
        PrivateStep,
        "__call__",
        lambda self, real, fake, streams: called(self, real, fake, replace(streams, dropout=streams.made_up)),
    )
    plan, _, data = begun()
    rows = Neighbours(data.take(slice(0, 0)), extreme_rows(plan.table)[HIGHEST])  # the 64th row would show as well
    assert any("differs although" in each for each in replay(one_step_subject(), rows).violations)


def test_one_stream_for_a_whole_party(monkeypatch: Patch) -> None:
    """As torch's generator was: seeded once a round, then used for everything."""
    streams: dict[int, Stream] = {}

    def of(cls: Any, noise: NoiseSource, step: int) -> StepStreams:
        one = streams.setdefault(id(noise), Stream.of(noise.child("model")))
        return StepStreams(noise.child("step", step, "rows"), one, one, one)

    monkeypatch.setattr(StepStreams, "of", classmethod(of))
    assert any("differs although" in each for each in training_violations())


def test_batch_norm_statistics_in_an_answer(monkeypatch: Patch) -> None:
    """Means over made-up rows that no noise covers: they tell the luck of the round."""
    _, _, data = begun()
    subject, rows = one_step_subject(), data.take(slice(0, 60))
    assert unmoved(subject, rows) == []
    arrays = neural_synthesizer.to_arrays

    def with_statistics(network: torch.nn.Module) -> Arrays:
        buffers = {name.replace(".", "/", 1): b.numpy().copy() for name, b in network.named_buffers()}
        return arrays(network) | {name: b for name, b in buffers.items() if "running" in name}

    monkeypatch.setattr(neural_synthesizer, "to_arrays", with_statistics)
    found = unmoved(subject, rows)
    assert any("running_mean" in each for each in found)
    assert all("running" in each for each in found)
