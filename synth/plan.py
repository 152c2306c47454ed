"""What a consortium agrees to do: one document, approved by each party by its digest.

Everything privacy depends on is written here, so both sides compute noise, sampling rates and step counts from the
plan alone: the aggregator cannot ask for less noise, and a party's table cannot leak through a batch size.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from synth.assessment.schedule import class_count
from synth.assessment.settings import AssessmentSettings, GateSettings
from synth.constraints import Constraint, problem
from synth.errors import PlanError, SchemaError
from synth.family import Declaration
from synth.linkage import settings as linkage
from synth.linkage.settings import Linkage
from synth.mistakes import sentences
from synth.printable import escaped
from synth.schema import Schema, Strict, digest_of
from synth.synthesizers.registry import Settings, default_settings

Mode = Literal["masked", "ckks", "plain"]
PARTY_NAME, PLAN_NAME = r"^[a-z][a-z0-9-]{0,30}$", r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
IN_WORDS = {
    PARTY_NAME: "a party's name is lower-case letters, digits and hyphens, begins with a letter and has at most 31",
    PLAN_NAME: "a plan's name is letters, digits, points, hyphens and underscores, at most 63",
}
MOST_ASKS = 100_000  # of a run; everybody writes them down one by one
MOST_PARTIES = 1000  # whose shares of the noise are accounted for; see synth/privacy/losses.py


class Party(Strict):
    """An institution that takes part."""

    name: str = Field(pattern=PARTY_NAME, description="Short lower-case name, unique in the plan.")
    rows: int = Field(
        ge=2,
        le=10**12,
        description="Public row count for rates, steps and weights. Declared by the party, rounded as it likes; "
        "the true count is data and is never used for them.",
    )
    columns: list[str] | None = Field(
        None,
        exclude_if=lambda columns: columns is None,  # plans from before keep their digests
        description="With 'partition: columns': the columns that this party holds; [] for one that only deals.",
    )


class Privacy(Strict):
    """The budget every party spends on this plan: add or remove one row at one party."""

    epsilon: float = Field(gt=0, le=100, description="Upper bound of the privacy loss ε, over everything released.")
    delta: float = Field(gt=0, lt=1, description="Probability δ of a larger loss; well below 1 / number of rows.")
    statistics_share: float = Field(
        0.1, gt=0, lt=1, description="Part of the budget (in zCDP's ρ) for the histogram that encodings are fitted on."
    )
    noise: Literal["shared", "local"] = Field(
        "shared",
        description="Counts and sums of gradients: each party adds a share of the noise and only the secure sum is "
        "private enough to open, or each adds all of it and trusts nobody.",
    )


class SecureSum(Strict):
    """How sums are formed without showing anybody's summand."""

    statistics: Mode = Field("ckks", description="For counts: encrypted under the parties' key, masked, or plain.")
    updates: Mode = Field("masked", description="For model updates: masked, encrypted, or plain.")
    minimum_parties: int | None = Field(
        None, ge=1, description="Fewest parties whose sum may be opened. Default: all of them."
    )
    colluders: int = Field(
        1, ge=0, description="Parties that may pool what they know with the aggregator without weakening the noise."
    )


class StatisticsSettings(Strict):
    """The one histogram release that encodings, conditions and quantiles are fitted on."""

    bins: int = Field(128, ge=8, le=4096, description="Cells per numeric column over its declared bounds.")


class Output(Strict):
    """The synthetic table."""

    rows: int | None = Field(
        None, ge=1, le=10**12, description="Rows to draw. Default: the sum of the declared row counts."
    )
    formats: list[Literal["csv", "parquet"]] = Field(["csv", "parquet"], min_length=1, description="Files to write.")
    formulas: Literal["are words"] | None = Field(
        None,
        exclude_if=lambda said: said is None,  # plans from before keep their digests
        description="Labels such as '=HYPERLINK(…)' are carried out by spreadsheets. Left out: a CSV file with such "
        "labels is not written. 'are words': it is, for programs that read it as text.",
    )


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
        if wrong := linkage.problem(self) or problem(self.constraints, self.table):
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
        if self.gate is not None and predicts & set(self.gate.limits) and not class_count(self.table):
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
    def family(self) -> Declaration:
        """What the plan's model family says of itself: the only thing that is known of it outside its own folder."""
        return self.synthesizer.declared(private=self.privacy != "none", faithful=self.profile == "faithful")

    @property
    def delta(self) -> float:
        """The δ that ε is computed at; without privacy there is no finite ε at any δ."""
        return 1e-5 if self.privacy == "none" else self.privacy.delta

    @property
    def rows(self) -> int:
        """Rows of the synthetic table."""
        return self.output.rows or self.declared_rows

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
