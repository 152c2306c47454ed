"""Scoring the synthetic table on the parties' own rows: one ask, whose answers are counts like the statistics'.

    table ─► bins, scorecard, row numbers ─► ask ─► Σ counts + noise shares ─► figures with intervals

What is asked is computed from what was released already, so it is public; what is answered has a price that no ask
can change: every row lies in one cell of each histogram, whatever bins, weights or row numbers a party is sent.
Parties score the rows that they trained on. What that flatters is bounded by ε: a table that depends little on any
row cannot fit them much better than their like (docs/decisions/0009-assessment-and-gate.md has figures).

Where parties hold different columns there are histograms of columns and pairs alone, the latter in shares where they
lie across two parties: a scorecard's outcome and a copied row are about whole rows.
"""

from __future__ import annotations

import numpy as np

from synth.assessment import figures, schedule
from synth.assessment.copies import row_numbers, share_by_chance
from synth.assessment.gate import judge
from synth.assessment.record import AssessmentRecord, Figure
from synth.assessment.scorecard import BUCKETS, HEAVIEST, Scorecard, train
from synth.budget import assessment_events
from synth.counting.ownership import sides_of, table_variances
from synth.counting.party_side import with_noise
from synth.encoding import contingency
from synth.encoding.bins import BinLimits, Bins, refine
from synth.encoding.cells import Cells
from synth.encoding.contingency import Clique
from synth.encoding.records import Records
from synth.encoding.rows import Rows
from synth.errors import PlanError, ProtocolError
from synth.interface import Answer, Array, Arrays, Ask, Inquiry, Sum
from synth.messages.asked import Form, checked, require_names, whole_numbers
from synth.plan import Plan
from synth.privacy.claims import claim_of
from synth.privacy.events import Event, Unaccounted, as_records
from synth.privacy.noise import NoiseSource
from synth.privacy.shares import summed_variance
from synth.statistics.histograms import Statistics

BIN_SIGMAS = 4.0  # rows that a bin should hold, in standard deviations of the noise of one count
COUNTS = "counts/"


class AssessmentInquiry(Inquiry):
    """Built as `AssessmentInquiry(plan)` on both sides; `begin` and `result` are the aggregator's alone."""

    phase = "assessment"

    def __init__(self, plan: Plan) -> None:
        if plan.assessment is None:
            raise PlanError("the plan has no 'assessment' section; nothing is to be scored")
        self.plan, self.settings = plan, plan.assessment
        self.cells = Cells(plan.modelled, plan.statistics.bins)
        self.names = list(plan.modelled.released)
        columns: list[Clique] = [(place,) for place in range(len(self.names))]
        self.cliques = {"columns": columns, "pairs": schedule.compared_pairs(plan)}
        self.whole_rows = plan.partition == "rows"
        self.classes = schedule.class_count(plan.modelled) if self.whole_rows else 0
        self.judged = schedule.judged_classes(plan.modelled) if self.whole_rows else []
        self.events = assessment_events(plan)
        self.question: Arrays = {}
        self.counts: Arrays = {}  # opened sums, by part
        self.coverage = 0.0
        self.parties: int | None = None  # in the opened sums; None: not opened yet

    # Aggregator

    def begin(self, statistics: Statistics, rows: Records) -> None:
        """Turn the drawn table into a question, unless an interrupted run has done so already."""
        if self.question:
            return
        sigma = max((self._variance(part) for part in self.cliques), default=0.0) ** 0.5
        limits = BinLimits(self.settings.bins, self.settings.bins, BIN_SIGMAS * sigma, BIN_SIGMAS * sigma)
        bins = refine(self.cells, statistics.counts, statistics.variance**0.5, limits)
        self.question = {"bins": bins.of_cell}
        if self.whole_rows:
            self.question["rows"] = np.sort(row_numbers(self.cells, rows))
        if self.classes:
            card = train(self.cells, rows, self._target, self.classes, self.judged)
            self.question |= {"weights": card.weights, "edges": card.edges}

    def ask(self, number: int) -> Ask | None:
        if number > 0:
            return None
        if not self.question:
            raise ProtocolError("the assessment was asked for before there was a table; begin with one")
        return Ask(dict(self.question), {"phase": self.phase})

    def absorb(self, total: Sum) -> None:
        if set(total.arrays) != set(schedule.queries(self.plan)):
            raise ProtocolError("the assessment's counts must come back, all of them; the parties run another version")
        for part, counts in total.arrays.items():
            if counts.shape != (self._size(part, Bins(self.cells, self.question["bins"])),):
                raise ProtocolError("scores of the wrong shape came back; the parties run another version")
        self.counts = {part: np.rint(counts).astype(np.int64) for part, counts in total.arrays.items()}
        self.coverage, self.parties = total.weight, len(total.parties)

    def result(self, rows: Records, seed: int) -> AssessmentRecord:
        """The figures of the table `rows`, and what the plan's gate says of them."""
        if not self.counts:
            raise ProtocolError("the assessment's figures were used before the parties were asked")
        found = self._figures(rows, seed)
        events = self.whole_cost(self.plan.parties[0].name)
        return AssessmentRecord(
            coverage=round(min(self.coverage, 1.0), 4),
            figures=found,
            cost=as_records(events),
            epsilon=claim_of(events, self.plan.delta).epsilon,
            verdicts=judge(self.plan.gate, found),
        )

    def state(self) -> Arrays:
        counts = {COUNTS + part: array for part, array in self.counts.items()}
        parties = np.array(len(self.plan.parties) if self.parties is None else self.parties)
        return self.question | counts | ({"coverage": np.array(self.coverage), "parties": parties} if counts else {})

    def restore(self, state: Arrays) -> None:
        state = dict(state)
        self.coverage = float(state.pop("coverage", 0.0))
        self.parties = int(state.pop("parties", len(self.plan.parties)))
        self.counts = {key.removeprefix(COUNTS): value for key, value in state.items() if key.startswith(COUNTS)}
        self.question = {key: value for key, value in state.items() if not key.startswith(COUNTS)}

    # Party

    def cost(self, ask: Ask, party: str) -> list[Event]:
        self._checked(ask)
        return self.whole_cost(party)

    def planned_costs(self, party: str) -> list[list[Event]]:
        return [list(self.events.values()) or [Unaccounted("exact scores of the synthetic table")]]

    def answer(self, ask: Ask, party: str, data: Rows, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        bins = self._checked(ask)
        counts = self._counted(data, bins)
        if self.whole_rows:
            counts["outcomes"] = self._outcomes(ask.arrays, data)
        for part, event in self.events.items():
            sides = sides_of(self.plan, party, bins, self.names, self.cliques.get(part, []))
            counts[part] = with_noise(counts[part], self.plan, event, noise.child(part), sides)
        return Answer(counts, weight=self.plan.share(party)), local

    def _checked(self, ask: Ask) -> Bins:
        """The bins of an ask that can be answered; refuses any other."""
        whole_numbers(ask, self.phase)
        rows = ["rows"] if self.whole_rows else []
        require_names(ask.arrays, ["bins", *rows, *(["weights", "edges"] if self.classes else [])])
        if self.whole_rows:
            checked(ask.arrays, "rows", Form((self.plan.rows,), np.uint64))
        if self.classes:
            weights = checked(ask.arrays, "weights", Form((self.classes, self.cells.size)))
            edges = checked(ask.arrays, "edges", Form((len(self.judged), BUCKETS - 1)))
            if np.abs(weights).max() > HEAVIEST or (np.diff(edges) < 0).any():
                raise ProtocolError("a scorecard's weights are beyond reason, or its buckets out of order")
        return Bins(self.cells, checked(ask.arrays, "bins", Form((self.cells.size,), np.int64)))

    def counted_bins(self, ask: Ask) -> Bins:
        """What a party counts by, before it is asked for tables across parties."""
        return self._checked(ask)

    def _counted(self, data: Rows, bins: Bins) -> Arrays:
        return {part: data.tables(bins, self.names, cliques) for part, cliques in self.cliques.items() if cliques}

    def _outcomes(self, asked: Arrays, data: Rows) -> Array:
        found: Array = np.sum([self._outcomes_of(asked, piece) for piece in data.pieces()], axis=0)
        return found

    def _outcomes_of(self, asked: Arrays, data: Records) -> Array:
        """All histograms of outcomes, one after the other; a row lies in one cell of each."""
        histograms = []
        flags = [np.isin(row_numbers(self.cells, data), asked["rows"])]
        if self.classes:
            card, labels = Scorecard(asked["weights"], asked["edges"]), data.columns[self._target]
            probabilities = card.probabilities(self.cells, data, self._target)
            for each, bucket in zip(self.judged, card.buckets(probabilities, self.judged), strict=True):
                histograms.append(np.bincount((labels == each) * BUCKETS + bucket, minlength=2 * BUCKETS))
            flags = [probabilities.argmax(axis=1) == labels, *flags]
        histograms += [np.bincount(flag.astype(np.int64), minlength=2) for flag in flags]
        return np.concatenate(histograms).astype(np.int64)

    # Post-processing of what was released

    def _figures(self, rows: Records, seed: int) -> dict[str, Figure]:
        bins = Bins(self.cells, self.question["bins"])
        made = self._counted(rows, bins)
        found, tables = {}, {part: self._tables(part, self.counts[part], bins) for part in made}
        real_rows = figures.row_count(tables["columns"])
        for part, name in (("columns", "tvd_one_way"), ("pairs", "tvd_two_way")):
            if part in tables:
                synthetic = self._tables(part, made[part], bins)
                each = table_variances(self.plan, self.names, self.cliques[part], self._variance(part))
                found[name] = figures.variation(tables[part], synthetic, real_rows, each)
        return found | (self._outcome_figures(rows, seed, real_rows) if self.whole_rows else {})

    def _outcome_figures(self, rows: Records, seed: int, real_rows: float) -> dict[str, Figure]:
        found = {}
        curves = len(self.judged) * 2 * BUCKETS
        outcomes, noise = self.counts["outcomes"].astype(np.float64), self._variance("outcomes")
        flags = dict(zip(schedule.flags(self.plan.modelled), outcomes[curves:].reshape(-1, 2), strict=True))
        if self.classes:
            found["auroc"] = figures.auroc(outcomes[:curves].reshape(-1, 2, BUCKETS), noise, seed)
            found["accuracy"] = figures.share(flags["right"], noise)
        found["copy_share"] = figures.share(flags["copied"], noise)
        by_chance = share_by_chance(self.cells, rows, seed)
        found["copy_excess"] = figures.excess(found["copy_share"], by_chance, real_rows, len(rows))
        return found

    def _tables(self, part: str, counts: Array, bins: Bins) -> list[Array]:
        return list(contingency.split(counts, self.cliques[part], self._sizes(bins)))

    def _size(self, part: str, bins: Bins) -> int:
        if part == "outcomes":
            return len(self.judged) * 2 * BUCKETS + 2 * len(schedule.flags(self.plan.modelled))
        return contingency.cell_count(self.cliques[part], self._sizes(bins))

    def _sizes(self, bins: Bins) -> list[int]:
        return [bins.size(name) for name in self.names]

    def _variance(self, part: str) -> float:
        """Of the noise in one count of the sum."""
        return summed_variance(self.plan, self.events[part], self.parties) if part in self.events else 0.0

    @property
    def _target(self) -> str:
        if self.plan.modelled.target is None:
            raise ProtocolError("the schema names no target, so nothing predicts it")
        return self.plan.modelled.target
