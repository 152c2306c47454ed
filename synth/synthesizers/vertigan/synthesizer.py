"""VertiGAN over parties that hold different columns of the same people, and sound.

ask 0      pairs of columns                     answer  noisy tables; those across two parties in shares
ask 1 …    rows that the generator made up      answer  how the critic of the party's own columns would change them

The published objective is a sum of judgements of single parties' columns, so any coupling of them is as good as any
other: dependence across parties is not in it. Here the tables of all pairs of columns are released first, and every
lesson of the generator is about them; the critics, which see more than pairs but only within a party, come on top. A
person has a row at every party, so noise is for the critics of all of them together. Made-up rows are all that is
sent of the generator: neither its trunk nor anybody's branch.

Under a plan by rows a party's columns are all columns, and its critic counts by its share of the rows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import torch

from synth.budget import set_aside, synthesis_share
from synth.counting.ownership import sides_of, table_variances
from synth.counting.party_side import asked_bins, tables_of, with_noise
from synth.counting.schedule import candidate_pairs
from synth.encoding import contingency
from synth.encoding.bins import Bins
from synth.encoding.contingency import Clique
from synth.encoding.features import Features
from synth.encoding.number_bins import as_bins
from synth.encoding.records import Records
from synth.encoding.rows import Rows
from synth.errors import PlanError, ProtocolError
from synth.grid import grid_of
from synth.interface import Answer, Array, Arrays, Ask, Scalar, Sum, Synthesizer
from synth.messages.asked import Form, checked, require_names, whole_numbers
from synth.neural.central import CentralGenerator, Ints, Lesson
from synth.neural.model import settings_of
from synth.neural.question import asked_features
from synth.plan import Plan
from synth.privacy.calibration import calibrate_noise_multiplier, variance_for_share
from synth.privacy.dpsgd import StepPrivacy
from synth.privacy.events import CountNoise, Event, Unaccounted
from synth.privacy.noise import NoiseSource
from synth.statistics.histograms import Statistics
from synth.synthesizers.vertigan.critic import BlockCritic, Lessons
from synth.synthesizers.vertigan.published import PublishedVertigan
from synth.synthesizers.vertigan.settings import VertiganSettings
from synth.synthesizers.vertigan.tables import moments_of

BINS, CLIQUES, COUNTS, MADE_UP, SLOPES, MOMENTS = "bins", "cliques", "counts", "made_up", "slopes", "moments"


def vertigan(plan: Plan) -> Synthesizer:
    return PublishedVertigan(plan) if plan.profile == "faithful" else Vertigan(plan)


class Vertigan(Synthesizer):
    def __init__(self, plan: Plan) -> None:
        self.plan, self.settings = plan, settings_of(plan, VertiganSettings)
        self.central = CentralGenerator(plan, self.settings)
        self.cells, self.names = grid_of(plan), list(plan.modelled.released)
        if len(self.names) < 2:
            raise PlanError("'vertigan' needs two columns or more; this schema has fewer")
        self.pairs: list[Clique] = candidate_pairs(plan, self.names, self.settings.pairs, self.settings.tables_share)
        self.absorbed = 0
        self.moments: Array | None = None

    @property
    def critics(self) -> int:
        """Whose critics one person is in."""
        return len(self.plan.holders) if self.plan.partition == "columns" else 1

    @cached_property
    def noise(self) -> list[CountNoise] | None:
        """Of the tables; None without privacy."""
        if self.plan.privacy == "none":
            return None
        epsilon, delta = self.plan.privacy.epsilon, self.plan.privacy.delta
        share = synthesis_share(self.plan) * self.settings.tables_share
        variance = variance_for_share(epsilon, delta, share, len(self.pairs))
        return [replace(self._beside[0], queries=len(self.pairs), variance=variance)]

    @cached_property
    def privacy(self) -> StepPrivacy | None:
        """Of one step of a critic; None without privacy. Every party makes all of its noise: its blocks are its own."""
        if self.plan.privacy == "none" or self.noise is None:
            return None
        settings, beside = self.settings, [*self._beside, *self.noise]
        steps = settings.rounds * settings.critic_steps * self.critics
        epsilon, delta = self.plan.privacy.epsilon, self.plan.privacy.delta
        noise = calibrate_noise_multiplier(epsilon, delta, settings.sample_rate, steps, beside)
        return StepPrivacy(settings.l2_clip_norm, noise, settings.sample_rate, self._expected_batch(None))

    @cached_property
    def _beside(self) -> list[CountNoise]:
        return set_aside(self.plan, self.cells.queries)

    # ── aggregator ──

    def begin(self, statistics: Statistics, seed: int) -> None:
        self.central.begin(statistics, seed)

    def ask(self, number: int) -> Ask | None:
        if number > self.settings.rounds:
            return None
        options: dict[str, Scalar] = {"phase": self.phase, "round": number}
        if number == 0:
            cuts = as_bins(self.central.released.statistics.finest[0], self.central.features.cuts)
            return Ask({BINS: cuts.of_cell, CLIQUES: contingency.pack_cliques(self.pairs)}, options)
        codes = self.central.code_numbers(self.settings.made_up_rows, number)
        made_up = {MADE_UP: self.central.made_up(codes, number)}
        return Ask(self.central.features.to_arrays() | made_up, options)

    def absorb(self, total: Sum) -> None:
        if set(total.arrays) != {COUNTS if self.absorbed == 0 else SLOPES}:
            raise ProtocolError("the sum is not what was asked for; the parties run another version")
        if self.absorbed == 0:
            self.moments = self._counted(total)
            self.central.teach(Lesson(torch.from_numpy(self.moments)))
        elif self.moments is not None:
            codes = self.central.code_numbers(self.settings.made_up_rows, self.absorbed)
            slopes = torch.from_numpy(np.asarray(total.arrays[SLOPES], dtype=np.float32))
            if slopes.shape != (len(codes), self.central.features.width):
                raise ProtocolError("slopes of the wrong shape came back; the parties run another version")
            wanted = torch.from_numpy(self.moments)
            self.central.teach(Lesson(wanted, codes, -self.settings.critic_weight * slopes))
        self.absorbed += 1

    def _counted(self, total: Sum) -> Array:
        spans, sizes = self.central.features.spans, [span.width for span in self.central.features.spans]
        counts = total.arrays[COUNTS]
        if counts.shape != (contingency.cell_count(self.pairs, sizes),):
            raise ProtocolError("counts of the wrong shape came back; the parties run another version")
        event, statistics = self.noise[0] if self.noise else None, self.central.released.statistics
        whole, variance = statistics.over_the_same_rows(self.plan, total, np.rint(counts).astype(np.int64), event)
        tables = [table.astype(np.float64) for table in contingency.split(whole, self.pairs, sizes)]
        variances = table_variances(self.plan, self.names, self.pairs, variance)
        rows = max(float(np.mean([table.sum() for table in tables])), 1.0)
        moments = moments_of(tables, self.pairs, variances, spans, self.central.shares, rows)
        found: Array = moments.numpy()
        return found

    def sample(self, rows: int, seed: int, where: dict[str, str] | None = None) -> Records:
        return self.central.sample(rows, seed, where or {})

    def state(self) -> Arrays:
        moments = {} if self.moments is None else {MOMENTS: self.moments}
        return self.central.state() | moments | {"absorbed": np.array(self.absorbed)}

    def restore(self, state: Arrays) -> None:
        self.central.restore(state)
        self.moments, self.absorbed = state.get(MOMENTS), int(state["absorbed"])

    def losses(self) -> dict[str, float]:
        """How far the generator's pairs are from the released ones."""
        return {"distance": self.central.loss} if self.absorbed else {}

    # ── party ──

    def cost(self, ask: Ask, party: str) -> list[Event]:
        return self.planned_costs(party)[self._checked(ask)]

    def planned_costs(self, party: str) -> list[list[Event]]:
        settings = self.settings
        if self.privacy is None or self.noise is None:
            words = ["exact tables of pairs of columns", *["slopes of critics without noise"] * settings.rounds]
            return [[Unaccounted(what)] for what in words]
        steps: Event = replace(self.privacy.event(settings.critic_steps * self.critics), about=self.plan.unit)
        return [[self.noise[0]], *([steps] for _ in range(settings.rounds))]

    def answer(self, ask: Ask, party: str, data: Rows, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        weight = self.plan.share(party)
        if self._checked(ask) == 0:
            bins, event = self.counted_bins(ask), self.noise[0] if self.noise else None
            sides = sides_of(self.plan, party, bins, self.names, self.pairs)
            counts = with_noise(tables_of(data, bins, self.names, self.pairs), self.plan, event, noise, sides)
            return Answer({COUNTS: counts}, weight), local
        features, labels = self._made_up(ask)
        columns, by_columns = self.plan.columns_of(party), self.plan.partition == "columns"
        if not columns:
            return Answer({SLOPES: np.zeros((len(labels), features.width))}, weight), local
        critic = BlockCritic(features, columns)
        slopes, local = critic.judged(data.at_hand(), labels, self._lessons(party), local, noise)
        return Answer({SLOPES: slopes if by_columns else weight * slopes}, weight), local

    def _lessons(self, party: str) -> Lessons:
        settings = self.settings
        privacy = None if self.privacy is None else replace(self.privacy, expected_batch=self._expected_batch(party))
        batch = self._expected_batch(party)
        return Lessons(privacy, settings.sample_rate, batch, settings.critic_steps, settings.critic_learning_rate)

    def _expected_batch(self, party: str | None) -> float:
        rows = self.plan.declared_rows if party is None else self.plan.party(party).rows
        return self.settings.sample_rate * rows

    def _checked(self, ask: Ask) -> int:
        """The number of the ask; refuses what the plan does not contain."""
        (number,) = whole_numbers(ask, self.phase, "round")
        if number > self.settings.rounds:
            raise ProtocolError("an ask names no round of the plan; the aggregator runs another plan")
        if number == 0:
            self.counted_bins(ask)
        else:
            self._made_up(ask)
        return number

    def counted_bins(self, ask: Ask) -> Bins:
        """What a party counts by, before it is asked for tables across parties."""
        require_names(ask.arrays, (BINS, CLIQUES))
        found = checked(ask.arrays, CLIQUES, Form((len(self.pairs), 2), np.int64))
        if contingency.unpack_cliques(found) != self.pairs:
            raise ProtocolError("an ask counts other columns than the plan says; the aggregator runs another")
        return asked_bins(ask, self.cells, self.settings.bins)

    def _made_up(self, ask: Ask) -> tuple[Features, Ints]:
        features = asked_features(self.plan, self.settings.bins, ask.arrays)
        require_names(ask.arrays, [*features.to_arrays(), MADE_UP])
        form = Form((self.settings.made_up_rows, len(features.spans)), np.int64)
        labels = checked(ask.arrays, MADE_UP, form)
        if (labels < 0).any() or (labels >= [span.width for span in features.spans]).any():
            raise ProtocolError("an ask holds made-up rows with labels that do not exist")
        return features, labels
