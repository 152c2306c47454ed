"""Leitner's Algorithm 4.1, as published: mixtures averaged by rank for five rounds, then pooled and refitted.

For benchmarks on public data only. Parameters of ten modes per column and party leave exactly, and a narrow mode can
sit on one person's value, so the cost of every ask is `Unaccounted` and no end-to-end ε exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from synth.encoding.mixtures import COMPONENTS, Mixture, average_by_rank, by_rank, fit_local, pool_and_refit
from synth.encoding.rows import Rows
from synth.errors import ProtocolError
from synth.family import MIXTURE_ROUNDS
from synth.interface import Answer, Arrays, Ask, Sum
from synth.messages.asked import Form, exactly, whole_numbers
from synth.plan import Plan
from synth.privacy.events import Event, Unaccounted
from synth.privacy.noise import NoiseSource
from synth.statistics.histograms import StatisticsInquiry

MODES, AVERAGED = "modes/", "averaged/"


class MixtureInquiry(StatisticsInquiry):
    """Every answer is seen by the aggregator, as in the thesis."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.event = None  # counts are exact, too
        self.numeric = list(plan.modelled.numeric)
        self.averaged: Arrays = {}  # by numeric column, after the first round
        self.rounds = 0

    def ask(self, number: int) -> Ask | None:
        if number >= MIXTURE_ROUNDS:
            return None
        return Ask(self.averaged, {"phase": self.phase, "round": number}, combine="gather")

    def absorb(self, total: Sum) -> None:
        sums = {name: total.arrays[MODES + name] for name in self.numeric}
        self.averaged = {name: by_rank(average_by_rank(each, len(total.parties))) for name, each in sums.items()}
        self.rounds += 1
        if self.rounds == MIXTURE_ROUNDS:
            super().absorb(total)
            self.statistics = replace(self.result(), mixtures=self._pooled(total.by_party))

    def state(self) -> Arrays:
        """Exactly what is asked next, to the bit: parties answer no other question under its number."""
        averaged = {AVERAGED + name: array for name, array in self.averaged.items()}
        return super().state() | averaged | {"rounds": np.array(self.rounds)}

    def restore(self, state: Arrays) -> None:
        super().restore(state)
        self.averaged = {key.removeprefix(AVERAGED): value for key, value in state.items() if key.startswith(AVERAGED)}
        self.rounds = int(state.get("rounds", np.array(MIXTURE_ROUNDS)))

    def planned_costs(self, party: str) -> list[list[Event]]:
        return [[Unaccounted("exact mixture parameters and counts (Algorithm 4.1)")]] * MIXTURE_ROUNDS

    def cost(self, ask: Ask, party: str) -> list[Event]:
        (number,) = whole_numbers(ask, self.phase, "round")
        if number >= MIXTURE_ROUNDS:
            raise ProtocolError(f"Algorithm 4.1 has rounds 0 to {MIXTURE_ROUNDS - 1}; round {number} is none of them")
        exactly(ask.arrays, dict.fromkeys(self.numeric, Form((3, COMPONENTS))) if number else {})
        for _, variances, weights in ask.arrays.values():
            if variances.min() <= 0 or weights.min() < 0 or weights.sum() <= 0:
                raise ProtocolError("an averaged mixture has a mode without width, or no weight")
        return self.planned_costs(party)[number]

    def answer(self, ask: Ask, party: str, data: Rows, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        start = {name: average_by_rank(array, 1) for name, array in ask.arrays.items()}
        seed = int(noise.child("k-means").uint64(1)[0]) % 2**32
        values = {name: data.at_hand().columns[name].astype(np.float64) for name in self.numeric}
        arrays = {MODES + n: by_rank(fit_local(column, start.get(n), seed=seed)) for n, column in values.items()}
        counts = self.grid.released(data.histograms(self.grid))
        return Answer(arrays | {"counts": counts}, weight=self.plan.share(party)), local

    def _pooled(self, answers: Mapping[str, Answer]) -> dict[str, Mixture]:
        rows = [self.plan.party(party).rows for party in answers]
        return {
            name: pool_and_refit([average_by_rank(each.arrays[MODES + name], 1) for each in answers.values()], rows)
            for name in self.numeric
        }


def statistics_inquiry(plan: Plan) -> StatisticsInquiry:
    """The rigorous histogram, or what the thesis did."""
    return MixtureInquiry(plan) if plan.family.statistics == "mixture rounds" else StatisticsInquiry(plan)
