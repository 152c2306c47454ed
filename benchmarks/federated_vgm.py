"""Mixtures fitted on an encrypted, federated histogram beside mixtures fitted on the pooled rows.

Three parties count their rows over fine cells without noise, the counts are masked, encrypted under CKKS, added by an
aggregator that cannot read them and opened by the parties; `fit_cells` makes a mixture of each numeric column. Beside
it scikit-learn's BayesianGaussianMixture (CTGAN's settings) sees all rows at once. The figure is the Wasserstein
distance between samples of both over the column's range, the largest over the columns of all tables found.
"""

import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray
from scipy.stats import wasserstein_distance
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

from aggregator.sums.exchange import Replies
from aggregator.sums.secure_sum import SecureSum
from crypto.keys import IdentityKey
from fed_node.seal.seal import Seal
from synth.encoding.mixtures import COMPONENTS, fit_cells
from synth.encoding.records import Codec, Records
from synth.messages import wire
from synth.messages.wire import Envelope
from synth.plan import Plan, parse_plan
from synth.privacy.noise import NoiseSource
from synth.statistics.histograms import Statistics, StatisticsInquiry

ROOT = Path(__file__).parent.parent
TABLES = {  # schema → rows, of which the first that exists is read
    "examples/adult.schema.yaml": ["examples/data/adult-train.csv.gz"],
    "examples/credit-default.schema.yaml": [
        "examples/data/credit-default.csv.gz",
        "../shared/data/credit-default/credit-default.csv.gz",
    ],
}
PARTIES = ("north", "south", "west")
BINS = 4096
DRAWS = 100_000


def vgm_figures() -> dict[str, float]:
    distances: dict[str, float] = {}
    for schema, places in TABLES.items():
        rows = next((ROOT / place for place in places if (ROOT / place).exists()), None)
        if not (ROOT / schema).exists() or rows is None:
            print(f"mixtures: {schema} or its rows are not here; left out")
            continue
        found = column_distances(yaml.safe_load((ROOT / schema).read_text()), rows)
        print(f"mixtures, {rows.name}: " + ", ".join(f"{name} {value:.4f}" for name, value in found.items()))
        distances |= {f"{rows.name}/{name}": value for name, value in found.items()}
    return {"vgm_distance": max(distances.values())}


def column_distances(schema: dict[str, Any], rows: Path) -> dict[str, float]:
    """Wasserstein distance over range for every numeric column."""
    table = pd.read_csv(rows, dtype=str, keep_default_na=False)
    parts = dict(zip(PARTIES, (table.iloc[start::3] for start in range(3)), strict=True))
    plan = plan_of(schema, {name: len(part) for name, part in parts.items()})
    codec = Codec(plan.table)
    records = {name: codec.encode(part) for name, part in parts.items()}
    released = federated_statistics(plan, records)
    probabilities = released.cells.probabilities(released.counts, sigma=0.0)
    pooled = Records.concat(list(records.values()))
    distances = {}
    for name in plan.table.numeric:
        values = np.asarray(pooled.columns[name], dtype=np.float64)
        federated = fit_cells(released.cells, name, probabilities[name])
        ours = federated.sample(DRAWS, np.random.default_rng(1))
        distances[name] = float(wasserstein_distance(ours, pooled_draws(values)) / np.ptp(values))
    return distances


def pooled_draws(values: NDArray[np.float64]) -> NDArray[np.float64]:
    model = BayesianGaussianMixture(
        n_components=COMPONENTS,
        weight_concentration_prior_type="dirichlet_process",
        weight_concentration_prior=0.001,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 100 iterations, as published, converged or not
        model.fit(values[:, None])
    draws: NDArray[np.float64] = model.sample(DRAWS)[0][:, 0]
    return draws


def plan_of(schema: dict[str, Any], rows: dict[str, int]) -> Plan:
    return parse_plan(
        {
            "name": "mixtures",
            "schema": schema,
            "parties": [{"name": name, "rows": count} for name, count in rows.items()],
            "synthesizer": {"name": "ctgan"},
            "privacy": "none",
            "statistics": {"bins": BINS},
            "secure_sum": {"statistics": "ckks"},
        }
    )


def federated_statistics(plan: Plan, records: dict[str, Records]) -> Statistics:
    """The one histogram release, through the parties' seals and the aggregator's secure sum."""
    inquiry = StatisticsInquiry(plan)
    ask = inquiry.ask(0)
    assert ask is not None
    with tempfile.TemporaryDirectory() as folder:
        parties = LocalParties(plan, records, Path(folder))
        sums = SecureSum(plan, "benchmark", parties, parties.roster)
        sums.agree_on_keys(parties("hello", dict.fromkeys(sums.parties, sums.hello())).received)
        inquiry.absorb(sums.total(ask, 0))
    return inquiry.result()


class LocalParties:
    """The parties' side of the exchange, without a network."""

    def __init__(self, plan: Plan, records: dict[str, Records], folder: Path) -> None:
        self.plan, self.records = plan, records
        keys = {name: IdentityKey.generate() for name in records}
        self.roster = {name: key.identity for name, key in keys.items()}
        pins = {name: identity.to_text() for name, identity in self.roster.items()}
        self.seals = {}
        for name, key in keys.items():
            (folder / name).mkdir()
            (folder / name / "identity.key").write_bytes(key.to_pem())
            self.seals[name] = Seal(plan, name, "benchmark", folder / name, pins, self)

    def list_of(self, run: str, sequence: int) -> None:
        """Nobody is lost here, so no answer could be summed over two lists."""

    def bind(self, run: str, sequence: int, parties: Sequence[str]) -> None:
        """As above."""

    def __call__(self, kind: str, envelopes: dict[str, Envelope]) -> Replies:
        return Replies({party: self.handle(kind, party, envelope) for party, envelope in envelopes.items()})

    def handle(self, kind: str, party: str, envelope: Envelope) -> Envelope:
        seal = self.seals[party]
        match kind:
            case "hello":
                return seal.hello(envelope)
            case "keys":
                return seal.keys(envelope)
            case "ask":
                ask = wire.unpack_ask(envelope)
                answer, _ = StatisticsInquiry(self.plan).answer(ask, party, self.records[party], {}, NoiseSource())
                return seal.seal(answer, ask, envelope)
            case _:
                return seal.open(envelope)
