"""One institution: its rows, its keys, its ledger, and the order in which they are used.

`answer` is the whole privacy argument on one screen: approved? → charged → computed → stored → noted → sealed. A party
holds no state that a restart would lose; what matters is on its volume before anything leaves. A run belongs to one
plan, from its first message on and by the ledger; what is in memory only saves time.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path

from fed_node.answers import AnswerKey, AnswerStore, check_run_name, digest_of
from fed_node.consent.approvals import Approvals, check_ask, check_automatic, check_policy, sent_plan
from fed_node.consent.offers import OFFERED, Offers
from fed_node.consent.policy import Policy
from fed_node.consent.policy_file import PolicyFile
from fed_node.consent.prices import Prices
from fed_node.errors import NotApproved, NotReserved, PolicyRefused, RunFinished, RunOfAnotherPlan, StoreDamaged
from fed_node.ledger.ledger import Ledger
from fed_node.linkage.opening import forget, post_of, rows_of
from fed_node.private import close_to_others
from fed_node.seal.seal import Seal
from fed_node.settings import LEDGER, PartySettings, budget_of
from fed_node.witnesses import Witnesses
from synth import VERSION
from synth.audit_log import FILE, AuditLog, caller
from synth.certificate.certificate import Statement
from synth.certificate.participation import spans_of
from synth.certificate.stated import asked_digest
from synth.encoding.rows import Rows
from synth.errors import FedsynthError, ProtocolError
from synth.interface import Answer, Ask
from synth.messages import wire
from synth.messages.wire import Envelope
from synth.plan import Plan
from synth.privacy.coin import Coin
from synth.privacy.events import as_records
from synth.privacy.noise import NoiseSource, seeded_source
from synth.programme import inquiries

log = logging.getLogger("fed_node")

MOST_RUNS = 4  # held in memory at once; each holds the rows and a model


class Party:
    """Handles the messages of all runs at one institution, and its administrator's approvals beside them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.settings = PartySettings.load(home)
        self.policy_file = PolicyFile(home)
        self._looking = threading.Lock()
        self._require_ledger()
        close_to_others(home)
        self.ledger = Ledger(home / LEDGER, self.settings.dataset, budget_of(self.settings, self.policy))
        self.approvals = Approvals(home / "approved")
        self.prices = Prices(home / "prices", self.settings.name)
        self.begun = Approvals(home / "begun")  # copies of plans that a policy approved, to take their runs up again
        self.offers = Offers(home / OFFERED, self.settings.name)
        self.answers = AnswerStore(home / "answers")
        self.audit_log = AuditLog(home / FILE, self.settings.name)
        self.witnesses = Witnesses(home, self.settings.name, self.settings.dataset, self.ledger)
        with closing_on_failure(self.ledger):
            self.witnesses.require_whole()
        for run in self.answers.ended_before():
            self.ledger.finish(run)
        self.runs: dict[str, Run] = {}

    def handle(self, kind: str, envelope: Envelope) -> Envelope:
        """One message in, one out. Anything unexpected is refused, and what is refused changes nothing."""
        self._reload_policy()
        self.witnesses.require_open()
        run = self._run(kind, envelope)
        if kind != "finish":  # to end a run and say what it spent is always allowed
            run.check_policy()
        reply = run.handle(kind, envelope)
        self._keep(run, kind)
        return reply

    @property
    def policy(self) -> Policy | None:
        return self.policy_file.policy

    def approve(self, plan: Plan, who: str | None = None) -> str:
        """Set the plan's whole cost aside and remember that it is approved, and by whom; its digest."""
        with self.audit_log.noted("approve", who or caller(), plan=plan.digest()):
            self._reload_policy()
            if self.policy is not None:
                check_policy(self.policy, plan, self.settings.name)
            self.ledger.approve(plan.digest(), events := self.prices.worked_out(plan))
            self.prices.keep(plan, events)
            return self.approvals.approve(plan)

    def withdraw(self, digest: str, who: str | None = None) -> None:
        """Take an approval back: nothing more is answered under the plan, and what it holds unused is given back."""
        with self.audit_log.noted("withdraw", who or caller(), plan=digest):
            for kept in (self.approvals, self.prices, self.begun):
                kept.withdraw(digest)
            self.ledger.withdraw(digest)

    def _require_ledger(self) -> None:
        """Refuse to begin a new ledger where runs have left their traces: it would forget what they spent."""
        traces = [name for name in ("answers", "sessions") if next((self.home / name).glob("*"), None)]
        if traces and not (self.home / LEDGER).exists():
            raise StoreDamaged(
                f"{self.home / LEDGER} is missing, but {' and '.join(traces)} beside it say that runs were answered "
                "here. Restore it from a backup: a new one would forget what was spent."
            )

    def _reload_policy(self) -> None:
        """What the policy's file says now holds from this message on."""
        with self._looking:
            if self.policy_file.reload():
                log.info("the policy changed")
            self.ledger.set_budget(budget_of(self.settings, self.policy))

    def _run(self, kind: str, envelope: Envelope) -> Run:
        """The run that a message belongs to, if the ledger knows it under this plan and the plan is approved."""
        run_id, digest = envelope.options.get("run"), envelope.options.get("plan")
        if not isinstance(run_id, str) or not isinstance(digest, str):
            raise ProtocolError("a message must name its run and its plan's digest")
        bound = self.ledger.plan_of(check_run_name(run_id))
        if bound is None and kind != "hello":
            raise NotReserved(f"run {run_id} never began here; the aggregator must say hello first")
        if bound not in (None, digest):
            raise RunOfAnotherPlan(f"run {run_id} was begun under another plan; a new plan needs a new run")
        known = self.runs.get(run_id)
        plan = self._approved(kind, digest, envelope.options.get("plan_text"), known.plan if known else None)
        return known or Run(self, run_id, plan)

    def _approved(self, kind: str, digest: str, text: object, known: Plan | None) -> Plan:
        """The plan of that digest, if a person approved it or the policy does now."""
        if self.approvals.has(digest):
            return known or self.approvals.get(digest)
        if self.ledger.is_withdrawn(digest):
            raise NotApproved(f"plan {digest} was withdrawn; only `fedsynth node approve PLAN` lets it run again.")
        if known is None:
            known = self.begun.get(digest) if self.begun.has(digest) else sent_plan(digest, text)
        if kind != "finish":
            with self.offers.kept_if_refused(known):
                check_automatic(self.policy, known)
        return known

    def _keep(self, run: Run, kind: str) -> None:
        """Hold a run in memory, or let it go. One put aside is taken up from the volume, as after a restart."""
        self.runs.pop(run.id, None)
        if kind == "finish":
            return
        while len(self.runs) >= MOST_RUNS:
            self.runs.pop(next(iter(self.runs)))
        self.runs[run.id] = run


class Run:
    """One approved plan being carried out."""

    def __init__(self, party: Party, run_id: str, plan: Plan) -> None:
        self.party, self.id, self.plan, self.name = party, run_id, plan, party.settings.name
        if self.name not in {member.name for member in plan.parties}:
            raise ProtocolError(f"the plan does not name this party ('{self.name}')")
        self.inquiries = inquiries(plan)
        seed = party.settings.seed
        self.noise = NoiseSource() if seed is None else seeded_source(seed, run_id, self.name)
        self.seal = Seal(plan, self.name, run_id, party.home, party.settings.peers, party.ledger, party.witnesses)

    @cached_property
    def _data(self) -> Rows:
        return rows_of(self.plan, self.party.settings, self.party.home, self.seal, Coin(self.noise))

    def handle(self, kind: str, envelope: Envelope) -> Envelope:
        if kind not in ("hello", "finish"):
            self._require_open(kind)
        match kind:
            case "hello":
                return self.hello(envelope)
            case "keys":
                return self.seal.keys(envelope)
            case "letters":
                post = post_of(self.plan, self._data, self.inquiries, self.seal)
                return post.handle(envelope, self.noise)
            case "ask":
                return self.answer(envelope)
            case "confirm":
                return self.seal.confirm(envelope)
            case "open":
                return self.seal.open(envelope)
            case "finish":
                return self.finish()
        raise ProtocolError(f"unknown kind of message '{kind}'")

    def _require_open(self, kind: str) -> None:
        if self.party.ledger.is_finished(self.id):
            if kind == "keys":  # an aggregator that was killed before it published greets everybody, then finishes
                return
            raise RunFinished(f"run {self.id} has ended here and its answers are gone; start a new run.")
        if not self.party.ledger.is_open(self.id):
            raise NotReserved(f"run {self.id} was withdrawn; approve its plan and say hello again.")

    def check_policy(self) -> None:
        if (policy := self.party.policy) is not None:
            check_policy(policy, self.plan, self.name)

    def hello(self, envelope: Envelope) -> Envelope:
        """Say who we are, after making sure that we can see the run through: rows there, budget reserved."""
        party, digest = self.party, self.plan.digest()
        self.seal.check_hello(envelope)  # before anything is written: what is refused leaves nothing behind
        _ = self._data
        if not party.ledger.is_finished(self.id):
            automatic = party.policy is not None and party.policy.covers(self.plan)
            self._require_room()
            party.ledger.reserve(self.id, digest, party.prices.of(self.plan), automatic=automatic)
            if not (party.approvals.has(digest) or party.begun.has(digest)):
                party.begun.approve(self.plan)
        return self.seal.hello(envelope)

    def _require_room(self) -> None:
        """Every run leaves entries and files here, even one that spends nothing. Those that nobody approved are
        counted, or an aggregator could fill the volume with them."""
        ledger, policy = self.party.ledger, self.party.policy
        if policy is None or ledger.plan_of(self.id) is not None or ledger.is_set_aside(self.plan.digest()):
            return
        if ledger.automatic_runs() >= policy.maximum_automatic_runs:
            raise PolicyRefused(
                f"{ledger.automatic_runs()} runs began here without anybody's approval, and no more may. Approve this "
                "plan, or raise maximum_automatic_runs in the policy if they were in order."
            )

    def answer(self, envelope: Envelope) -> Envelope:
        sequence = self.seal.sequence(envelope)
        ask = wire.unpack_ask(envelope)
        check_ask(self.plan, ask, sequence)
        key = AnswerKey(self.id, self.plan.digest(), sequence, wire.digest(wire.pack_ask(ask)))
        answer = self._stored_or_computed(key, ask)
        self.party.ledger.answer(self.id, sequence, key.digest, digest_of(answer))
        return self.seal.seal(answer, ask, envelope)

    def _stored_or_computed(self, key: AnswerKey, ask: Ask) -> Answer:
        """The answer to this very ask: from the store if it was given before, else charged, computed and stored."""
        if (stored := self.party.answers.get(key)) is not None:
            return stored[0]
        if self.party.ledger.is_answered(self.id, key.sequence):
            raise StoreDamaged(
                f"run {self.id}, ask {key.sequence}: its answer may have left and is not stored any more. Another one "
                "would carry new noise and cost nothing. Restore the volume as a whole, or start a new run."
            )
        inquiry, rows = self.inquiries[str(ask.options["phase"])], self._data
        events = inquiry.cost(ask, self.name)
        self.party.ledger.charge(self.id, self.plan.digest(), key.sequence, key.digest, events)
        local = self.party.answers.latest_local(self.id)
        answer, local = inquiry.answer(ask, self.name, rows, local, self.noise.child("ask", key.sequence))
        self.party.answers.put(key, answer, local)
        return answer

    def finish(self) -> Envelope:
        """State what was spent, signed; give back what was reserved and not used; forget the answers."""
        self.party.ledger.finish(self.id)
        ended = self.party.ledger.end_of(self.id).number
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
            opened=self.seal.journal.released,
            ledger_head=str(self.party.ledger.head_at(ended)),
            ledger_entries=ended,
            seeded=self.noise.seeded,
            keys_made_by="operator" if self.party.settings.keys_made_by == "operator" else None,
        )
        signed = self.seal.signed(statement.model_dump_json())
        self.party.answers.forget(self.id)
        forget(self.seal)
        return signed


@contextmanager
def closing_on_failure(ledger: Ledger) -> Iterator[None]:
    """A party that cannot begin lets go of its ledger, so that its administrator can mend it."""
    try:
        yield
    except FedsynthError:
        ledger.close()
        raise


@cache  # a party that was let go of would still hold its ledger's lock
def party_at(home: Path) -> Party:
    """The party that lives in a folder; one per process, so data and models are loaded once."""
    return Party(home)
