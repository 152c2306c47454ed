"""Numbers in bins: cut by the released histogram, encoded without loss of the bin, given back by rank."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from synth.encoding.cells import Cells
from synth.encoding.features import Features
from synth.encoding.number_bins import as_bins, cut
from synth.encoding.records import Records
from synth.schema import Categorical, Integer, Schema

SCHEMA = Schema(
    columns={
        "gain": Integer(min=0, max=5_000, missing=True),
        "kind": Categorical(categories=["a", "b"]),
        "hours": Integer(min=0, max=99),
    }
)


def rows(count: int, seed: int) -> Records:
    """A spike at 0, missing values, and heaps of five."""
    rng = np.random.default_rng(seed)
    gain = np.where(rng.random(count) < 0.8, 0.0, rng.integers(1, 5_000, count).astype(float))
    gain = np.where(rng.random(count) < 0.1, np.nan, gain)
    hours = np.where(rng.random(count) < 0.5, 40.0, rng.integers(0, 99, count).astype(float))
    return Records({"gain": gain, "kind": rng.integers(0, 2, count), "hours": hours})


def features(seed: int, most: int, sigma: float = 0.0) -> tuple[Features, Cells]:
    cells = Cells(SCHEMA, 128)
    return Features(SCHEMA, {}, cut(cells, cells.count(rows(3_000, seed)), sigma, most)), cells


@given(st.integers(0, 50), st.integers(2, 30))
def test_every_value_keeps_its_bin_and_rows_say_only_bins(seed: int, most: int) -> None:
    layout, cells = features(seed, most)
    given_rows = rows(200, seed + 1)
    matrix = layout.encode(given_rows, np.random.default_rng(0))
    assert [span.kind for span in layout.spans] == ["mode", "label", "mode"]
    assert all(span.width <= most + 1 for span in layout.spans)
    for span in layout.spans:
        assert (matrix[:, span.slice].sum(1) == 1).all()
    np.testing.assert_array_equal(layout.encode(layout.decode(matrix), np.random.default_rng(1)), matrix)
    by_cells = as_bins(cells, layout.cuts).index(given_rows, ["gain", "hours"])
    for codes, span in zip(by_cells, (layout.spans[0], layout.spans[2]), strict=True):
        np.testing.assert_array_equal(codes, matrix[:, span.slice].argmax(1))


def test_a_value_that_piles_up_has_a_bin_to_itself() -> None:
    layout, _ = features(1, 20)
    assert layout.cuts["gain"][0] == 0.5
    assert {39.5, 40.5} <= set(layout.cuts["hours"].tolist())


def test_arrays_fix_the_layout_and_other_arrays_are_left_alone() -> None:
    layout, _ = features(2, 12)
    again = Features.from_arrays(SCHEMA, layout.to_arrays() | {"else": np.zeros(1)})
    assert again.spans == layout.spans
    matrix = layout.encode(rows(50, 3), np.random.default_rng(0))
    np.testing.assert_array_equal(again.encode(rows(50, 3), np.random.default_rng(0)), matrix)


def test_one_value_more_is_not_cut_from_noise_alone() -> None:
    """Where nothing but noise was counted, bins are few: each must hold more rows than the noise of a count."""
    cells = Cells(SCHEMA, 128)
    noise = np.rint(np.random.default_rng(0).normal(0, 100, cells.size)).astype(np.int64)
    assert all(len(edges) < 8 for edges in cut(cells, noise, 100.0, 30).values())
