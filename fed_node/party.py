"""One institution: its rows, its keys, its ledger, and the order in which they are used.

`answer` is the whole privacy argument on one screen: approved? → charged → computed → stored → sealed. A party holds
no state that a restart would lose; what matters is on its volume before anything leaves.
"""

from __future__ import annotations

import logging
import os
import threading
from functools import cached_property, lru_cache
from pathlib import Path

from fed_node.answers import AnswerKey, AnswerStore
from fed_node.consent import Approvals, approved_plan, check_ask, check_policy, check_rows
from fed_node.errors import NotApproved
from fed_node.house_rules import HouseRules
from fed_node.ledger import Ledger
from fed_node.policy import Policy
from fed_node.seal import Seal
from fed_node.settings import LEDGER, PartySettings, budget_of
from fed_node.source import read_records
from synth import VERSION, wire
from synth.certificate import Statement, as_records
from synth.encoding.records import Records
from synth.errors import ProtocolError
from synth.interface import Answer, Ask
from synth.participation import spans_of
from synth.plan import Plan
from synth.privacy.noise import NoiseSource, seeded_source
from synth.programme import inquiries, whole_cost
from synth.stated import asked_digest
from synth.wire import Envelope

log = logging.getLogger("fed_node")

MOST_RUNS = 4  # held in memory at once; each holds the rows and a model


class Party:
    """Handles the messages of all runs at one institution, and its administrator's approvals beside them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.settings = PartySettings.load(home)
        self.rules = HouseRules(home)
        self._looking = threading.Lock()
        self.ledger = Ledger(home / LEDGER, self.settings.dataset, budget_of(self.settings, self.policy))
        self.approvals = Approvals(home / "approved")
        self.answers = AnswerStore(home / "answers")
        self.runs: dict[str, Run] = {}

    def handle(self, kind: str, envelope: Envelope) -> Envelope:
        """One message in, one out. Anything unexpected is refused."""
        self._heed_policy()
        run = self._run(envelope)
        if kind != "finish":  # to end a run and say what it spent is always allowed
            run.check_policy()
        match kind:
            case "hello":
                return run.hello(envelope)
            case "keys":
                return run.seal.keys(envelope)
            case "ask":
                return run.answer(envelope)
            case "confirm":
                return run.seal.confirm(envelope)
            case "open":
                return run.seal.open(envelope)
            case "finish":
                self.runs.pop(run.id, None)
                return run.finish()
        raise ProtocolError(f"unknown kind of message '{kind}'")

    @property
    def policy(self) -> Policy | None:
        return self.rules.policy

    def approve(self, plan: Plan) -> str:
        """Set the plan's whole cost aside and remember that it is approved; its digest."""
        self._heed_policy()
        if self.policy is not None:
            check_policy(self.policy, plan, self.settings.name)
        self.ledger.approve(plan.digest(), whole_cost(plan, self.settings.name))
        return self.approvals.approve(plan)

    def withdraw(self, digest: str) -> None:
        """Take an approval back: nothing more is answered under the plan, and what it holds unused is given back."""
        self.approvals.withdraw(digest)
        self.ledger.withdraw(digest)

    def _heed_policy(self) -> None:
        """What the policy's file says now holds from this message on."""
        with self._looking:
            if self.rules.look():
                log.info("the policy changed")
            self.ledger.set_budget(budget_of(self.settings, self.policy))

    def _run(self, envelope: Envelope) -> Run:
        run_id, digest = envelope.options.get("run"), envelope.options.get("plan")
        if not isinstance(run_id, str) or not isinstance(digest, str):
            raise ProtocolError("a message must name its run and its plan's digest")
        run = self.runs.get(run_id)
        if run is None or not self.approvals.has(run.plan.digest()):
            plan = approved_plan(
                self.approvals, self.policy, self.settings.name, digest, envelope.options.get("plan_text")
            )
            run = Run(self, run_id, plan)
            while len(self.runs) >= MOST_RUNS:  # a run put aside is taken up from the volume, as after a restart
                self.runs.pop(next(iter(self.runs)))
            self.runs[run_id] = run
        if run.plan.digest() != digest:
            raise ProtocolError("this run was opened under another plan")
        return run


class Run:
    """One approved plan being carried out."""

    def __init__(self, party: Party, run_id: str, plan: Plan) -> None:
        self.party, self.id, self.plan = party, run_id, plan
        self.name = party.settings.name
        if self.name not in {member.name for member in plan.parties}:
            raise ProtocolError(f"the plan does not name this party ('{self.name}')")
        self.inquiries = inquiries(plan)
        seed = party.settings.seed
        self.noise = NoiseSource() if seed is None else seeded_source(seed, run_id, self.name)
        self.seal = Seal(plan, self.name, run_id, party.home, party.settings.peers)

    @cached_property
    def _data(self) -> Records:
        return read_records(self.party.settings.source(self.party.home), self.plan.table)

    def check_policy(self) -> None:
        if (policy := self.party.policy) is not None:
            check_policy(policy, self.plan, self.name)

    def _rows(self) -> Records:
        """The party's rows, if they are as many as it wants to take part with."""
        if (policy := self.party.policy) is not None:
            check_rows(policy, len(self._data))
        return self._data

    def hello(self, envelope: Envelope) -> Envelope:
        """Say who we are, after making sure that we can see the run through: data fit, budget reserved."""
        self._rows()
        if not self.party.answers.is_finished(self.id):
            self._check_approval()
            events = [event for inquiry in self.inquiries.values() for event in inquiry.whole_cost(self.name)]
            self.party.ledger.reserve(self.id, self.plan.digest(), events)
        return self.seal.hello(envelope)

    def _check_approval(self) -> None:
        """A person's approval is for one run; to spend again on the same plan, it is given again."""
        automatic = self.party.policy is not None and self.party.policy.auto_approve
        if not automatic and self.party.ledger.is_used_up(self.plan.digest(), self.id):
            raise NotApproved(
                f"plan '{self.plan.name}' was approved for a run that has ended here; `fedsynth node approve PLAN` "
                "again lets it spend again."
            )

    def answer(self, envelope: Envelope) -> Envelope:
        sequence = self.seal.sequence(envelope)
        ask = wire.unpack_ask(envelope)
        check_ask(self.plan, ask, sequence)
        key = AnswerKey(self.id, sequence, wire.digest(wire.pack_ask(ask)))
        answer = self._stored_or_computed(key, ask)
        return self.seal.seal(answer, ask, envelope)

    def _stored_or_computed(self, key: AnswerKey, ask: Ask) -> Answer:
        """The answer to this very ask: from the store if it was given before, else charged, computed and stored."""
        if (stored := self.party.answers.get(key)) is not None:
            return stored[0]
        inquiry, rows = self.inquiries[str(ask.options["phase"])], self._rows()
        events = inquiry.cost(ask, self.name)
        self.party.ledger.charge(self.id, self.plan.digest(), key.sequence, key.digest, events)
        local = self.party.answers.latest_local(self.id)
        answer, local = inquiry.answer(ask, self.name, rows, local, self.noise.child("ask", key.sequence))
        self.party.answers.put(key, answer, local)
        return answer

    def finish(self) -> Envelope:
        """State what was spent, signed; give back what was reserved and not used; forget the answers."""
        self.party.ledger.release(self.id)
        statement = Statement(
            party=self.name,
            run=self.id,
            plan_digest=self.plan.digest(),
            schema_digest=self.plan.table.digest(),
            code_version=VERSION,
            image_digest=os.environ.get("FEDSYNTH_IMAGE_DIGEST"),
            events=as_records(self.party.ledger.events(self.id)),
            asks=spans_of(self.party.ledger.asks(self.id)),
            asked=asked_digest(self.party.ledger.ask_digests(self.id)),
            ledger_head=self.party.ledger.head,
            seeded=self.noise.seeded,
        )
        signed = self.seal.signed(statement.model_dump_json())
        self.party.answers.finish(self.id)
        return signed


@lru_cache(maxsize=8)
def party_at(home: Path) -> Party:
    """The party that lives in a folder; one per process, so data and models are loaded once."""
    return Party(home)
