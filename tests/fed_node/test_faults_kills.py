"""A party that is killed for real, hundreds of times, at every step between a question and its answer.

Whatever is killed: what was computed was charged before, no ask is charged twice, and the run ends with the very
result of a run that nobody disturbed.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.process import BaseProcess
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from fed_node.ledger.ledger import LedgerView
from fed_node.ledger.tally import tally_of
from fed_node.party import Party
from fed_node.process.frames import Request
from fed_node.process.worker import ready_file
from fed_node.process.worker_client import WorkerAway, ask_worker
from synth.certificate.certificate import events_of
from synth.errors import FedsynthError
from synth.messages.wire import Envelope
from synth.plan import Plan
from synth.privacy.accounting import compose
from tests.fed_node.mortal_worker import BOUNDARIES, serve_mortally
from tests.fed_node.two_parties import COST, ROUNDS, CheapTraining, Outcome, World, make_homes, run_all, small_plan

SEEDS = range(4)
KILLS = 52  # for each seed; 208 in all
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.fed_node.mortal_worker"])
IMMORTAL = ("never", 1)


@pytest.fixture(autouse=True)
def cheap_training() -> Iterator[None]:
    with mock.patch("synth.programme.build", CheapTraining):
        yield


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is such a place: a kill loses no written byte, so a disk would prove nothing more."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name)


@dataclass
class Supervisor:
    """Starts the worker again whenever it is killed, as a cluster would, and looks at its ledger each time."""

    home: Path
    fates: list[tuple[str, int]]
    deaths: Counter[str] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)
    ended: bool = False

    def __post_init__(self) -> None:
        self.socket = self.home / "w.sock"
        self.process: BaseProcess | None = None
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self) -> None:
        while not self.ended:
            fate = self.fates.pop() if self.fates else IMMORTAL
            self.process = FORKS.Process(target=serve_mortally, args=(self.home, self.socket, *fate))
            self.process.start()
            self.process.join()
            if self.process.exitcode == -signal.SIGKILL:
                self.deaths[fate[0]] += 1
                self.check()

    def check(self) -> None:
        """Right after a kill: everything that was ever computed stands in the ledger, and nothing stands twice."""
        try:
            ledger = LedgerView(self.home / "ledger.sqlite")
        except FedsynthError as error:
            self.complaints.append(f"the ledger is not whole: {error}")
            return
        computed = {line for line in _lines(self.home / "computed") if line.startswith("training")}
        charged = tally_of(ledger.events())
        if not tally_of([COST] * len(computed)) <= charged:
            self.complaints.append(f"computed {len(computed)} answers, charged only {charged}")
        sequences = Counter(entry.sequence for entry in ledger.history() if entry.kind == "charge")
        if sequences and max(sequences.values()) > 1:
            self.complaints.append(f"charged twice: {sequences}")
        ledger.close()

    def deliver(self, kind: str, envelope: Envelope) -> Envelope:
        """As the ClientApp does, and as the aggregator would resume when it gives up."""
        while True:
            try:
                return ask_worker(self.socket, Request(kind, envelope), patience_seconds=30)
            except WorkerAway:
                continue

    def stop(self) -> None:
        self.ended = True
        assert self.process is not None
        self.process.terminate()
        self.thread.join()


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


@cache
def undisturbed(plan_rounds: int) -> Outcome:
    with tempfile.TemporaryDirectory() as name:
        return calm_run(Path(name), small_plan(plan_rounds))


def calm_run(folder: Path, plan: Plan) -> Outcome:
    parties = {name: Party(home) for name, home in make_homes(folder, plan).items()}
    outcome = run_all(plan, World({name: party.handle for name, party in parties.items()}))
    for party in parties.values():
        party.ledger.close()
    return outcome


def same(left: Outcome, right: Outcome) -> bool:
    return np.array_equal(left.counts, right.counts) and np.array_equal(left.state, right.state)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_worker_killed_at_every_boundary_loses_and_repeats_nothing(folder: Path, seed: int) -> None:
    plan, rng = small_plan(), random.Random(seed)
    boundaries = [*BOUNDARIES, *rng.choices(BOUNDARIES, k=KILLS - len(BOUNDARIES))]  # each at least once
    rng.shuffle(boundaries)
    fates = [(boundary, rng.choice((1, 1, 2))) for boundary in boundaries]
    expected = undisturbed(plan.family.asks)
    homes = make_homes(folder, plan)
    other = Party(homes["party-2"])
    supervisor = Supervisor(homes["party-1"], list(fates))
    try:
        outcome = run_all(plan, World({"party-1": supervisor.deliver, "party-2": other.handle}))
    finally:
        supervisor.stop()
        other.ledger.close()
    assert sum(supervisor.deaths.values()) == KILLS
    assert set(supervisor.deaths) == set(BOUNDARIES)
    assert supervisor.complaints == []
    assert same(outcome, expected)
    stated = events_of(outcome.statements["party-1"])
    assert stated == events_of(expected.statements["party-1"])
    ledger = LedgerView(homes["party-1"] / "ledger.sqlite")
    assert ledger.verify() == 3 + 2 * (1 + ROUNDS) + 1  # open, approve, reserve; charge and answer for each ask; finish
    assert ledger.committed().epsilon >= compose(stated, ledger.spent().delta).epsilon
    ledger.close()


def _doomed(socket: Path, request: Request) -> None:
    ask_worker(socket, request)
    signal.pause()


def test_a_client_app_killed_while_it_waits_costs_nothing(folder: Path) -> None:
    """The node kills or loses the ClientApp at any moment of a message; the next one gets the same answer."""
    plan, rng = small_plan(rounds=12), random.Random(5)
    expected = undisturbed(plan.family.asks)
    homes = make_homes(folder, plan)
    other, supervisor = Party(homes["party-2"]), Supervisor(homes["party-1"], [])
    kills = 0

    def deliver(kind: str, envelope: Envelope) -> Envelope:
        nonlocal kills
        if kind == "ask":
            client = FORKS.Process(target=_doomed, args=(supervisor.socket, Request(kind, envelope)))
            client.start()
            time.sleep(rng.uniform(0, 0.06))
            assert client.pid is not None
            os.kill(client.pid, signal.SIGKILL)
            client.join()
            kills += 1
        return supervisor.deliver(kind, envelope)

    try:
        outcome = run_all(plan, World({"party-1": deliver, "party-2": other.handle}))
    finally:
        supervisor.stop()
        other.ledger.close()
    assert kills == 13
    assert same(outcome, expected)
    assert supervisor.deaths == {}
    assert not ready_file(supervisor.socket).exists()  # it was told to end, and did so in order
    assert not supervisor.socket.exists()
