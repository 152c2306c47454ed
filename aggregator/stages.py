"""A run under way: where it stands, what is written down of it, and how any phase of its programme is carried out."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from aggregator import checkpoint
from aggregator.checkpoint import Position
from aggregator.federate import federate
from aggregator.spending import Spending
from aggregator.sums.secure_sum import SecureSum
from aggregator.watch import Watch
from synth.errors import ProtocolError
from synth.interface import Arrays, Inquiry, Synthesizer
from synth.plan import Plan
from synth.programme import programme


@dataclass
class Course:
    """What survives a kill is on the disk before the next ask leaves."""

    plan: Plan
    path: Path  # of the checkpoint
    watch: Watch
    position: Position
    states: dict[str, Arrays] = field(default_factory=dict)  # of the inquiries that have begun, by phase

    @classmethod
    def taken_up(cls, plan: Plan, path: Path, watch: Watch, seed: int | None) -> Course:
        """From its checkpoint, or a new one. A new run's name is on the disk before anybody is asked: asked again
        under another name, parties would pay twice."""
        if path.exists():
            return cls(plan, path, watch, *checkpoint.load(path, plan))
        digest = plan.digest()
        if seed is None:
            position = Position(secrets.token_hex(8), digest, secrets.randbits(62))
        else:
            position = Position(f"seed-{seed}-{digest[:8]}", digest, seed)
        checkpoint.save(path, position, {})
        return cls(plan, path, watch, position)

    def carry_out(
        self, inquiry: Inquiry, sums: SecureSum, doing: str, begin: Callable[[], None] = lambda: None
    ) -> None:
        """Every ask of the inquiry's phase that was not absorbed yet. The question is kept before it is asked, as
        parties answer no other under its number."""
        stage = programme(self.plan).stage(inquiry.phase)
        if state := self.states.get(stage.phase):
            inquiry.restore(state)
        else:
            begin()
        if self.position.sequence >= stage.end:
            return
        self._keep(inquiry)
        self.watch.stage(doing)
        spending = Spending(self.plan, self.position.spent, self.position.sums)
        start = self.position.sequence
        if isinstance(inquiry, Synthesizer) and start > stage.first:  # taken up again: say at once how far it is
            self.watch.round(start - stage.first, stage.asks, inquiry.losses(), spending.epsilon())
        for ask, total in federate(inquiry, sums, start - stage.first, start):
            done = self.position.sequence + 1
            spending.add(inquiry, ask, self.position.sequence, list(total.parties))
            self.position = replace(self.position, sequence=done, **spending.to_records())
            self._keep(inquiry)
            if isinstance(inquiry, Synthesizer):
                self.watch.round(done - stage.first, stage.asks, inquiry.losses(), spending.epsilon())
        if self.position.sequence != stage.end:
            raise ProtocolError(f"phase '{stage.phase}' has {stage.asks} asks by the plan, and other ones were asked")

    def _keep(self, inquiry: Inquiry) -> None:
        self.states[inquiry.phase] = inquiry.state()
        checkpoint.save(self.path, self.position, self.states)
