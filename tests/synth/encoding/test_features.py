"""What goes into the matrix comes out of it, and whatever a network writes there decodes to the schema."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.encoding.cells import Cells
from synth.encoding.features import Features
from synth.encoding.mixtures import Mixture, fit_cells
from synth.encoding.records import Codec, Records
from synth.encoding.scales import scale_of
from synth.errors import ProtocolError
from synth.schema import Boolean, Categorical, Continuous, Integer, Schema
from tests.synth.encoding.random_schemas import random_records, same, schemas


def random_mixture(lowest: float, highest: float, step: float, modes: int, seed: int) -> Mixture:
    rng = np.random.default_rng(seed)
    width = highest - lowest
    stds = np.maximum(rng.uniform(0.01, 0.3, modes) * width, 0.1 * step)
    return Mixture(rng.dirichlet(np.ones(modes)), rng.uniform(lowest, highest, modes), stds)


def features_for(schema: Schema, seed: int, modes: int) -> Features:
    scales = {name: scale_of(column) for name, column in schema.numeric.items()}
    return Features(
        schema, {name: random_mixture(s.lowest, s.highest, s.step, modes, seed) for name, s in scales.items()}
    )


@settings(max_examples=150, deadline=None)
@given(schema=schemas(), seed=st.integers(0, 999), modes=st.integers(1, 6))
def test_round_trip_is_exact_wherever_a_mode_reaches(schema: Schema, seed: int, modes: int) -> None:
    features, records = features_for(schema, seed, modes), random_records(schema, 25, seed)
    again = features.decode(features.encode(records, np.random.default_rng(seed)))
    assert list(again.columns) == list(records.columns)
    for name in schema.discrete:
        np.testing.assert_array_equal(again.columns[name], records.columns[name])
    for name, scale in features.scales.items():
        before, after, mixture = records.columns[name], again.columns[name], features.mixtures[name]
        np.testing.assert_array_equal(np.isnan(before), np.isnan(after))
        reached = (np.abs(before[:, None] - mixture.means) <= 3.96 * mixture.stds).any(axis=1)
        single_precision = 4 * mixture.stds.max() * 2.0**-23
        exact = scale.step > 4 * single_precision
        allowed = 1e-9 * scale.step if exact else scale.step + single_precision
        assert np.all(np.abs(before - after)[reached] <= allowed + np.abs(before[reached]) * 1e-15)


@settings(max_examples=100, deadline=None)
@given(schema=schemas(), seed=st.integers(0, 999))
def test_whatever_a_network_writes_fits_the_schema(schema: Schema, seed: int) -> None:
    features = features_for(schema, seed, modes=3)
    output = np.random.default_rng(seed).normal(0, 2, (20, features.width)).astype(np.float32)
    records = features.decode(output)
    assert same(Codec(schema).encode(Codec(schema).decode(records)), records)


@settings(max_examples=50, deadline=None)
@given(schema=schemas(), seed=st.integers(0, 99))
def test_blocks_are_one_hot_and_fill_the_matrix(schema: Schema, seed: int) -> None:
    features = features_for(schema, seed, modes=2)
    matrix = features.encode(random_records(schema, 10, seed), np.random.default_rng(seed))
    assert matrix.dtype == np.float32
    assert [span.start for span in features.spans] == np.cumsum([0] + [s.width for s in features.spans])[:-1].tolist()
    for span in features.spans:
        block = matrix[:, span.slice]
        if span.kind == "alpha":
            assert np.abs(block).max() <= np.float32(0.99)
        else:
            np.testing.assert_array_equal(np.sort(block, axis=1)[:, -1], 1)
            np.testing.assert_array_equal(block.sum(axis=1), 1)


@settings(max_examples=50, deadline=None)
@given(schema=schemas(), seed=st.integers(0, 99))
def test_an_ask_can_carry_the_encoding(schema: Schema, seed: int) -> None:
    features, records = features_for(schema, seed, modes=3), random_records(schema, 10, seed)
    carried = Features.from_arrays(schema, features.to_arrays() | {"generator/0": np.zeros(3)})
    assert carried.spans == features.spans
    np.testing.assert_array_equal(
        carried.encode(records, np.random.default_rng(1)), features.encode(records, np.random.default_rng(1))
    )


def test_conditions_are_laid_out_without_gaps() -> None:
    schema = Schema(
        columns={
            "a": Categorical(categories=["u", "v", "w"], missing=True),
            "x": Integer(min=0, max=9),
            "b": Boolean(),
        }
    )
    features = Features(schema, {"x": Mixture(np.array([0.5, 0.5]), np.array([2.0, 7.0]), np.array([1.0, 1.0]))})
    assert [(span.column, span.start, span.width) for span in features.discrete_spans] == [("a", 0, 4), ("b", 7, 2)]
    assert features.condition_starts == {"a": 0, "b": 4}
    assert features.condition_width == 6
    assert features.width == 9


def test_modes_are_drawn_from_their_posterior() -> None:
    features = Features(
        Schema(columns={"x": Continuous(min=-9, max=9)}),
        {"x": Mixture(np.array([0.3, 0.7]), np.array([-1.0, 1.0]), np.array([2.0, 2.0]))},
    )
    matrix = features.encode(Records({"x": np.zeros(20_000)}), np.random.default_rng(0))
    assert matrix[:, 2].mean() == pytest.approx(0.7, abs=0.015)  # 4.6 standard errors: false alarm 4e-6


def test_standing_out_values_come_back_exactly() -> None:
    rng = np.random.default_rng(0)
    schema = Schema(columns={"gain": Integer(min=0, max=99_999)})
    values = np.where(rng.random(3000) < 0.9, 0, np.round(rng.normal(9000, 2000, 3000)))
    cells = Cells(schema, 128)
    records = Records({"gain": np.clip(values, 0, 99_999)})
    mixture = fit_cells(cells, "gain", cells.probabilities(cells.count(records), 0.0)["gain"])
    features = Features(schema, {"gain": mixture})
    matrix = features.encode(records, rng)
    zero = values == 0
    np.testing.assert_array_equal(matrix[zero, 1], 1)
    matrix[:, 0] = rng.uniform(-1, 1, len(matrix))  # a network that knows the mode but not the place
    np.testing.assert_array_equal(features.decode(matrix).columns["gain"][zero], 0)


def test_a_mixture_that_is_not_there_is_named() -> None:
    with pytest.raises(ProtocolError, match="no mixture for x"):
        Features(Schema(columns={"x": Integer(min=0, max=9)}), {})
