"""What a party adds to its own computing: `python -m benchmarks.party`.

overhead_ms        of one ask, all but the computing: consent, ledger (flushed to the disk), stored answer, seal.
                   Three parties, masked sums, answers as large as the default CTGAN's for Adult; median over the asks.
                   (Printed beside it: the larger networks of the paper.)
clientapp_seconds  from starting the thin ClientApp's process to its answer, the worker's computing left out: the ask
                   is one that was answered before. Median over starts.
load_seconds       reading five million rows of Parquet; load_ratio: largest memory over the table's size in memory.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import yaml

from benchmarks.party_loading import measure_loading
from crypto.keys import IdentityKey
from fed_node.consent import administration
from fed_node.party import Party
from fed_node.process.worker import Worker
from synth.encoding.records import Records
from synth.interface import Answer, Arrays, Ask, Inquiry, Sum
from synth.messages import archive, wire
from synth.messages.wire import Envelope
from synth.plan import Plan, parse_plan
from synth.privacy.events import Event, SampledGaussian
from synth.privacy.noise import NoiseSource

RUN = "bench"
ASKS, STARTS = 20, 9
WEIGHTS, PUBLISHED_WEIGHTS = 150_000, 450_000  # of both networks for Adult: the default preset, and the paper's
COST = SampledGaussian(0.02, 1.5, 10)
NAMES = ["north", "south", "west"]
ROWS = 500
PLAN = {
    "name": "bench",
    "schema": {"columns": {"age": {"kind": "integer", "min": 0, "max": 120}}},
    "parties": [{"name": name, "rows": ROWS} for name in NAMES],
    "synthesizer": {"name": "ctgan", "rounds": ASKS + 1},
    "privacy": {"epsilon": 3, "delta": 1e-5},
    "secure_sum": {"statistics": "masked", "updates": "masked"},
}
CLIENT = """
import json, sys
from flwr.app import Context, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity
from fed_node.process.client_app import app
from synth.messages import archive, wire
from synth.messages.wire import Envelope
TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 0, 0
arrays, options = archive.unpack(open(sys.argv[2], "rb").read(), "the ask")
message = Message(wire.to_records(Envelope(arrays, options)), dst_node_id=7, message_type="query.ask")
context = Context(1, 7, node_config={"socket": sys.argv[1], "party": "north"}, state=RecordDict(), run_config={})
reply = app(message, context)
sys.exit(reply.error.reason if reply.has_error() else 0)
"""


class StandIn(Inquiry):
    """As large as a real training, but its computing is a few milliseconds, which are taken off."""

    phase = "training"

    def __init__(self, weights: int) -> None:
        self.weights = weights
        self.computing_seconds = 0.0

    def ask(self, number: int) -> Ask:
        return Ask({"weights": np.zeros(self.weights, np.float32)}, {"phase": "training", "round": number})

    def absorb(self, total: Sum) -> None:
        """Nothing: the aggregator's half is not measured here."""

    def cost(self, ask: Ask, party: str) -> list[Event]:
        return [COST]

    def planned_costs(self, party: str) -> list[list[Event]]:
        return [[COST]] * (ASKS + 1)

    def state(self) -> Arrays:
        return {}

    def restore(self, state: Arrays) -> None:
        """Nothing, for the same reason."""

    def answer(self, ask: Ask, party: str, data: Records, local: Arrays, noise: NoiseSource) -> tuple[Answer, Arrays]:
        began = time.perf_counter()
        answer = Answer({"weights": 1e-9 * noise.rounded_gaussian(1e6, self.weights).astype(np.float32)}, 1 / 3)
        self.computing_seconds = time.perf_counter() - began
        return answer, {"moments": np.zeros(self.weights, np.float32)}


def make_parties(folder: Path, plan: Plan) -> dict[str, Party]:
    """Homes, keys, rows and approvals, and the parties that live there."""
    keys = {name: IdentityKey.generate() for name in NAMES}
    for name in NAMES:
        home = folder / name
        home.mkdir()
        (home / "rows.csv").write_text("age\n" + "".join(f"{age % 100}\n" for age in range(ROWS)))
        settings: dict[str, Any] = {
            "name": name,
            "data": {"kind": "csv", "path": "rows.csv"},
            "peers": {peer: key.identity.to_text() for peer, key in keys.items() if peer != name},
            "budget": {"epsilon": 50.0, "delta": 1e-5},
        }
        (home / "party.yaml").write_text(yaml.safe_dump(settings))
        (home / "identity.key").write_bytes(keys[name].to_pem())
        administration.approve(home, plan)
    return {name: Party(folder / name) for name in NAMES}


def agree(parties: dict[str, Party], plan: Plan) -> None:
    """Hello and keys, as the aggregator carries them."""
    header: dict[str, Any] = {"run": RUN, "plan": plan.digest(), "epoch": 0}
    announced = {}
    for name, party in parties.items():
        announced[f"announcement/{name}"] = party.handle("hello", Envelope({}, header)).arrays["announcement"]
    for party in parties.values():
        party.handle("keys", Envelope(announced, header))


def ask_number(number: int, plan: Plan, inquiry: StandIn) -> Envelope:
    ask = inquiry.ask(number - 1) if number else Ask(options={"phase": "statistics"})
    packed = wire.pack_ask(ask)
    header: dict[str, Any] = {"run": RUN, "plan": plan.digest(), "epoch": 0, "sequence": number}
    return Envelope(packed.arrays, packed.options | header)


def measure_overhead(party: Party, plan: Plan, inquiry: StandIn) -> tuple[float, float]:
    """Milliseconds of one ask at a party beside its computing; and those of the processor's, the rest is waiting."""
    party.handle("ask", ask_number(0, plan, inquiry))
    seconds, began_processor = [], time.process_time()
    for number in range(1, ASKS + 1):
        envelope = ask_number(number, plan, inquiry)
        began = time.perf_counter()
        party.handle("ask", envelope)
        seconds.append(time.perf_counter() - began - inquiry.computing_seconds)
    return 1000 * statistics.median(seconds), 1000 * (time.process_time() - began_processor) / ASKS


def measure_client_app(party: Party, plan: Plan, inquiry: StandIn, folder: Path) -> tuple[float, float]:
    """Seconds from start to answer, and of these Python's and Flower's own start."""
    envelope, file = ask_number(1, plan, inquiry), folder / "ask.npz"
    file.write_bytes(archive.pack(envelope.arrays, dict(envelope.options)))
    with closing(Worker(party, folder / "worker.sock")) as worker:
        command = [sys.executable, "-c", CLIENT, str(worker.path), str(file)]
        whole = statistics.median(_seconds(command) for _ in range(STARTS))
    return whole, statistics.median(_seconds([sys.executable, "-c", "import flwr.clientapp"]) for _ in range(STARTS))


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - began


def measure_party(weights: int) -> tuple[float, float]:
    """Overhead of an ask in milliseconds, and the ClientApp's seconds from start to answer."""
    plan, inquiry = parse_plan(PLAN), StandIn(weights)
    with tempfile.TemporaryDirectory() as name, mock.patch("synth.programme.build", return_value=inquiry):
        folder = Path(name)
        parties = make_parties(folder, plan)
        agree(parties, plan)
        overhead_ms, processor_ms = measure_overhead(parties["north"], plan, inquiry)
        print(f"one ask, {weights:,} weights, beside its computing: {overhead_ms:.1f} ms")
        print(f"  the processor's part, computing included: {processor_ms:.1f} ms; the rest waits for disk and machine")
        seconds, flower_seconds = measure_client_app(parties["north"], plan, inquiry, folder)
        print(f"ClientApp from start to answer: {seconds:.2f} s; Flower's import alone: {flower_seconds:.2f} s")
        for party in parties.values():
            party.ledger.close()
    return overhead_ms, seconds


def main() -> None:
    measure_party(PUBLISHED_WEIGHTS)
    overhead_ms, clientapp_seconds = measure_party(WEIGHTS)
    with tempfile.TemporaryDirectory() as name:
        loading = measure_loading(Path(name))
    print(f"loading: {', '.join(f'{key} {value:,.2f}' for key, value in loading.items())}")
    figures = {"overhead_ms": overhead_ms, "clientapp_seconds": clientapp_seconds}
    figures |= {key: loading[key] for key in ("load_seconds", "load_ratio")}
    print(json.dumps({key: round(value, 3) for key, value in figures.items()}))


if __name__ == "__main__":
    main()
