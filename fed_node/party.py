"""One institution: its rows, its keys, its ledger, and the order in which they are used.

`answer` is the whole privacy argument on one screen: approved? → charged → computed → stored → sealed. A party holds
no state that a restart would lose; what matters is on its volume before anything leaves.
"""

from __future__ import annotations

import os
from functools import cached_property, lru_cache
from pathlib import Path

from fed_node.answers import AnswerKey, AnswerStore
from fed_node.consent import Approvals, approved_plan, check_ask, check_policy, check_rows
from fed_node.ledger import Ledger
from fed_node.seal import Seal
from fed_node.settings import LEDGER, PartySettings, budget_of, policy_at
from fed_node.source import read_records
from synth import VERSION, wire
from synth.certificate import Statement, as_records
from synth.encoding.records import Records
from synth.errors import ProtocolError
from synth.inquiries import inquiries
from synth.interface import Answer, Ask
from synth.plan import Plan
from synth.privacy.noise import NoiseSource, seeded_source
from synth.wire import Envelope

MOST_RUNS = 4  # held in memory at once; each holds the rows and a model


class Party:
    """Handles the messages of all runs at one institution."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.settings = PartySettings.load(home)
        self.policy = policy_at(home)
        self.ledger = Ledger(home / LEDGER, self.settings.dataset, budget_of(self.settings, self.policy))
        self.approvals = Approvals(home / "approved")
        self.answers = AnswerStore(home / "answers")
        self.runs: dict[str, Run] = {}

    def handle(self, kind: str, envelope: Envelope) -> Envelope:
        """One message in, one out. Anything unexpected is refused."""
        run = self._run(envelope)
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
                del self.runs[run.id]
                return run.finish()
        raise ProtocolError(f"unknown kind of message '{kind}'")

    def _run(self, envelope: Envelope) -> Run:
        run_id, digest = envelope.options.get("run"), envelope.options.get("plan")
        if not isinstance(run_id, str) or not isinstance(digest, str):
            raise ProtocolError("a message must name its run and its plan's digest")
        run = self.runs.get(run_id)
        if run is None:
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
        if party.policy is not None:
            check_policy(party.policy, plan, self.name)
        self.inquiries = inquiries(plan)
        seed = party.settings.seed
        self.noise = NoiseSource() if seed is None else seeded_source(seed, run_id, self.name)
        self.seal = Seal(plan, self.name, run_id, party.home, party.settings.peers)

    @cached_property
    def data(self) -> Records:
        records = read_records(self.party.settings.source(self.party.home), self.plan.table)
        if self.party.policy is not None:
            check_rows(self.party.policy, len(records))
        return records

    def hello(self, envelope: Envelope) -> Envelope:
        """Say who we are, after making sure that we can see the run through: data fit, budget reserved."""
        _ = self.data
        if not self.party.answers.is_finished(self.id):
            events = [event for inquiry in self.inquiries.values() for event in inquiry.whole_cost(self.name)]
            self.party.ledger.reserve(self.id, self.plan.digest(), events)
        return self.seal.hello(envelope)

    def answer(self, envelope: Envelope) -> Envelope:
        sequence = self.seal.moment(envelope).number
        ask = wire.unpack_ask(envelope, self.name)
        check_ask(self.plan, ask, sequence)
        key = AnswerKey(self.id, sequence, wire.digest(wire.pack_ask(ask, self.name)))
        answer = self._stored_or_computed(key, ask)
        return self.seal.seal(answer, ask, envelope)

    def _stored_or_computed(self, key: AnswerKey, ask: Ask) -> Answer:
        """The answer to this very ask: from the store if it was given before, else charged, computed and stored."""
        if (stored := self.party.answers.get(key)) is not None:
            return stored[0]
        inquiry = self.inquiries[str(ask.options["phase"])]
        events = inquiry.cost(ask, self.name)
        self.party.ledger.charge(self.id, self.plan.digest(), key.sequence, key.digest, events)
        local = self.party.answers.latest_local(self.id)
        answer, local = inquiry.answer(ask, self.name, self.data, local, self.noise.child("ask", key.sequence))
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
