"""Where one party keeps what: the file `party.yaml` in its home folder, written by the party, read by nobody else."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import yaml
from pydantic import Field, ValidationError

from fed_node.consent.policy import Policy
from fed_node.ledger.book import Budget
from fed_node.source import EngineSource, Source, SqlSource
from synth.errors import InputError
from synth.schema import Strict

SETTINGS, POLICY, KEY, LEDGER, LOG = "party.yaml", "policy.yaml", "identity.key", "ledger.sqlite", "party.log"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # pins of a thousand peers take Python's own half a second
SCRATCH = "scratch"  # folder for rows that do not fit into memory, while a run needs them


class PartyBudget(Strict):
    """What this institution is willing to spend on this dataset over its whole life."""

    epsilon: float = Field(gt=0, description="Largest ε that all runs together may spend.")
    delta: float = Field(gt=0, lt=1, description="The δ at which that ε is computed.")


class PartySettings(Strict):
    """One institution's own settings; nothing here comes from the aggregator."""

    name: str = Field(description="This party's name in plans.")
    dataset: str = Field("default", description="Name of the dataset in the ledger; budgets are kept per dataset.")
    data: Source = Field(description="Where the rows are: a CSV or Parquet file, a database query, or an engine's.")
    budget: PartyBudget | None = Field(
        None,
        description="Lifetime budget, for a party without a policy file (which states its own). Neither: only in "
        "simulations, where rows are not anybody's.",
    )
    seed: int | None = Field(
        None, description="Fixes all randomness. For simulations only: with a known seed the noise protects nobody."
    )
    peers: dict[str, str] = Field(
        default_factory=dict, description="Public identity keys of the other parties, compared out of band."
    )
    keys_made_by: Literal["party", "operator"] = Field(
        "party",
        description="Who made this party's keys. Whoever made them could sign in its name, so its statements say it.",
    )
    debug_values: bool = Field(
        False,
        description="Let the party's log quote other libraries' messages, cell values included. The log stays here; "
        "keep it off unless somebody is looking for a fault.",
    )

    def source(self, home: Path) -> Source:
        """The data's place; a relative path starts at the home folder."""
        if isinstance(self.data, SqlSource | EngineSource):
            return self.data
        return self.data.model_copy(update={"path": home / self.data.path})

    @classmethod
    def load(cls, home: Path) -> PartySettings:
        path = home / SETTINGS
        try:
            return cls.model_validate(yaml.load(path.read_text(), Loader=LOADER))
        except FileNotFoundError:
            raise InputError(f"no party settings at {path}; create the file or point --home elsewhere") from None
        except (ValidationError, yaml.YAMLError) as error:
            raise InputError(f"party settings {path} cannot be read: {error}") from None


def policy_at(home: Path) -> Policy | None:
    """The party's policy, if it wrote one."""
    path = home / POLICY
    return Policy.load(path) if path.exists() else None


def budget_of(settings: PartySettings, policy: Policy | None) -> Budget | None:
    """What the ledger enforces over all runs, from the one place that states it."""
    if policy is not None and settings.budget is not None:
        raise InputError(
            f"both {SETTINGS} (budget) and {POLICY} (maximum_epsilon_in_total) state a lifetime budget; keep the "
            "policy's and remove the other."
        )
    if policy is not None:
        return policy.budget
    return Budget(settings.budget.epsilon, settings.budget.delta) if settings.budget else None
