"""Votes for weights: `python -m benchmarks.selection [--rounds 1628] [--seed 1] [--skip-wae]` (make bench-selection).

What SignDS-FL, DP-Fed-WAE and FedSTDG print (nominal: one vote) beside what all of a client's votes cost:

    served   the server picks who votes, as published: ε times how often a client is asked on average
    secret   the party picks, secretly, and sends the sum (what this kit does): composed at δ = 1e-5

lr        SignDS-FL's logistic regression on Adult, its labels and numbers in five bins: clients of ten records, 250 of
          them a round, 500 rounds, ten local steps, a tenth of the weights, 0.05 a vote; accuracy on test rows
wae       DP-Fed-WAE as published (`profile: faithful`) on Adult: two records a client, ten clients a round, so many
          rounds that a client is asked once (a third of the paper's, which drew Adult's rows three times); accuracy of
          the paper's two classifiers on test rows, trained on synthetic ones, and on real ones in the same bins
The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from torch import Tensor, nn

from benchmarks.marginals import EXAMPLES, federate
from fed_node.source import read_table_as_text
from fedsynth.documents import read_schema
from synth.encoding.records import Codec, Records
from synth.neural.groups import VotingRound
from synth.neural.synthesizer import NeuralSynthesizer
from synth.neural.vote_settings import VoteSettings
from synth.neural.voting import VOTES, Voting
from synth.plan import Plan, parse_plan
from synth.privacy.accounting import compose
from synth.privacy.events import Votes
from synth.privacy.noise import seeded_source
from synth.privacy.selection.law import best_threshold, most_chosen
from synth.statistics.mixture_rounds import statistics_inquiry
from synth.synthesizers.registry import build

DELTA = 1e-5
PUBLISHED = {  # clients, asked a round, rounds, ε of a vote
    "signds_adult": (3256, 250, 500, 4.0),
    "wae_8": (50_000, 10, 5000, 8.0),
    "wae_4": (50_000, 10, 5000, 4.0),
    "fedstdg_energy": (1973, 50, 1000, 2.0),
    "fedstdg_stock": (440, 50, 1000, 2.0),
}
ROUNDS, ASKED, VOTE_STEP = 500, 250, 0.05  # SignDS-FL's logistic regression


def prices() -> dict[str, dict[str, float]]:
    found = {}
    for name, (clients, asked, rounds, epsilon) in PUBLISHED.items():
        choice = (10_000, 1_000, 1, 1)
        if name.startswith("fedstdg"):
            chosen = most_chosen(2_974, 1_487, epsilon, 0.8)
            choice = (2_974, 1_487, chosen, best_threshold(2_974, 1_487, chosen, epsilon))
        votes = Votes(*choice, epsilon, asked / clients, rounds)
        served = epsilon * max(1.0, asked * rounds / clients)
        found[name] = {"nominal": epsilon, "served": served, "secret": compose([votes], DELTA).epsilon}
    return found


class Adult:
    """Training and test rows in the bins that a noisy histogram of the training rows gives."""

    def __init__(self, seed: int) -> None:
        schema = read_schema(EXAMPLES / "adult.schema.yaml")
        self.schema, self.codec = schema, Codec(schema)
        self.train, self.test = (
            self.codec.fit(read_table_as_text(EXAMPLES / "data" / f"adult-{part}.csv.gz"))[0]
            for part in ("train", "test")
        )
        self.seed = seed

    def plan(self, synthesizer: dict[str, Any], epsilon: float, profile: str = "faithful") -> Plan:
        return parse_plan(
            {
                "name": "adult",
                "schema": self.schema.model_dump(mode="json", by_alias=True, exclude_none=True),
                "parties": [{"name": "all", "rows": len(self.train)}],
                "synthesizer": synthesizer,
                "privacy": {"epsilon": epsilon, "delta": DELTA, "noise": "local"},
                "secure_sum": {"statistics": "plain", "updates": "plain", "colluders": 0},
                "profile": profile,
            }
        )

    def begun(self, plan: Plan) -> NeuralSynthesizer:
        statistics, model = statistics_inquiry(plan), build(plan)
        federate(statistics, {"all": self.train}, self.seed)
        model.begin(statistics.result(), self.seed)
        assert isinstance(model, NeuralSynthesizer)
        return model

    def matrix(self, model: NeuralSynthesizer, rows: Records) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """One-hot rows without the target, and the target."""
        features = model.released.features
        target = next(span for span in features.spans if span.column == self.schema.target)
        whole = features.encode(rows, np.random.default_rng(0))
        return np.delete(whole, target.slice, axis=1), whole[:, target.slice].argmax(1)


def logistic_regression(adult: Adult, epsilon: float) -> dict[str, float]:
    """Accuracy of the published regression, by votes and (private: no) by averaging what the same clients learn."""
    plan = adult.plan({"name": "wae", "preset": "published"}, epsilon)
    model = adult.begun(plan)
    (inputs, target), (unseen, truth) = (adult.matrix(model, rows) for rows in (adult.train, adult.test))
    rows = torch.from_numpy(np.column_stack([inputs, target]).astype(np.float32))
    said = VoteSettings(records_per_client=10, local_optimizer="sgd", local_steps=10, local_rate=1e-3, step=VOTE_STEP)
    clients = -(-len(rows) // said.records_per_client)
    voting = Voting(plan, said, ASKED / clients, ROUNDS, published=True)

    def loss(part: nn.Module, batch: Tensor, there: Tensor, _: object) -> Tensor:
        each = nn.functional.cross_entropy(part(batch[:, :-1]), batch[:, -1].long(), reduction="none")
        return (each * there).sum() / there.sum().clamp(min=1.0)

    found = {}
    for name in ("votes", "average"):
        torch.manual_seed(adult.seed)
        network = nn.Sequential(nn.Linear(inputs.shape[1], 2))
        nn.init.zeros_(network[0].weight)  # type: ignore[arg-type]
        for number in range(ROUNDS):
            turn = VotingRound(voting, "all", seeded_source(adult.seed, name, number))
            if name == "votes":
                moved = VOTE_STEP * torch.from_numpy(turn.answer(network, loss, rows, 0.0)[VOTES]).float()
            else:
                moved = torch.from_numpy(turn.wishes(network, loss, *turn._drawn(rows)).mean(0)).float()
            start = 0
            for parameter in network.parameters():
                parameter.data += moved[start : start + parameter.numel()].view_as(parameter)
                start += parameter.numel()
        guessed = network(torch.from_numpy(unseen)).argmax(1).numpy()
        found[name] = float((guessed == truth).mean())
    return found


def published_wae(adult: Adult, epsilon: float, rounds: int) -> dict[str, float]:
    plan = adult.plan({"name": "wae", "preset": "published", "rounds": rounds, "sample_rate": 10.5 / 16_281}, epsilon)
    model = adult.begun(plan)
    federate(model, {"all": adult.train}, adult.seed)
    made = model.sample(32_561, adult.seed)
    unseen, truth = adult.matrix(model, adult.test)
    found = {}
    for name, rows in (("synthetic", made), ("real", adult.train)):
        inputs, target = adult.matrix(model, rows)
        for kind, judge in (
            ("nn", MLPClassifier((100,), max_iter=30, random_state=0)),
            ("rf", RandomForestClassifier(100, random_state=0, n_jobs=1)),
        ):
            found[f"{kind}_{name}"] = float((judge.fit(inputs, target).predict(unseen) == truth).mean())
    found["majority"] = float(max(pd.Series(truth).value_counts(normalize=True)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1628, help="of DP-Fed-WAE")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip-wae", action="store_true", help="only what takes seconds, and the regression")
    said = parser.parse_args()
    found: dict[str, Any] = {"prices": prices()}
    for name, row in found["prices"].items():
        print(f"{name:16}", "  ".join(f"{key} {value:8.2f}" for key, value in row.items()), flush=True)
    adult = Adult(said.seed)
    found["lr_4"] = logistic_regression(adult, 4.0)
    print("logistic regression, ε = 4 a vote", found["lr_4"], flush=True)
    if not said.skip_wae:
        found["wae_8"] = published_wae(adult, 8.0, said.rounds)
        print("DP-Fed-WAE, ε = 8 a vote", found["wae_8"], flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
