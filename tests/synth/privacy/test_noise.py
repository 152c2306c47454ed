"""A noise source must be secret by default, repeatable when seeded, and have the laws it claims."""

import multiprocessing
import os

import numpy as np
import pytest

from synth.errors import PrivacyError
from synth.privacy.noise import NoiseSource, seeded_source


def test_known_answers_of_a_seeded_stream() -> None:
    """A change here changes every seeded table ever published."""
    source = seeded_source(42, "party-a", 7)
    assert source.seeded
    assert source.random_bytes(8).hex() == "e4560622fc9263bd"
    assert source.uint64(2).tolist() == [13702944253027752398, 5013592822853585149]
    assert source.skellam(100.0, 6).tolist() == [-4, -2, 8, 2, -17, 7]
    assert np.flatnonzero(source.poisson_sample(60, 0.1)).tolist() == [8, 20, 23]
    assert source.rounded_gaussian(1e6, 3).tolist() == [197956, 559357, 425765]


def test_the_stream_is_aes_counter_mode_over_the_operating_systems_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the all-zero 256-bit key the first block is the published AES answer for an all-zero block."""
    monkeypatch.setattr(os, "urandom", lambda count: bytes(count))
    assert NoiseSource().random_bytes(16).hex() == "dc95c078a2408989ad48a21492842087"


def test_unseeded_streams_never_repeat() -> None:
    source = NoiseSource()
    assert not source.seeded
    assert not source.child("same").seeded
    streams = [source, source.child("same"), source.child("same"), NoiseSource()]
    assert len({stream.random_bytes(16) for stream in streams}) == 4


def test_seeded_children_are_told_apart_by_their_labels() -> None:
    labels: list[tuple[str | int, ...]] = [("a", 1), ("a1",), ("a", "1"), ("a", 2), ("b", 1), ()]
    first = [seeded_source(5).child(*label).random_bytes(16) for label in labels]
    assert first == [seeded_source(5).child(*label).random_bytes(16) for label in labels]
    assert len({*first, seeded_source(6).child("a", 1).random_bytes(16)}) == len(labels) + 1
    assert seeded_source(5).child("a").seeded


def test_a_forked_process_does_not_repeat_its_parents_noise() -> None:
    source = NoiseSource()
    receiving, sending = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=lambda: sending.send(source.random_bytes(16)))
    process.start()
    process.join()
    assert receiving.recv() != source.random_bytes(16)


def test_rows_join_independently_at_the_rate() -> None:
    """2,000 rounds over 500 rows. Inclusion per row, batch-size variance and pair correlation, each at 5 standard
    errors or more; together they would fail one seed in 1,000."""
    rate, rounds, rows = 0.05, 2000, 500
    source = seeded_source(9, "poisson")
    joined = np.array([source.poisson_sample(rows, rate) for _ in range(rounds)])
    deviation = np.sqrt(rate * (1 - rate) / rounds)
    assert np.abs(joined.mean(0) - rate).max() < 5 * deviation
    sizes = joined.sum(1)
    binomial = rows * rate * (1 - rate)
    assert sizes.var() == pytest.approx(binomial, rel=5 * np.sqrt(2 / rounds))  # 0 for fixed-size batches
    correlations = np.corrcoef(joined[:, :60].T.astype(float))[np.triu_indices(60, 1)]
    assert np.abs(correlations).max() < 5.5 / np.sqrt(rounds)
    assert abs(np.corrcoef(sizes[1:], sizes[:-1])[0, 1]) < 5 / np.sqrt(rounds)


def test_sampling_at_the_edges() -> None:
    assert NoiseSource().poisson_sample(1000, 1.0).all()
    assert NoiseSource().poisson_sample(0, 0.5).shape == (0,)
    for rate in (0.0, -0.1, 1.1, float("nan")):
        with pytest.raises(PrivacyError, match="probability"):
            NoiseSource().poisson_sample(1, rate)
