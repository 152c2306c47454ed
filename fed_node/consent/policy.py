"""What an institution allows whatever a consortium plans: its own file, its own words, read by nobody else.

A policy is a floor, not a consent. A plan that breaks it cannot be approved; a plan that keeps it still waits for
somebody to approve it, unless the policy itself says that nobody needs to.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import yaml
from pydantic import Field, StringConstraints, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from fed_node.ledger.book import Budget
from synth.errors import InputError
from synth.plan import Mode, Plan
from synth.schema import Strict

Noise: TypeAlias = Literal["local", "shared"]
SchemaDigest: TypeAlias = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class Policy(Strict):
    """The limits of one party. Every plan is held against all of them."""

    maximum_epsilon_per_run: float = Field(gt=0, allow_inf_nan=False, description="Largest ε one plan may spend here.")
    maximum_epsilon_in_total: float = Field(
        gt=0, allow_inf_nan=False, description="Largest ε that all runs on the dataset may spend together, ever."
    )
    maximum_delta: float = Field(
        gt=0, lt=1, description="Largest δ a plan may use; the total over all runs is computed at it too."
    )
    minimum_rows: int = Field(
        100, ge=2, description="Fewest rows the plan must declare for this party. The true number decides nothing."
    )
    minimum_parties: int = Field(
        2, ge=1, description="Fewest parties whose sum may be opened; with 1 the aggregator sees this party alone."
    )
    minimum_colluders: int = Field(
        1,
        ge=0,
        description="Fewest parties that a plan with shared noise must assume to pool what they know with the "
        "aggregator; the rest must bring the whole noise. Plans with local noise trust nobody anyway.",
    )
    noise: list[Noise] = Field(
        ["local", "shared"],
        min_length=1,
        description="Whose noise protects this party's counts: its own alone (local), or shares of all (shared).",
    )
    synthesizers: list[str] | None = Field(None, description="Model families that may be used. Left out: every one.")
    columns: list[str] | None = Field(
        None, description="Columns that may be synthesized. Left out: all of the schema but identifiers."
    )
    statistics_modes: list[Mode] = Field(
        ["ckks", "masked"], min_length=1, description="Ways in which this party's counts may be summed."
    )
    update_modes: list[Mode] = Field(
        ["masked", "ckks"], min_length=1, description="Ways in which this party's model updates may be summed."
    )
    maximum_rounds: int = Field(1000, ge=1, description="Most rounds of training a plan may ask for.")
    allow_unproven: bool = Field(
        False,
        description="Whether plans without a proven ε are allowed (privacy 'none', profile 'faithful'). For public "
        "rows only.",
    )
    auto_approve: list[SchemaDigest] = Field(
        [],
        description="Digests of the schemas (`fedsynth schema check` prints them) whose plans, within these limits, "
        "need nobody's approval. Empty: every plan waits for `fedsynth node approve`.",
    )

    maximum_automatic_runs: int = Field(
        100,
        ge=0,
        description="Most runs that may ever begin under auto_approve. Each leaves a little on the volume, even if it "
        "spends nothing.",
    )

    @field_validator("auto_approve", mode="before")
    @classmethod
    def _schemas_by_digest(cls, value: object) -> object:
        if value is True:
            raise PydanticCustomError(
                "auto_approve_names_schemas",
                "whoever writes the schema decides what is asked of the rows, so name the schemas you looked at: "
                "auto_approve: [DIGEST], where `fedsynth schema check FILE` prints the digest",
            )
        return [] if value is False else value

    def covers(self, plan: Plan) -> bool:
        """Whether a plan needs nobody's approval as far as its schema goes."""
        return plan.table.digest() in self.auto_approve

    @property
    def budget(self) -> Budget:
        """What the ledger enforces over all runs."""
        return Budget(self.maximum_epsilon_in_total, self.maximum_delta)

    @classmethod
    def load(cls, path: Path) -> Policy:
        return cls.parse(path, read_policy(path))

    @classmethod
    def parse(cls, path: Path, content: bytes) -> Policy:
        try:
            return cls.model_validate(yaml.safe_load(content.decode()))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise InputError(f"the policy {path} is not YAML: {error}. Correct the file.") from None
        except ValidationError as error:
            mistakes = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
            raise InputError(f"the policy {path} does not hold: {mistakes}. Correct or remove these keys.") from None


def read_policy(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the policy {path}: {error.strerror}. Write one or correct its path.") from None


def violations(policy: Policy, plan: Plan, party: str) -> list[str]:
    """Every limit that the plan breaks at this party, in words; none: it may be approved."""
    if party not in {member.name for member in plan.parties}:
        return [f"the plan does not name this party, '{party}'"]
    return [*_privacy(policy, plan), *_tables(policy, plan, party), *_procedure(policy, plan)]


def _privacy(policy: Policy, plan: Plan) -> list[str]:
    found = []
    if plan.profile != "rigorous" and not policy.allow_unproven:
        found.append(f"its profile is '{plan.profile}', which proves no ε; this policy allows only 'rigorous'")
    if plan.privacy == "none":
        if not policy.allow_unproven:
            found.append("it has no privacy at all, and this policy does not allow that (allow_unproven)")
        return found
    if (noise := "shared" if plan.shares_noise else "local") not in policy.noise:
        found.append(f"the noise in its counts is '{noise}'; allowed is {', '.join(policy.noise)}")
    if plan.shares_noise and plan.secure_sum.colluders < policy.minimum_colluders:
        found.append(
            f"its noise protects while at most {plan.secure_sum.colluders} parties collude with the aggregator; this "
            f"policy demands {policy.minimum_colluders}"
        )
    epsilon, delta = plan.privacy.epsilon, plan.privacy.delta
    if epsilon > policy.maximum_epsilon_per_run:
        found.append(f"it spends ε = {epsilon:g}; one run may spend {policy.maximum_epsilon_per_run:g}")
    if epsilon > policy.maximum_epsilon_in_total:
        found.append(f"it spends ε = {epsilon:g}; all runs together may spend {policy.maximum_epsilon_in_total:g}")
    if delta > policy.maximum_delta:
        found.append(f"its δ is {delta:g}; the largest allowed is {policy.maximum_delta:g}")
    return found


def _tables(policy: Policy, plan: Plan, party: str) -> list[str]:
    found = []
    if (rows := plan.party(party).rows) < policy.minimum_rows:
        found.append(f"it declares {rows} rows for this party; the fewest allowed are {policy.minimum_rows}")
    if policy.columns is not None and (
        extra := [name for name in plan.columns_of(party) if name not in policy.columns]
    ):
        found.append(f"it would synthesize columns that are not allowed: {', '.join(extra)}")
    return found


def _procedure(policy: Policy, plan: Plan) -> list[str]:
    found = []
    if plan.minimum_parties < policy.minimum_parties:
        found.append(
            f"it opens sums of {plan.minimum_parties} parties; the fewest allowed are {policy.minimum_parties}"
        )
    if policy.synthesizers is not None and plan.synthesizer.name not in policy.synthesizers:
        found.append(f"it uses '{plan.synthesizer.name}'; allowed are {', '.join(policy.synthesizers) or 'none'}")
    if plan.secure_sum.statistics not in policy.statistics_modes:
        found.append(f"it sums counts '{plan.secure_sum.statistics}'; allowed are {', '.join(policy.statistics_modes)}")
    if plan.secure_sum.updates not in policy.update_modes:
        found.append(f"it sums updates '{plan.secure_sum.updates}'; allowed are {', '.join(policy.update_modes)}")
    if plan.family.gathers and plan.profile == "rigorous" and "plain" not in policy.statistics_modes:
        found.append("it shows the aggregator this party's counts one by one, which is 'plain'; that is not allowed")
    if (rounds := plan.family.asks) > policy.maximum_rounds:
        found.append(f"it trains for {rounds} rounds; the most allowed are {policy.maximum_rounds}")
    return found
