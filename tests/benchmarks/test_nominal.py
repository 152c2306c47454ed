"""The papers' own accountants, by the values they print."""

from __future__ import annotations

import pytest

from benchmarks.nominal import gswgan, published_epsilon


@pytest.mark.parametrize(
    ("discriminators", "steps", "epsilon"),
    [(250, 1_000, 8.818), (500, 10_000, 14.989), (1000, 20_000, 9.993), (1500, 40_000, 9.302), (500, 15, 0.997)],
)
def test_the_published_accountant_prints_what_was_published(discriminators: int, steps: int, epsilon: float) -> None:
    assert published_epsilon(discriminators, steps) == pytest.approx(epsilon, abs=6e-4)


def test_one_draw_for_all_rows_of_a_step_costs_far_more() -> None:
    found = gswgan(1500, 21_000)
    assert found["nominal"] == pytest.approx(6.47, abs=0.01)
    assert found["composed"] == pytest.approx(252, rel=0.01)
