"""Two parties with real homes, ledgers and keys, whose training is so cheap that hundreds of runs fit into a minute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from aggregator.federate import federate
from aggregator.sums.exchange import Replies
from aggregator.sums.secure_sum import SecureSum
from crypto.keys import IdentityKey
from fed_node.consent import administration
from fed_node.party import Party
from synth.certificate.certificate import Statement
from synth.encoding.records import Records
from synth.errors import FedsynthError, ProtocolError, Refusal
from synth.interface import Answer, Arrays, Ask, Inquiry, Sum
from synth.messages.wire import Envelope
from synth.plan import Plan
from synth.privacy.events import Event, SampledGaussian
from synth.privacy.noise import NoiseSource
from synth.statistics.mixture_rounds import statistics_inquiry
from tests.small import plan_of, table

RUN = "run-1"
ROWS = 60
ROUNDS = 60
COST = SampledGaussian(0.02, 1.5, 2)
Deliver = Callable[[str, Envelope], Envelope]


def small_plan(rounds: int = ROUNDS, **changes: Any) -> Plan:
    secure_sum = {"statistics": "masked", "updates": "masked"}
    return plan_of({"name": "ctgan", "rounds": rounds}, parties=2, rows=ROWS, secure_sum=secure_sum, **changes)


class CheapTraining(Inquiry):
    """Each answer depends on the ask before it, on the party's local arrays and on noise: a lost one would show."""

    phase = "training"

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.weights = np.zeros(4)

    def ask(self, number: int) -> Ask | None:
        if number == self.plan.family.asks:
            return None
        return Ask({"state": self.weights}, {"phase": "training", "round": number})

    def absorb(self, total: Sum) -> None:
        self.weights = total.arrays["change"] + 0.5 * self.weights

    def state(self) -> Arrays:
        return {"weights": self.weights}

    def restore(self, state: Arrays) -> None:
        self.weights = state["weights"]

    def cost(self, ask: Ask, party: str) -> list[Event]:
        if set(ask.arrays) != {"state"} or ask.arrays["state"].shape != (4,):
            raise ProtocolError("no such weights")
        return [COST]

    def planned_costs(self, party: str) -> list[list[Event]]:
        return [[COST]] * self.plan.family.asks

    def answer(self, ask: Ask, party: str, data: Records, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        answered = local.get("answered", np.array(0)) + 1
        change = 0.01 * ask.arrays["state"] + noise.rounded_gaussian(1e6, 4) / 1e6 + answered / len(data)
        return Answer({"change": change}, self.plan.share(party)), {"answered": answered}


def make_homes(
    folder: Path, plan: Plan, seed: int | None = 7, approved: bool = True, **settings: Any
) -> dict[str, Path]:
    """A home for each party of the plan: settings, key, rows and, unless said otherwise, approval for one run."""
    names = [party.name for party in plan.parties]
    keys = {name: IdentityKey.generate() for name in names}
    homes = {name: folder / name for name in names}
    for number, (name, home) in enumerate(homes.items()):
        home.mkdir(parents=True)
        peers = {peer: key.identity.to_text() for peer, key in keys.items() if peer != name}
        content = {"name": name, "data": {"kind": "csv", "path": "rows.csv"}, "seed": seed, "peers": peers}
        (home / "party.yaml").write_text(yaml.safe_dump(content | settings))
        (home / "identity.key").write_bytes(keys[name].to_pem())
        table(ROWS, seed=number).to_csv(home / "rows.csv", index=False)
        if approved:
            administration.approve(home, plan)
    return homes


def deliver_to(party: Party) -> Deliver:
    return party.handle


@dataclass
class World:
    """An `Exchange` over functions that deliver; a refusal arrives as its code, as over a network."""

    deliver: dict[str, Deliver]
    log: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, kind: str, envelopes: dict[str, Envelope]) -> Replies:
        received = {}
        for party, envelope in envelopes.items():
            self.log.append((kind, party))
            try:
                received[party] = self.deliver[party](kind, envelope)
            except FedsynthError as error:
                raise Refusal(party, error.code) from error
        return Replies(received)


@dataclass(frozen=True)
class Outcome:
    counts: np.ndarray
    state: np.ndarray
    statements: dict[str, Statement]


def run_all(plan: Plan, world: World, run: str = RUN) -> Outcome:
    """A whole run, as the aggregator drives it."""
    sums = SecureSum(plan, run, world)
    sums.agree_on_keys(world("hello", dict.fromkeys(sums.parties, sums.hello())).received)
    statistics, training = statistics_inquiry(plan), CheapTraining(plan)
    asked = sum(1 for _ in federate(statistics, sums, 0, 0))
    assert sum(1 for _ in federate(training, sums, 0, asked)) == plan.family.asks
    signed = [each.statement for each in sums.finish()]
    return Outcome(statistics.result().counts, training.weights, {each.party: each for each in signed})
