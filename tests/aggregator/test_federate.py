"""The loop, without a network: it asks until there is nothing to ask, in order, and counts asks over the whole run."""

from __future__ import annotations

from typing import Any

import numpy as np

from aggregator.federate import federate
from synth.interface import Arrays, Ask, Inquiry, Sum


class Counting(Inquiry):
    """Asks three times; absorbs what comes."""

    phase = "training"

    def __init__(self) -> None:
        self.absorbed: list[Any] = []

    def ask(self, number: int) -> Ask | None:
        return Ask(options={"number": number}) if number < 3 else None

    def absorb(self, total: Sum) -> None:
        self.absorbed.append(total)

    def cost(self, ask: Ask, party: str) -> list[Any]:
        return []

    def planned_costs(self, party: str) -> list[list[Any]]:
        return []

    def state(self) -> Arrays:
        return {}

    def restore(self, state: Arrays) -> None:
        raise AssertionError

    def answer(self, ask: Any, party: Any, data: Any, local: Any, noise: Any) -> Any:
        raise AssertionError


class Sums:
    def __init__(self) -> None:
        self.asked: list[tuple[object, int]] = []

    def total(self, ask: Ask, sequence: int) -> Sum:
        self.asked.append((ask.options["number"], sequence))
        return Sum({"x": np.ones(1)}, 1.0, ("party-1",))


def test_asks_until_none_and_numbers_go_on_when_resumed() -> None:
    inquiry, sums = Counting(), Sums()
    seen = [ask.options["number"] for ask, _ in federate(inquiry, sums, number=1, sequence=5)]  # type: ignore[arg-type]
    assert sums.asked == [(1, 5), (2, 6)]
    assert seen == [1, 2]
    assert len(inquiry.absorbed) == 2
