"""The whole contract between the parties, the aggregator and a model family, on one page.

Everything that crosses between institutions is an `Ask` or an `Answer`: named arrays and a few scalars. What the
aggregator sees of the answers is a `Sum`. An `Inquiry` is a series of asks; the loop that drives it
(aggregator/federate.py) knows no round counts, phases or model families:

    while (ask := inquiry.ask(number)) is not None:
        inquiry.absorb(exchange(ask, number))

Inquiries: the statistics of the encoding (synth/statistics/), every `Synthesizer` (synth/synthesizers/) and the
assessment (synth/assessment/):
  networks           ask = weights, answer = noisy sum of one step's gradients, or share × change after DP-SGD
  marginals, bayes   ask = cliques, answer = noisy counts
Asks are self-contained: a party needs the approved plan, its rows, its own `local` arrays and the ask, nothing else,
so a restarted party answers as if nothing had happened.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from synth.encoding.records import Records
    from synth.encoding.rows import Rows
    from synth.privacy.events import Event
    from synth.privacy.noise import NoiseSource
    from synth.statistics.histograms import Statistics

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
Scalar = bool | int | float | str
Combine = Literal["sum", "gather"]  # "gather": the aggregator sees each answer, so each must be private alone


@dataclass(frozen=True)
class Ask:
    """One question, the same to every party: all of it is what they vouch to have been asked."""

    arrays: Arrays = field(default_factory=dict)  # weights, encodings; empty for counting queries
    options: dict[str, Scalar] = field(default_factory=dict)  # phase, columns, steps
    combine: Combine = "sum"


@dataclass(frozen=True)
class Answer:
    """What a party releases. Under `combine="sum"` arrays and weight are added over the parties and only then seen."""

    arrays: Arrays
    weight: float


@dataclass(frozen=True)
class Sum:
    """What the aggregator sees of the answers to one ask: their sum, and each of them only where they were gathered."""

    arrays: Arrays
    weight: float
    parties: tuple[str, ...]  # whose answers are in it
    by_party: Mapping[str, Answer] = field(default_factory=dict)  # empty under `combine="sum"`

    @classmethod
    def of(cls, answers: Mapping[str, Answer], combine: Combine = "sum") -> Sum:
        """The sum of answers that lie open."""
        names = next(iter(answers.values())).arrays
        arrays = {name: np.sum([answer.arrays[name] for answer in answers.values()], axis=0) for name in names}
        weight = sum(answer.weight for answer in answers.values())
        return cls(arrays, weight, tuple(answers), answers if combine == "gather" else {})


class Inquiry(ABC):
    """A series of questions of one phase. Asking and absorbing happen at the aggregator, the rest on both sides."""

    phase: ClassVar[str]  # of the plan's programme, which says how many asks it has and how they are combined

    @abstractmethod
    def ask(self, number: int) -> Ask | None:
        """The next question, counted from 0 within this inquiry; None when there is nothing left to ask."""

    @abstractmethod
    def absorb(self, total: Sum) -> None:
        """Digest what came back to the latest ask."""

    @abstractmethod
    def cost(self, ask: Ask, party: str) -> list[Event]:
        """What answering spends of the party's budget; a function of plan and ask only, charged before computing."""

    @abstractmethod
    def answer(self, ask: Ask, party: str, data: Rows, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        """Compute the answer and the party's new local arrays (optimizer state and the like; they never leave)."""

    @abstractmethod
    def planned_costs(self, party: str) -> list[list[Event]]:
        """What each ask of this inquiry will cost the party, in order: known before it starts, and never otherwise."""

    def whole_cost(self, party: str) -> list[Event]:
        """Everything this inquiry will ever spend at the party; reserved on approval."""
        return [event for events in self.planned_costs(party) for event in events]

    @abstractmethod
    def state(self) -> Arrays:
        """All the aggregator needs to continue, or to use the result: no training rows, no pickle."""

    @abstractmethod
    def restore(self, state: Arrays) -> None:
        """Continue from `state`."""


class Synthesizer(Inquiry):
    """An inquiry that ends in a generator. Built as `Family(plan)` on both sides; `begin` is the aggregator's alone."""

    phase = "training"

    @abstractmethod
    def begin(self, statistics: Statistics, seed: int) -> None:
        """Fix encodings and initial weights from what the statistics inquiry released."""

    @abstractmethod
    def sample(self, rows: int, seed: int, where: dict[str, str] | None = None) -> Records:
        """Draw synthetic rows, without calling any party; `where` fixes discrete columns by label."""

    def losses(self) -> dict[str, float]:
        """Latest losses for display; computed from released quantities only."""
        return {}
