"""GS-WGAN's privacy barrier, made sound: asks carry made-up rows, answers are noisy sums of critics' slopes at them.

ask     labels of rows that the generator made up, the encoding, the released shares                 (aggregator)
answer  Σ over the party's rows of the clipped slopes of that row's critic, and a share of the noise (party)
absorb  a regression finds the moments behind all slopes so far; the generator is taught them

NOTE[DIFF]: Chen, Orekondy and Fritz (2020) train K critics on disjoint shards and let one of them, drawn in secret,
answer for 32 rows; its memory and its 32 answers are not what the paper's accountant composes (`make bench-nominal`).
Here every row is a shard, its critic is found in closed form for every ask anew (`critics`), and all of them answer, so
one row more adds one vector of bounded length and no amplification is claimed. Such critics are the witness of a
maximum mean discrepancy: another distance than Wasserstein's.
NOTE[DIFF]: the generator is not pushed along the noisy slopes themselves but along those of the critic that explains
them best (`estimate`), for as many steps as it likes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt

import numpy as np
import torch
from torch import Tensor

from synth.budget import set_aside
from synth.encoding.cells import Cells
from synth.encoding.features import Features
from synth.encoding.records import Records
from synth.encoding.rows import Rows
from synth.errors import ProtocolError
from synth.interface import Answer, Arrays, Ask, Sum, Synthesizer
from synth.messages.asked import Form, checked, distribution, require_names, whole_numbers
from synth.neural.central import CentralGenerator, Lesson
from synth.neural.model import settings_of
from synth.neural.question import asked_features
from synth.plan import Plan
from synth.privacy.calibration import calibrate_noise_multiplier
from synth.privacy.dpsgd import LATTICE, StepPrivacy
from synth.privacy.events import Event, Unaccounted
from synth.privacy.noise import NoiseSource
from synth.statistics.histograms import Statistics
from synth.synthesizers.gswgan.critics import PrivateSlopes, RowCritics, summed
from synth.synthesizers.gswgan.estimate import SlopeRegression, spread_of
from synth.synthesizers.gswgan.published import PublishedGswgan
from synth.synthesizers.gswgan.settings import GswganSettings

MADE_UP, SHARES, SLOPES = "made_up", "shares", "slopes"
GRAM, CROSS = "regression/gram", "regression/cross"
LEAST_LIMIT = 1e-6  # of slopes: what no generator's rows come near, and far from where division loses digits
EXACT = 1e-6  # deviation of slopes without noise, in those of all rows: they are rounded


def gswgan(plan: Plan) -> Synthesizer:
    return PublishedGswgan(plan) if plan.profile == "faithful" else Gswgan(plan)


@dataclass(frozen=True, eq=False)
class SlopeQuestion:
    """A training ask, read."""

    number: int
    critics: RowCritics


class Gswgan(Synthesizer):
    def __init__(self, plan: Plan) -> None:
        self.plan, self.settings = plan, settings_of(plan, GswganSettings)
        self.central = CentralGenerator(plan, self.settings)
        self.absorbed = 0
        self.regression: SlopeRegression | None = None

    @cached_property
    def privacy(self) -> StepPrivacy | None:
        """Of one ask; None without privacy."""
        if self.plan.privacy == "none":
            return None
        epsilon, delta, shares = self.plan.privacy.epsilon, self.plan.privacy.delta, self.plan.noisy_parties
        beside = set_aside(self.plan, Cells(self.plan.modelled, self.plan.statistics.bins).queries)
        noise = calibrate_noise_multiplier(epsilon, delta, 1.0, self.settings.asks, beside, shares)
        return StepPrivacy(l2_clip_norm=1.0, noise_multiplier=noise, sample_rate=1.0, expected_batch=1.0, shares=shares)

    # ── aggregator ──

    def begin(self, statistics: Statistics, seed: int) -> None:
        self.central.begin(statistics, seed)
        self.regression = SlopeRegression.of(self.central.features.width)

    def ask(self, number: int) -> Ask | None:
        if number >= self.settings.asks:
            return None
        central = self.central
        codes = central.code_numbers(self.settings.made_up_rows, number)
        arrays = {MADE_UP: central.made_up(codes, number), SHARES: central.shares.double().numpy()}
        return Ask(central.features.to_arrays() | arrays, {"phase": self.phase, "round": number})

    def absorb(self, total: Sum) -> None:
        ask = self.ask(self.absorbed)
        if ask is None or self.regression is None or set(total.arrays) != {SLOPES}:
            raise ProtocolError("the sum is not what was asked for; the parties run another version")
        critics, covered = self._read(ask).critics, sum(self.plan.share(party) for party in total.parties)
        rows = covered * self.plan.declared_rows
        unit = critics.limit if self.privacy is None else critics.limit / LATTICE
        slopes = torch.from_numpy(np.asarray(total.arrays[SLOPES], dtype=np.float64)).view_as(critics.made_up) * unit
        self.regression.add(critics.made_up, slopes, critics.limit * self._deviation(rows, len(total.parties)))
        weights = self.regression.weights(spread_of(critics.shares, critics.scale), rows)
        moments = weights / torch.outer(critics.scale, critics.scale) / rows
        self.central.teach(Lesson(moments.float()))
        self.absorbed += 1

    def _deviation(self, rows: float, parties: int) -> float:
        """Of the noise in an opened sum, in limits."""
        if self.privacy is None:
            return EXACT * rows
        return self.privacy.noise_multiplier * sqrt(parties / self.privacy.shares)

    def sample(self, rows: int, seed: int, where: dict[str, str] | None = None) -> Records:
        return self.central.sample(rows, seed, where or {})

    def state(self) -> Arrays:
        if self.regression is None:
            return {}
        sums = {GRAM: self.regression.gram.numpy(), CROSS: self.regression.cross.numpy()}
        return self.central.state() | sums | {"absorbed": np.array(self.absorbed)}

    def restore(self, state: Arrays) -> None:
        if not state:
            return
        self.central.restore(state)
        self.regression = SlopeRegression(*(torch.from_numpy(state[name].copy()) for name in (GRAM, CROSS)))
        self.absorbed = int(state["absorbed"])

    def losses(self) -> dict[str, float]:
        """How far the generator's pairs are from those that the slopes speak of."""
        return {"distance": self.central.loss} if self.absorbed else {}

    # ── party ──

    def cost(self, ask: Ask, party: str) -> list[Event]:
        return self.planned_costs(party)[self._read(ask).number]

    def planned_costs(self, party: str) -> list[list[Event]]:
        event: Event = Unaccounted("slopes of critics without noise")
        if self.privacy is not None:
            event = replace(self.privacy.event(1), about=self.plan.unit)
        return [[event] for _ in range(self.settings.asks)]

    def answer(self, ask: Ask, party: str, data: Rows, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        critics, records = self._read(ask).critics, data.at_hand()
        if self.privacy is None:
            slopes = critics.slopes(summed(critics, records, clip=False)).numpy()
        else:
            slopes = PrivateSlopes(self.privacy, noise.child("slopes")).noisy_sum(critics, records)
        return Answer({SLOPES: slopes}, weight=self.plan.share(party)), local

    # ── both ──

    def _read(self, ask: Ask) -> SlopeQuestion:
        """The whole ask, or a refusal."""
        (number,) = whole_numbers(ask, self.phase, "round")
        if number >= self.settings.asks:
            raise ProtocolError(f"the plan has {self.settings.asks} asks; number {number} is none of them")
        features = asked_features(self.plan, self.settings.bins, ask.arrays)
        require_names(ask.arrays, [*features.to_arrays(), MADE_UP, SHARES])
        shares = _shares(features, ask)
        form = Form((self.settings.made_up_rows, len(features.spans)), np.int64)
        labels = checked(ask.arrays, MADE_UP, form)
        if (labels < 0).any() or (labels >= [span.width for span in features.spans]).any():
            raise ProtocolError("an ask holds made-up rows with labels that do not exist")
        critics = RowCritics(features, shares, labels, self.settings.loudest)
        if critics.limit < LEAST_LIMIT:
            raise ProtocolError("an ask holds made-up rows about which no critic has anything to say")
        return SlopeQuestion(number, critics)


def _shares(features: Features, ask: Ask) -> Tensor:
    """Released shares, of each block a distribution."""
    shares = checked(ask.arrays, SHARES, Form((features.width,)))
    for span in features.spans:
        distribution({SHARES: shares[span.slice]}, SHARES, span.width)
    return torch.from_numpy(shares)
