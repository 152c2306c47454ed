"""Modes, limits and layouts: what both sides of a sum derive alike."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.errors import ProtocolError
from synth.interface import Answer, Ask
from synth.messages.sums import Layout, count_limit, tolerates_loss
from synth.programme import mode_of
from tests.small import plan_of

CTGAN = {"name": "ctgan"}
SHAPES = st.lists(st.integers(0, 3), min_size=0, max_size=3).map(tuple)


@given(
    st.dictionaries(st.text(max_size=5), st.tuples(st.sampled_from(["int64", "int32", "float32", "float64"]), SHAPES)),
    st.floats(-100, 100),
)
def test_an_answer_survives_flattening(arrays: dict[str, tuple[str, tuple[int, ...]]], weight: float) -> None:
    rng = np.random.default_rng(0)
    answer = Answer({name: (rng.normal(size=shape) * 9).astype(kind) for name, (kind, shape) in arrays.items()}, weight)
    layout = Layout.of(answer)
    counts, reals = layout.flatten(answer)
    assert (counts.size, reals.size) == (layout.counts, layout.reals)
    again = Layout.from_text(layout.to_text()).restore(counts, reals)
    assert again.weight == weight
    assert set(again.arrays) == set(arrays)
    for name, array in answer.arrays.items():
        assert again.arrays[name].shape == array.shape
        assert np.array_equal(again.arrays[name], array)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        '[["a","count"]]',
        '[["a","text",[1]]]',
        '[["a","count",[-1]]]',
        '[["a","count",[true]]]',
        '[["a","count",[1.0]]]',
        '[["b","count",[1]],["a","count",[1]]]',
        '[["a","count",[1]],["a","count",[1]]]',
        '[["a", "count", [1]]]',  # another spelling of a proper one
        "[" * 100_000,
    ],
)
def test_other_layouts_are_refused(text: str) -> None:
    with pytest.raises(ProtocolError):
        Layout.from_text(text)


def test_sums_of_the_wrong_size_are_refused() -> None:
    layout = Layout.of(Answer({"x": np.zeros(3)}, 1.0))
    assert json.loads(layout.to_text()) == [["x", "real", [3]]]
    with pytest.raises(ProtocolError):
        layout.restore(np.zeros(0, np.int64), np.zeros(3))
    with pytest.raises(ProtocolError, match="'x'"):
        Layout.of(Answer({"x": np.array(["text"])}, 1.0))


def test_modes_follow_the_plan() -> None:
    plan = plan_of(CTGAN, secure_sum={"statistics": "ckks", "updates": "masked"})
    assert mode_of(plan, Ask(options={"phase": "statistics"})) == "ckks"
    assert mode_of(plan, Ask(options={"phase": "training"})) == "masked"
    assert mode_of(plan, Ask(options={"phase": "statistics"}, combine="gather")) == "plain"
    with pytest.raises(ProtocolError):
        mode_of(plan, Ask(options={"phase": "modes"}))


def test_limits_are_public_and_losses_are_tolerated_only_if_the_plan_says_so() -> None:
    assert count_limit(plan_of(CTGAN, rows=5000)) > 1000 * 5000
    assert not tolerates_loss(plan_of(CTGAN))
    assert tolerates_loss(plan_of(CTGAN, secure_sum={"minimum_parties": 2}))
