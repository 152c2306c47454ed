"""Who may decide what, with hypothesis choosing: party, operator and aggregator take turns, in any order.

Two machines. In the first a party approves, withdraws, changes its policy and restarts while the aggregator says hello:
no run begins that nobody let begin. In the second kits are made, changed, signed anew and installed: no release ever
believes a key that nobody read out, and none holds what an operator has no say in.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from crypto.keys import IdentityKey
from fed_node.guard import Refused, attempt
from fed_node.party import Party
from fedsynth.provision.contents import KitValues
from fedsynth.provision.fingerprints import of_values, page, read_page
from fedsynth.provision.kit import FILES
from fedsynth.provision.signature import SIGNATURE
from synth import programme
from synth.messages.wire import Envelope
from synth.plan import Plan
from tests.adversary.test_attacks_kit import WISHES, InstalledWorld, played
from tests.fed_node.two_parties import CheapTraining, make_homes, small_plan

MOST_AUTOMATIC = 3
PLANS = [small_plan(rounds=rounds, privacy={"epsilon": 0.1, "delta": 1e-5}) for rounds in (3, 4, 5)]
PLAN, RUN = st.sampled_from(PLANS), st.sampled_from([f"run-{number}" for number in range(6)])
QUICKLY = settings(max_examples=15, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck))


class Decisions(RuleBasedStateMachine):
    """One party, its administrator, and an aggregator that would like to begin runs."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.patch = mock.patch.object(programme, "build", CheapTraining)
        self.patch.start()
        self.home = make_homes(self.folder, PLANS[0], approved=False)["party-1"]
        self.approved: set[str] = set()  # by a person, not withdrawn since
        self.withdrawn: set[str] = set()
        self.begun: dict[str, str] = {}  # run → plan
        self.write_policy(False, 1000)
        self.party = Party(self.home)

    def teardown(self) -> None:
        if hasattr(self, "party"):
            self.party.ledger.close()
            self.patch.stop()
            shutil.rmtree(self.folder, ignore_errors=True)

    @rule(covers=st.booleans(), rounds=st.sampled_from([4, 1000]))
    def write_policy(self, covers: bool, rounds: int) -> None:
        self.covers, self.rounds = covers, rounds
        text = {"maximum_epsilon_per_run": 5, "maximum_epsilon_in_total": 50, "maximum_delta": 1e-5, "minimum_rows": 50}
        listed = [PLANS[0].table.digest()] if covers else []
        limits = {"maximum_rounds": rounds, "auto_approve": listed, "maximum_automatic_runs": MOST_AUTOMATIC}
        (self.home / "policy.yaml").write_text(json.dumps(text | limits))

    @rule(plan=PLAN)
    def approve(self, plan: Plan) -> None:
        done = attempt("approve", lambda: self.party.approve(plan))
        assert isinstance(done, Refused) == (plan.family.asks > self.rounds)
        if not isinstance(done, Refused):
            self.approved.add(plan.digest())
            self.withdrawn.discard(plan.digest())

    @rule(plan=PLAN)
    def withdraw(self, plan: Plan) -> None:
        self.party.withdraw(plan.digest())
        self.approved.discard(plan.digest())
        self.withdrawn.add(plan.digest())

    @rule()
    def restart(self) -> None:
        self.party.ledger.close()
        self.party = Party(self.home)

    @rule(kind=st.sampled_from(["hello", "finish"]), plan=PLAN, run=RUN)
    def aggregator_says(self, kind: str, plan: Plan, run: str) -> None:
        digest, text = plan.digest(), json.dumps(plan.model_dump(mode="json", by_alias=True))
        envelope = Envelope({}, {"run": run, "plan": digest, "plan_text": text, "epoch": 0})
        reply = attempt(kind, lambda: self.party.handle(kind, envelope))
        if isinstance(reply, Refused) or kind == "finish":
            return
        assert plan.family.asks <= self.rounds
        assert self.begun.setdefault(run, digest) == digest
        assert digest in self.approved or (self.covers and digest not in self.withdrawn)

    @rule(kind=st.sampled_from(["administrator/approve", "administrator/withdraw"]), plan=PLAN)
    def aggregator_poses_as_administrator(self, kind: str, plan: Plan) -> None:
        text = json.dumps(plan.model_dump(mode="json", by_alias=True))
        options = {"run": "run-0", "plan": text, "digest": plan.digest()}
        assert isinstance(attempt(kind, lambda: self.party.handle(kind, Envelope({}, options))), Refused)

    @invariant()
    def only_persons_approve_and_no_more_runs_than_allowed_began_without(self) -> None:
        if hasattr(self, "party"):
            assert set(self.party.approvals.digests()) == self.approved
            assert self.party.ledger.automatic_runs() <= MOST_AUTOMATIC
            self.party.ledger.verify()


class Kits(RuleBasedStateMachine):
    """An operator who may be anybody, a carrier who may change files, and a party that types what it heard."""

    @initialize()
    def begin(self) -> None:
        self.folder, self.stack = Path(tempfile.mkdtemp()), ExitStack()
        self.world = InstalledWorld(self.folder)
        self.stack.enter_context(played(self.world))
        self.world.provision()
        marks = read_page(self.folder / "out/fingerprints.txt")
        self.heard = {name: mark for name, mark in marks.items() if "node" not in name}
        self.world.heard.write_text(page("as heard", self.heard))
        shutil.copytree(self.world.kit, self.folder / "honest")
        self.signed = [self.world.values()]

    def teardown(self) -> None:
        if hasattr(self, "stack"):
            self.stack.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    @rule()
    def send_the_honest_kit(self) -> None:
        shutil.rmtree(self.world.kit)
        shutil.copytree(self.folder / "honest", self.world.kit)

    @rule(name=st.sampled_from([*FILES, SIGNATURE]), place=st.integers(0, 5_000), by=st.integers(1, 127))
    def change_a_byte(self, name: str, place: int, by: int) -> None:
        path = self.world.kit / name
        if path.exists() and (content := bytearray(path.read_bytes())):
            content[place % len(content)] ^= by
            path.write_bytes(content)

    @rule(
        name=st.sampled_from(["secrets.yaml", "more.yaml", *FILES]),
        text=st.sampled_from(["", "kind: Secret\n", "a: 1"]),
    )
    def put_a_file(self, name: str, text: str) -> None:
        (self.world.kit / name).write_text(text)

    @rule(peer=st.sampled_from(["south", "east"]))
    def sign_another_peer(self, peer: str) -> None:
        stranger = IdentityKey.generate().identity.to_text()
        self._as_operator(lambda values: values["party"]["peers"].update({peer: stranger}))

    @rule(wish=st.sampled_from([wish for wish in WISHES if set(wish) & {"images", "policy", "networkPolicy", "pod"}]))
    def sign_a_wish(self, wish: dict[str, Any]) -> None:
        self._as_operator(lambda values: values.update(wish))

    def _as_operator(self, change: Any) -> None:
        self.send_the_honest_kit()
        self.world.resign(change)
        self.signed.append(self.world.values())

    @rule(by_file=st.booleans())
    def install(self, by_file: bool) -> None:
        before = len(self.world.installed)
        asked = ["the authority", "the federation", "south", "west"]  # in the order of the questions
        typed = "".join(f"{self.heard[name][-8:]}\n" for name in asked)
        words = ["--fingerprints", str(self.world.heard)] if by_file else []
        done = self.world.install(*words, typed=None if by_file else typed)
        assert (done.exit_code == 0) == (len(self.world.installed) > before)
        assert done.exit_code in (0, 1, 2), done.exception

    @invariant()
    def what_is_installed_was_heard_and_is_on_the_list(self) -> None:
        for values in self.world.installed if hasattr(self, "world") else []:
            assert of_values(values).items() <= self.heard.items()
            assert values in self.signed  # to the letter, the endpoint too
            KitValues.model_validate(values)
            assert self.world.applied == []


TestDecisions, TestKits = Decisions.TestCase, Kits.TestCase
TestDecisions.settings = TestKits.settings = QUICKLY
