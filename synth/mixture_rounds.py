"""Leitner's Algorithm 4.1, as published: mixtures averaged by rank for five rounds, then pooled and refitted.

For benchmarks on public data only. Parameters of ten modes per column and party leave exactly, and a narrow mode can
sit on one person's value, so the cost of every ask is `Unaccounted` and no end-to-end ε exists.
"""

from __future__ import annotations

import numpy as np

from synth.asked import Form, exactly, only_for, whole_numbers
from synth.encoding.mixtures import COMPONENTS, Mixture, average_by_rank, by_rank, fit_local, pool_and_refit
from synth.encoding.records import Records
from synth.errors import ProtocolError
from synth.interface import Answer, Array, Arrays, Ask
from synth.plan import MIXTURE_ROUNDS, Plan
from synth.privacy.events import Event, Unaccounted
from synth.privacy.noise import NoiseSource
from synth.statistics import Statistics, StatisticsInquiry


class MixtureInquiry(StatisticsInquiry):
    """Every answer is seen by the aggregator, as in the thesis."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.event = None  # counts are exact, too
        self.numeric = list(plan.table.numeric)
        self.averaged: list[Mixture] = []  # by numeric column, after the first round
        self.rounds = 0

    def ask(self, number: int) -> Ask | None:
        if number == MIXTURE_ROUNDS:
            return None
        start = {name: by_rank(mixture) for name, mixture in zip(self.numeric, self.averaged, strict=False)}
        return Ask(start, {"phase": "statistics", "round": number}, combine="gather")

    def absorb(self, answers: Answer | dict[str, Answer]) -> None:
        if isinstance(answers, Answer):
            raise ProtocolError("Algorithm 4.1 compares the parties' mixtures; they must be gathered, not summed")
        modes = {party: [answer.arrays[f"modes/{name}"] for name in self.numeric] for party, answer in answers.items()}
        total = [sum(party[i] for party in modes.values()) for i in range(len(self.numeric))]
        self.averaged = [average_by_rank(np.asarray(t), len(answers)) for t in total]
        self.rounds += 1
        if self.rounds < MIXTURE_ROUNDS:
            return
        by_party = {party: self.grid.to_coarse(self._checked(answer), 0.0) for party, answer in answers.items()}
        counts = sum(by_party.values(), np.zeros(self.cells.size, dtype=np.int64))
        covered = sum(answer.weight for answer in answers.values())
        self.statistics = Statistics(self.cells, counts, 0.0, covered, by_party, self._pooled(modes))

    def whole_cost(self, party: str) -> list[Event]:
        return [Unaccounted("exact mixture parameters and counts (Algorithm 4.1)")] * MIXTURE_ROUNDS

    def cost(self, ask: Ask, party: str) -> list[Event]:
        (number,) = whole_numbers(ask, "statistics", "round")
        if number >= MIXTURE_ROUNDS:
            raise ProtocolError(f"Algorithm 4.1 has rounds 0 to {MIXTURE_ROUNDS - 1}; round {number} is none of them")
        only_for(ask, party)
        exactly(ask.arrays, dict.fromkeys(self.numeric, Form((3, COMPONENTS))) if number else {})
        for _, variances, weights in ask.arrays.values():
            if variances.min() <= 0 or weights.min() < 0 or weights.sum() <= 0:
                raise ProtocolError("an averaged mixture has a mode without width, or no weight")
        return self.whole_cost(party)[:1]

    def answer(self, ask: Ask, party: str, data: Records, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        start = {name: average_by_rank(array, 1) for name, array in ask.arrays.items()}
        seed = int(noise.child("k-means").uint64(1)[0]) % 2**32
        values = {name: data.columns[name].astype(np.float64) for name in self.numeric}
        arrays = {f"modes/{n}": by_rank(fit_local(column, start.get(n), seed=seed)) for n, column in values.items()}
        counts = self.grid.released(self.grid.count(data))
        return Answer(arrays | {"counts": counts}, weight=self.plan.share(party)), local

    def _pooled(self, modes: dict[str, list[Array]]) -> dict[str, Mixture]:
        rows = [self.plan.party(party).rows for party in modes]
        pooled = {}
        for i, name in enumerate(self.numeric):
            pooled[name] = pool_and_refit([average_by_rank(party[i], 1) for party in modes.values()], rows)
        return pooled


def statistics_inquiry(plan: Plan) -> StatisticsInquiry:
    """The rigorous histogram, or what the thesis did."""
    return MixtureInquiry(plan) if plan.averages_mixtures else StatisticsInquiry(plan)
