"""Two parties with real ledgers, keys and sealed sums, whose noise is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from aggregator.federate import federate
from aggregator.sums.secure_sum import SecureSum
from fed_node.ledger.view import LedgerView
from fed_node.party import Party
from synth.audit.replay import uncharged
from synth.audit.tape import RecordingSource, Tape, recorded
from synth.interface import Inquiry, Synthesizer
from synth.messages.wire import Envelope
from synth.plan import Plan
from synth.statistics.mixture_rounds import statistics_inquiry
from synth.synthesizers.registry import build
from tests.contract.test_synthesizers import SMALLEST
from tests.fed_node.two_parties import ROWS, Deliver, World, make_homes
from tests.small import plan_of


@dataclass
class Recorded:
    """The parties of a plan, and all that the first of them ever released."""

    plan: Plan
    homes: dict[str, Path]
    parties: dict[str, Party]
    tape: Tape
    repeated: bool = False  # every ask arrives twice, as after a lost reply

    def run(self, name: str) -> None:
        """One whole run, as the aggregator drives it."""
        world = World({party: self._deliver(party) for party in self.parties})
        sums = SecureSum(self.plan, name, world)
        sums.agree_on_keys(world("hello", dict.fromkeys(sums.parties, sums.hello())).received)
        statistics, training = statistics_inquiry(self.plan), build(self.plan)
        inquiries: list[Inquiry] = [statistics, training]
        sequence = 0
        for inquiry in inquiries:
            if isinstance(inquiry, Synthesizer):
                inquiry.begin(statistics.result(), 1)
            sequence += sum(1 for _ in federate(inquiry, sums, 0, sequence))
        sums.finish()

    @property
    def ledger(self) -> LedgerView:
        return self.parties["party-1"].ledger

    def unpaid(self) -> list[str]:
        return uncharged(self.ledger.events(), self.tape.releases, self.plan.noisy_parties)

    def _deliver(self, name: str) -> Deliver:
        def deliver(kind: str, envelope: Envelope) -> Envelope:
            times = 2 if self.repeated and kind == "ask" else 1
            return [self.parties[name].handle(kind, envelope) for _ in range(times)][-1]

        return deliver


def understated(ledger: LedgerView) -> bool:
    """Whether a ledger's last line says less than its own charges compose to."""
    return ledger.spent().epsilon > ledger.history()[-1].cumulative.epsilon * (1 + 1e-9)


@contextmanager
def recorded_parties(folder: Path, family: str) -> Iterator[Recorded]:
    secure_sum = {"statistics": "masked", "updates": "masked"}
    plan = plan_of(SMALLEST[family], parties=2, rows=ROWS, secure_sum=secure_sum)
    homes = make_homes(folder, plan)
    tapes = {name: Tape(ROWS) for name in homes}

    def source(seed: int, run: str, name: str) -> RecordingSource:
        return tapes[name].source(run)

    with ExitStack() as stack:
        stack.enter_context(patch("fed_node.party.seeded_source", source))
        stack.enter_context(recorded(tapes["party-1"]))
        parties = {name: Party(home) for name, home in homes.items()}
        for party in parties.values():
            stack.callback(party.ledger.close)
        yield Recorded(plan, homes, parties, tapes["party-1"])
