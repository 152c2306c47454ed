"""The sections of a plan; see `plan` for the whole."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from synth.strict import Strict, is_absent

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
        description="Public row count for rates, steps and weights (of people, where a person is the unit; of steps, "
        "where a step is). Declared by the party, rounded as it likes; the true count is data and is never used.",
    )
    columns: list[str] | None = Field(
        None,
        exclude_if=lambda columns: columns is None,  # plans from before keep their digests
        description="With 'partition: columns': the columns that this party holds; [] for one that only deals.",
    )


class Privacy(Strict):
    """The budget every party spends on this plan: add or remove one row, or one person, at one party."""

    epsilon: float = Field(gt=0, le=100, description="Upper bound of the privacy loss ε, over everything released.")
    delta: float = Field(gt=0, lt=1, description="Probability δ of a larger loss; well below 1 / number of rows.")
    statistics_share: float = Field(
        0.2, gt=0, lt=1, description="Part of the budget (in zCDP's ρ) for the histogram that encodings are fitted on."
    )
    noise: Literal["shared", "local"] = Field(
        "shared",
        description="Counts and sums of gradients: each party adds a share of the noise and only the secure sum is "
        "private enough to open, or each adds all of it and trusts nobody.",
    )
    unit: Literal["row", "subject"] | None = Field(
        None,
        exclude_if=is_absent,
        description="Whose presence ε is about: one row, or one subject with all of its rows. Default: the subject "
        "where the schema names one, else the row. A sequence's own 'unit' comes first.",
    )
    rows_per_subject: int = Field(
        1,
        ge=1,
        le=64,
        exclude_if=lambda rows: rows == 1,
        description="Rows that are used of one subject, at most, where the schema has no sequence; which ones is the "
        "party's private coin.",
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
        None, ge=1, le=10**12, description="Rows (people, sequences) to draw. Default: as many as declared."
    )
    formats: list[Literal["csv", "parquet"]] = Field(["csv", "parquet"], min_length=1, description="Files to write.")
    formulas: Literal["are words"] | None = Field(
        None,
        exclude_if=lambda said: said is None,  # plans from before keep their digests
        description="Labels such as '=HYPERLINK(…)' are carried out by spreadsheets. Left out: a CSV file with such "
        "labels is not written. 'are words': it is, for programs that read it as text.",
    )
