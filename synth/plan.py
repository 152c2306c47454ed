"""What a consortium agrees to do: one document, approved by each party by its digest.

Everything privacy depends on is written here, so both sides compute noise, sampling rates and step counts from the
plan alone: the aggregator cannot ask for less noise, and a party's table cannot leak through a batch size.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from synth.assessment.schedule import class_count
from synth.assessment.settings import AssessmentSettings, GateSettings
from synth.constraints import Constraint, problem
from synth.errors import PlanError, SchemaError
from synth.family import Declaration
from synth.layout import Layout, layout_of
from synth.linkage import settings as linkage
from synth.linkage.settings import Linkage
from synth.mistakes import sentences
from synth.plan_sections import IN_WORDS, MOST_ASKS, MOST_PARTIES, PLAN_NAME, Output, SecureSum, StatisticsSettings
from synth.plan_sections import Mode as Mode
from synth.plan_sections import Party as Party
from synth.plan_sections import Privacy as Privacy
from synth.printable import escaped
from synth.schema import Schema
from synth.strict import Strict, digest_of
from synth.synthesizers.registry import Settings, default_settings
from synth.units import Unit, problem_of_unit

ROWS_SLACK = 2**10


class Plan(Strict):
    """A synthesis run, in full."""

    name: str = Field(pattern=PLAN_NAME, description="Name of the run.")
    parties: list[Party] = Field(
        min_length=1, max_length=MOST_PARTIES, description="Everybody who takes part, with declared row counts."
    )
    table: Schema = Field(alias="schema", description="The public schema, inline or as a path beside the plan.")
    synthesizer: Settings = Field(
        default_factory=default_settings, description="Model family and its settings. Default: marginals."
    )
    privacy: Privacy | Literal["none"] = Field(description="The budget, or the word 'none' for public data only.")
    statistics: StatisticsSettings = Field(default_factory=StatisticsSettings, description="The encoding histogram.")
    secure_sum: SecureSum = Field(default_factory=SecureSum, description="How sums are kept from the aggregator.")
    partition: Literal["rows", "columns"] = Field(
        "rows",
        exclude_if=lambda how: how == "rows",  # plans from before keep their digests
        description="What differs between the parties: the people (rows), or what is known of the same people.",
    )
    linkage: Linkage | None = Field(
        None,
        exclude_if=lambda section: section is None,
        description="With 'partition: columns': how rows of the same person find each other.",
    )
    constraints: list[Constraint] = Field(
        [], description="What is true of every row (impossible combinations, orders, relations); kept in the output."
    )
    output: Output = Field(default_factory=Output, description="The synthetic table to write.")
    assessment: AssessmentSettings | None = Field(
        None, description="Scores of the synthetic table on the parties' own rows. Left out: none, at no cost."
    )
    gate: GateSettings | None = Field(
        None,
        description="What the assessment must show before `fedsynth fetch` hands the table out. Left out: nothing.",
    )
    profile: Literal["rigorous", "faithful"] = Field(
        "rigorous",
        description="'rigorous' is sound end to end. 'faithful' repeats the published protocol with its gaps, for "
        "benchmarks on public data; its ε is nominal.",
    )

    @model_validator(mode="after")
    def _sound(self) -> Plan:
        names = [party.name for party in self.parties]
        if len(set(names)) != len(names):
            raise ValueError("party names must be distinct; rename the repeated one")
        if self.family.asks > MOST_ASKS:
            raise ValueError(f"the synthesizer would ask more than {MOST_ASKS:,} times; lower its rounds")
        self._check_privacy()
        self._check_secure_sum()
        self._check_assessment()
        if wrong := linkage.problem(self) or problem_of_unit(self) or problem(self.constraints, self.modelled):
            raise ValueError(wrong)
        return self

    def _check_privacy(self) -> None:
        if self.privacy == "none":
            return
        rows = self.declared_rows
        if self.privacy.delta >= 1 / rows:
            raise ValueError(
                f"privacy.delta {self.privacy.delta:g} is not below 1/rows = {1 / rows:.2g}: that would permit "
                f"publishing somebody's row outright. Use {rows**-1.5:.1g} or less"
            )

    def _check_secure_sum(self) -> None:
        total, minimum, colluders = len(self.parties), self.minimum_parties, self.secure_sum.colluders
        if minimum > total:
            raise ValueError(f"secure_sum.minimum_parties {minimum} is more than the {total} parties of the plan")
        if minimum < 2 and (self.secure_sum.statistics, self.secure_sum.updates) != ("plain", "plain"):
            raise ValueError(
                "a sum over one party hides nothing: with one party set secure_sum to "
                "{statistics: plain, updates: plain, colluders: 0}, else raise minimum_parties to 2 or more"
            )
        if colluders >= minimum:
            raise ValueError(
                f"secure_sum.colluders {colluders} must be fewer than the {minimum} parties whose sum may be opened"
            )
        plain = "plain" in (self.secure_sum.statistics, self.secure_sum.updates)
        if (plain or (self.family.gathers and self.profile == "rigorous")) and self.shares_noise:
            raise ValueError(
                "secure_sum 'plain' (or weighting 'similarity') shows the aggregator each party's counts with only a "
                "share of the noise; set privacy.noise to 'local', or use 'ckks' or 'masked' for statistics and updates"
            )

    def _check_assessment(self) -> None:
        if self.assessment is None:
            if self.gate is not None:
                raise ValueError("a gate judges the figures of an assessment; add an 'assessment' section")
            return
        if self.privacy != "none" and self.privacy.statistics_share + self.assessment.share >= 1:
            raise ValueError("privacy.statistics_share and assessment.share leave nothing for the synthesizer")
        predicts = {"minimum_auroc", "minimum_accuracy"}
        if self.gate is not None and predicts & set(self.gate.limits) and not class_count(self.modelled):
            raise ValueError(
                "gate.minimum_auroc and gate.minimum_accuracy need a categorical or boolean target, of two labels or "
                "more, and a column to predict it from; name one in the schema, or remove these limits"
            )

    @property
    def minimum_parties(self) -> int:
        return self.secure_sum.minimum_parties or len(self.parties)

    @property
    def noisy_parties(self) -> int:
        """Parties whose noise is surely in an opened sum and unknown to the adversary; the shares are cut for these."""
        return self.minimum_parties - self.secure_sum.colluders if self.shares_noise else 1

    @property
    def shares_noise(self) -> bool:
        return self.privacy != "none" and self.privacy.noise == "shared" and len(self.parties) > 1

    @property
    def unit(self) -> Unit:
        """Whose presence the plan's ε is about."""
        if (sequence := self.table.sequence) is not None:
            return "step" if sequence.unit == "step" else "subject"
        said = "row" if self.privacy == "none" else self.privacy.unit
        return said or ("row" if self.table.subject is None else "subject")

    @cached_property
    def layout(self) -> Layout | None:
        """How rows that belong together become one record; None where every row is one."""
        return layout_of(self.table, self.unit, 1 if self.privacy == "none" else self.privacy.rows_per_subject)

    @property
    def modelled(self) -> Schema:
        """The schema of the records that parties count and train on."""
        return self.layout.modelled if self.layout else self.table

    @property
    def records_per_unit(self) -> int:
        """Records that one row, person or step is in, at most: so often it is counted."""
        return self.layout.records_per_unit if self.layout else 1

    @property
    def family(self) -> Declaration:
        """What the plan's model family says of itself: the only thing that is known of it outside its own folder."""
        return self.synthesizer.declared(private=self.privacy != "none", faithful=self.profile == "faithful")

    @property
    def delta(self) -> float:
        """The δ that ε is computed at; without privacy there is no finite ε at any δ."""
        return 1e-5 if self.privacy == "none" else self.privacy.delta

    @property
    def rows(self) -> int:
        """Records of the synthetic table: rows, people or sequences."""
        drawn = self.declared_rows // self.table.sequence.length if self.unit == "step" and self.table.sequence else 0
        return self.output.rows or drawn or self.declared_rows

    @property
    def declared_rows(self) -> int:
        """Rows that all parties declare together; of the same people, as many as any of them declares."""
        return sum(party.rows for party in self.parties) if self.partition == "rows" else max(self._held_rows())

    def _held_rows(self) -> list[int]:
        return [party.rows for party in self.parties if party.columns] or [party.rows for party in self.parties]

    @property
    def holders(self) -> list[str]:
        """With 'partition: columns': the parties that hold any, by name."""
        return sorted(party.name for party in self.parties if party.columns)

    def columns_of(self, name: str) -> list[str]:
        """The released columns that a party holds, in schema order."""
        held = self.party(name).columns
        return [column for column in self.table.released if held is None or column in held]

    def owner(self, columns: Collection[str]) -> str | None:
        """Who holds all of these columns; None: nobody alone does, or everybody does."""
        return next((name for name in self.holders if set(columns) <= set(self.columns_of(name))), None)

    def party(self, name: str) -> Party:
        return next(party for party in self.parties if party.name == name)

    @property
    def largest_count(self) -> int:
        """A party may hold so many times the rows that it declares. What is beyond is cut before its noise is added:
        cut afterwards, when a sum has no more room, a count would keep less noise than was charged."""
        return ROWS_SLACK * max(party.rows for party in self.parties)

    def share(self, name: str) -> float:
        """A party's public weight in averages; the shares of all parties sum to 1."""
        if self.partition == "columns":
            return 1 / len(self.parties)
        return self.party(name).rows / self.declared_rows

    def digest(self) -> str:
        """What is left out of the plan is left out here: plans from before these sections keep their digests."""
        absent = {name for name in ("assessment", "gate") if getattr(self, name) is None}
        return digest_of(self.model_dump(mode="json", by_alias=True, exclude=absent))


def parse_plan(content: Any) -> Plan:
    """A plan from parsed YAML or JSON; every mistake becomes one sentence with its place."""
    try:
        return Plan.model_validate(content)
    except ValidationError as error:
        raise PlanError(escaped(sentences("plan", error, IN_WORDS))) from None


def parse_schema(content: Any) -> Schema:
    try:
        return Schema.model_validate(content)
    except ValidationError as error:
        raise SchemaError(escaped(sentences("schema", error, IN_WORDS))) from None
