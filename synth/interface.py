"""The whole contract between the parties, the aggregator and a model family, on one page.

Everything that crosses between institutions is an `Ask` or an `Answer`: named arrays and a few scalars. An `Inquiry`
is a series of asks; the loop that drives it (aggregator/federate.py) knows no round counts, phases or model families:

    while (ask := inquiry.ask(number)) is not None:
        inquiry.absorb(exchange(ask, number))

Inquiries: the statistics of the encoding (synth/statistics.py) and every `Synthesizer` (synth/synthesizers/):
  ctgan       ask = weights, answer = share × change of the weights after DP-SGD
  marginals   ask = cliques, answer = noisy counts
Asks are self-contained: a party needs the approved plan, its rows, its own `local` arrays and the ask, nothing else,
so a restarted party answers as if nothing had happened.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy.typing as npt

if TYPE_CHECKING:
    from synth.encoding.records import Records
    from synth.privacy.events import Event
    from synth.privacy.noise import NoiseSource
    from synth.statistics import Statistics

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
Scalar = bool | int | float | str


@dataclass(frozen=True)
class Ask:
    """One question, the same to every party: all of it is what they vouch to have been asked."""

    arrays: Arrays = field(default_factory=dict)  # weights, encodings; empty for counting queries
    options: dict[str, Scalar] = field(default_factory=dict)  # phase, columns, steps
    combine: Literal["sum", "gather"] = (
        "sum"  # "gather": the aggregator sees each answer, so each must be private alone
    )


@dataclass(frozen=True)
class Answer:
    """What a party releases. Under `combine="sum"` arrays and weight are added over the parties and only then seen."""

    arrays: Arrays
    weight: float
    parties: int | None = None  # whose answers were added, as seen by the aggregator; None: every party's


class Inquiry(ABC):
    """A series of questions. The first two methods run at the aggregator, the last two at a party."""

    @abstractmethod
    def ask(self, number: int) -> Ask | None:
        """The next question, counted from 0 within this inquiry; None when there is nothing left to ask."""

    @abstractmethod
    def absorb(self, answers: Answer | dict[str, Answer]) -> None:
        """Digest a sum (combine="sum") or the answers by party (combine="gather")."""

    @abstractmethod
    def cost(self, ask: Ask, party: str) -> list[Event]:
        """What answering spends of the party's budget; a function of plan and ask only, charged before computing."""

    @abstractmethod
    def answer(self, ask: Ask, party: str, data: Records, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        """Compute the answer and the party's new local arrays (optimizer state and the like; they never leave)."""

    @abstractmethod
    def whole_cost(self, party: str) -> list[Event]:
        """Everything this inquiry will ever spend at the party, known before it starts; reserved on approval."""


class Synthesizer(Inquiry):
    """An inquiry that ends in a generator. Built as `Family(plan)` on both sides; `begin` is the aggregator's alone."""

    @abstractmethod
    def begin(self, statistics: Statistics, seed: int) -> None:
        """Fix encodings and initial weights from what the statistics inquiry released."""

    @abstractmethod
    def sample(self, rows: int, seed: int, where: dict[str, str] | None = None) -> Records:
        """Draw synthetic rows, without calling any party; `where` fixes discrete columns by label."""

    @abstractmethod
    def state(self) -> Arrays:
        """All the aggregator needs to continue, or to sample: no training rows, no pickle."""

    @abstractmethod
    def restore(self, state: Arrays) -> None:
        """Continue from `state`."""

    @abstractmethod
    def progress(self) -> tuple[int, int]:
        """Asks absorbed and asks in all, for people who wait."""

    def losses(self) -> dict[str, float]:
        """Latest losses for display; computed from released quantities only."""
        return {}
