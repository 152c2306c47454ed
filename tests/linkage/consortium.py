"""Parties by columns with real homes, ledgers and keys, in one process, under an aggregator whose messages bend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from aggregator.federate import federate
from aggregator.sums.exchange import Replies
from aggregator.sums.secure_sum import SecureSum
from crypto.keys import IdentityKey
from fed_node.consent import administration
from fed_node.party import Party
from synth.certificate.certificate import Statement
from synth.errors import FedsynthError, Refusal
from synth.interface import Ask, Synthesizer
from synth.linkage.inquiry import AlignmentInquiry
from synth.messages import wire
from synth.messages.wire import Envelope
from synth.plan import Plan
from synth.statistics.mixture_rounds import statistics_inquiry
from synth.synthesizers.registry import build

RUN = "run-1"
Bend = Callable[[str, str, Envelope], Envelope]  # kind, party, message → what is carried instead


@dataclass
class Consortium:
    """An `Exchange` over the parties; `outgoing` and `incoming` are the aggregator's to bend."""

    plan: Plan
    tables: dict[str, pd.DataFrame]
    folder: Path
    seed: int | None = 7
    outgoing: Bend = lambda kind, party, envelope: envelope
    incoming: Bend = lambda kind, party, envelope: envelope
    sent: list[tuple[str, str, Envelope]] = field(default_factory=list)
    seen: list[tuple[str, str, Envelope]] = field(default_factory=list)
    parties: dict[str, Party] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [party.name for party in self.plan.parties]
        keys = {name: IdentityKey.generate() for name in names}
        for name in names:
            home = self.folder / name
            home.mkdir(parents=True)
            peers = {peer: key.identity.to_text() for peer, key in keys.items() if peer != name}
            content = {"name": name, "data": {"kind": "csv", "path": "rows.csv"}, "seed": self.seed, "peers": peers}
            (home / "party.yaml").write_text(yaml.safe_dump(content))
            (home / "identity.key").write_bytes(keys[name].to_pem())
            self.tables[name].to_csv(home / "rows.csv", index=False)
            administration.approve(home, self.plan)
            self.parties[name] = Party(home)

    def restart(self, name: str) -> None:
        """A new process: only the volume is left."""
        self.parties[name].ledger.close()
        self.parties[name] = Party(self.folder / name)

    def __call__(self, kind: str, envelopes: dict[str, Envelope]) -> Replies:
        received = {}
        for name, envelope in envelopes.items():
            bent = wire.from_records(wire.to_records(self.outgoing(kind, name, envelope)))
            self.sent.append((kind, name, bent))
            try:
                reply = self.parties[name].handle(kind, bent)
            except FedsynthError as error:
                raise Refusal(name, error.code) from error
            self.seen.append((kind, name, reply))
            received[name] = self.incoming(kind, name, wire.from_records(wire.to_records(reply)))
        return Replies(received)

    def close(self) -> None:
        for party in self.parties.values():
            party.ledger.close()


@dataclass(frozen=True)
class Outcome:
    model: Synthesizer
    alignment: AlignmentInquiry
    statements: list[Statement]


def admitted(consortium: Consortium, run: str = RUN) -> SecureSum:
    sums = SecureSum(consortium.plan, run, consortium)
    sums.agree_on_keys(consortium("hello", dict.fromkeys(sums.parties, sums.hello())).received)
    return sums


def carried_out(consortium: Consortium) -> Outcome:
    """A whole run, as the aggregator drives it."""
    plan, sums = consortium.plan, admitted(consortium)
    alignment, statistics, model = AlignmentInquiry(plan), statistics_inquiry(plan), build(plan)
    done = sum(1 for _ in federate(alignment, sums, 0, 0))
    done += sum(1 for _ in federate(statistics, sums, 0, done))
    model.begin(statistics.result(), 1)
    for _ in federate(model, sums, 0, done):
        pass
    return Outcome(model, alignment, [each.statement for each in sums.finish()])


def prepared(found: Consortium, run: str = RUN) -> tuple[SecureSum, Ask, int]:
    """Aligned and counted; the first question for tables is next."""
    sums, alignment, statistics = admitted(found, run), AlignmentInquiry(found.plan), statistics_inquiry(found.plan)
    done = sum(1 for _ in federate(alignment, sums, 0, 0)) + sum(1 for _ in federate(statistics, sums, 0, 3))
    model = build(found.plan)
    model.begin(statistics.result(), 1)
    ask = model.ask(0)
    assert ask is not None
    return sums, ask, done


def header(found: Consortium, sequence: int) -> dict[str, Any]:
    return {"run": RUN, "plan": found.plan.digest(), "epoch": 0, "sequence": sequence}
