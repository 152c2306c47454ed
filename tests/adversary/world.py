"""One federation whose aggregator is the adversary: it keeps all it ever saw and builds its messages from that.

Messages go to real `Party` objects through the guard, as a worker would hand them over. What a party lets out is
recorded where it is sealed (answer and key streams), so that what can be opened is known exactly, not guessed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fed_node.guard import Refused, attempt
from synth.grid import grid_of
from synth.interface import Arrays, Ask, Scalar
from synth.messages import wire
from synth.messages.fields import as_array, as_arrays, blob, blobs
from synth.messages.wire import Envelope
from synth.plan import Plan
from synth.statistics.histograms import Statistics
from synth.synthesizers.registry import build
from tests.adversary.consortium import COLLUDER, Home, plans
from tests.adversary.moves import (
    Approve,
    Confirm,
    Finish,
    Hello,
    Junk,
    Keys,
    Lose,
    Move,
    Open,
    Question,
    Replay,
    Restart,
    Where,
    Withdraw,
)
from tests.adversary.recorder import Recorder

Outcome = tuple[Any, ...]  # what an observer of the wire sees of a reply, but for randomness
MOST_REMEMBERED = 40  # messages that can be replayed


@dataclass
class Heard:
    """What the adversary has of one run under one plan."""

    announcements: dict[str, tuple[int, bytes]] = field(default_factory=dict)  # by party: epoch, message
    epoch: dict[str, int] = field(default_factory=dict)  # by party: the epoch it began last,
    parties: dict[str, tuple[str, ...]] = field(default_factory=dict)  # and over whom
    letters: dict[str, bytes] = field(default_factory=dict)  # the CKKS key, sealed, by recipient
    sealed: dict[tuple[str, int], Envelope] = field(default_factory=dict)  # by party and sequence, latest
    consents: dict[tuple[str, int], Envelope] = field(default_factory=dict)


class World:
    """Plays moves; `play` returns what came back."""

    def __init__(self, homes: dict[str, Home], recorder: Recorder) -> None:
        self.homes, self.recorder = homes, recorder
        self.heard: dict[tuple[str, int], Heard] = {}
        self.last_said: dict[str, tuple[int, bytes]] = {}
        self.sent: list[tuple[str, Envelope]] = []
        self.approvals = {name: [plan.digest() for plan in plans()] for name in homes}

    def play(self, move: Move) -> Outcome:
        match move:
            case Hello(to, epoch):
                text = self._plan(to).model_dump_json(by_alias=True)
                return self._send(to, "hello", Envelope({}, {"epoch": epoch, "plan_text": text}), self._greeted)
            case Keys():
                return self._keys(move)
            case Question():
                return self._question(move)
            case Confirm(to, sequence):
                envelope = Envelope(self._vouchers(to, sequence), self._place(to, sequence))
                return self._send(to, "confirm", envelope, self._confirmed(to, sequence))
            case Open():
                return self._open(move)
            case Finish(to):
                return self._send(to, "finish", Envelope())
            case Junk(to, kind):
                return self._send(to, kind, Envelope({"noise": np.zeros(3)}, {"sequence": 99, "epoch": 99}))
            case Replay(place, party):
                if not self.sent:
                    return ("nothing",)
                kind, envelope = self.sent[place % len(self.sent)]
                return self._deliver(party, kind, envelope)
            case Restart(party):
                self.homes[party].restart()
            case Lose(party, folder):
                shutil.rmtree(self.homes[party].path / folder, ignore_errors=True)
                self.homes[party].restart()
            case Approve(party, place):
                return self._decide(lambda: self.homes[party].party.approve(plans()[place]))
            case Withdraw(party, place):
                return self._decide(lambda: self.homes[party].party.withdraw(plans()[place].digest()))
        return ("done",)

    # Messages

    def _keys(self, move: Keys) -> Outcome:
        heard = self._heard(move.to)
        source = self.last_said if move.stolen else heard.announcements
        messages = {party: source[party] for party in move.parties if party in source}
        epoch = max((epoch for epoch, _ in messages.values()), default=0)
        arrays = as_arrays("announcement", {party: message for party, (_, message) in messages.items()})
        if move.to.party in heard.letters:
            arrays |= {"box": as_array(heard.letters[move.to.party])}

        def begun(reply: Envelope) -> None:
            heard.epoch[move.to.party], heard.parties[move.to.party] = epoch, tuple(sorted(messages))
            letters = blobs(reply, "key")
            if letters:
                heard.letters = {name.removeprefix("for/"): box for name, box in letters.items() if name != "public"}

        return self._send(move.to, "keys", Envelope(arrays, {"epoch": epoch}), begun)

    def _question(self, move: Question) -> Outcome:
        ask = ask_of(move.to.plan, move.sequence, move.variant)
        packed = wire.pack_ask(ask)
        place = self._place(move.to, move.sequence)
        place["epoch"] = max(0, int(place["epoch"]) - move.late)

        def sealed(reply: Envelope) -> None:
            self._heard(move.to).sealed[move.to.party, move.sequence] = reply

        return self._send(move.to, "ask", Envelope(packed.arrays, packed.options | place), sealed)

    def _open(self, move: Open) -> Outcome:
        heard, (to, sequence) = self._heard(move.to), (move.to, move.sequence)
        arrays = self._vouchers(to, sequence)
        for party, reply in self._of_list(to, heard.sealed, sequence).items():
            source = heard.sealed.get((to.party, sequence), reply) if party == move.leave_out else reply
            arrays[f"sealed/{party}"] = source.arrays["sealed"]
        for party, reply in self._of_list(to, heard.consents, sequence).items():
            arrays |= {f"consent/{party}": reply.arrays["consent"], f"seed/{party}": reply.arrays["seed"]}

        def opened(reply: Envelope) -> None:
            self.recorder.opened(reply.arrays["counts"], heard.parties[to.party], to.run, sequence)

        return self._send(to, "open", Envelope(arrays, self._place(to, sequence)), opened)

    def _greeted(self, reply: Envelope) -> None:
        party, epoch = str(reply.options["party"]), int(reply.options["epoch"])
        said = epoch, blob(reply, "announcement")
        self.last_said[party] = said
        self._latest.announcements[party] = said

    def _confirmed(self, to: Where, sequence: int) -> Callable[[Envelope], None]:
        def keep(reply: Envelope) -> None:
            self._heard(to).consents[to.party, sequence] = reply
            self.recorder.learn(blob(reply, "seed"))

        return keep

    def _vouchers(self, to: Where, sequence: int) -> Arrays:
        found = self._of_list(to, self._heard(to).sealed, sequence)
        return {f"voucher/{party}": reply.arrays["voucher"] for party, reply in found.items()}

    def _of_list(self, to: Where, found: dict[tuple[str, int], Envelope], sequence: int) -> dict[str, Envelope]:
        """What those sent for this ask who are in the receiver's epoch, as far as the adversary knows."""
        parties = self._heard(to).parties.get(to.party, ())
        return {party: found[party, sequence] for party in parties if (party, sequence) in found}

    def _place(self, to: Where, sequence: int) -> dict[str, Scalar]:
        return {"epoch": self._heard(to).epoch.get(to.party, 0), "sequence": sequence}

    # Delivery

    def _send(
        self, to: Where, kind: str, envelope: Envelope, heard: Callable[[Envelope], None] = lambda _: None
    ) -> Outcome:
        self._latest = self._heard(to)
        header: dict[str, Scalar] = {"run": to.run, "plan": self._plan(to).digest()}
        message = Envelope(envelope.arrays, envelope.options | header)
        self.sent = [*self.sent[-MOST_REMEMBERED:], (kind, message)]
        return self._deliver(to.party, kind, message, heard)

    def _deliver(
        self, party: str, kind: str, message: Envelope, heard: Callable[[Envelope], None] = lambda _: None
    ) -> Outcome:
        home = self.homes[party]
        with self.recorder.at(party):
            reply = attempt(kind, lambda: home.party.handle(kind, message))
        if isinstance(reply, Refused):
            return "refused", reply.code
        heard(reply)
        return "replied", *_seen(reply)

    def _decide(self, decision: Callable[[], object]) -> Outcome:
        outcome = attempt("decide", decision)
        return ("refused", outcome.code) if isinstance(outcome, Refused) else ("done",)

    def _heard(self, to: Where) -> Heard:
        return self.heard.setdefault((to.run, to.plan), Heard())

    def _plan(self, to: Where) -> Plan:
        return plans()[to.plan]

    @property
    def coalition(self) -> set[str]:
        return {COLLUDER}


def _seen(reply: Envelope) -> Outcome:
    """Names, types, shapes and sizes of everything, and all numbers outside arrays; random bytes only by their size.

    A CKKS key is packed, so its size varies with the key itself, which no row has any part in."""
    sized = {name: array.shape for name, array in reply.arrays.items() if not name.startswith("key/")}
    arrays = tuple((name, array.dtype.str, sized.get(name)) for name, array in sorted(reply.arrays.items()))
    options = ((k, len(v) if isinstance(v, str) else v) for k, v in sorted(reply.options.items()))
    return arrays, tuple(options)


def ask_of(place: int, sequence: int, variant: int) -> Ask:
    """The ask of that number as the plan's own family would put it, after statistics that the adversary made up."""
    plan = plans()[place]
    if sequence == 0:
        return Ask(options={"phase": "statistics"} | ({"round": variant} if variant else {}))
    grid = grid_of(plan)
    counts = np.random.default_rng(variant).integers(50, 500, grid.size)
    family = build(plan)
    family.begin(Statistics.released(grid, counts, 1.0, 1.0), seed=variant)
    first = family.ask(0)
    assert first is not None
    arrays, number = dict(first.arrays), sequence - 1
    if number > 0:  # the second round: any of the planned pairs, as many as planned
        pairs = arrays["cliques"]
        arrays["cliques"] = np.roll(pairs, variant, axis=0)[:2]
    return Ask(arrays, {"phase": "training", "round": number})


def fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
