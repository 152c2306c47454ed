"""A long, seeded game: the adversary mixes honest rounds, cut off or bent anywhere, with moves out of nowhere.

Purely random messages would be refused at the door for ever. So most moves come from scripts (a whole round over some
list of parties under some plan), and deviations are put between them: that is how a hostile aggregator works, too.
"""

from __future__ import annotations

import random
import shutil
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from crypto.keys import IdentityKey
from synth.messages.sums import tolerates_loss
from tests.adversary.consortium import COLLUDER, NAMES, Home, make_homes, neighbour, plans, table
from tests.adversary.invariants import below_promise, uncharged
from tests.adversary.moves import (
    FOLDERS,
    RUNS,
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
from tests.adversary.world import World

SEQUENCES = 3  # asks of every plan
DEVIATION = 0.12  # how often something else is put before the next move of a script


@dataclass
class Violations:
    """What was found, as sentences, by promise."""

    noise: set[str] = field(default_factory=set)
    charges: set[str] = field(default_factory=set)
    likeness: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.noise or self.charges or self.likeness)


class Game:
    """Two worlds that differ by one row at one honest party, played alike."""

    def __init__(self, folder: Path, case: int = 0) -> None:
        tables = {name: table(number) for number, name in enumerate(NAMES)}
        honest = [name for name in NAMES if name != COLLUDER]
        changed = tables | {honest[case % 3]: neighbour(tables[honest[case % 3]], case)}
        keys = {name: IdentityKey.generate() for name in NAMES}
        self.worlds = [
            World(make_homes(folder / str(number), rows, keys), Recorder(frozenset({COLLUDER})))
            for number, rows in enumerate((tables, changed))
        ]
        self.found = Violations()
        self.steps = 0

    def play(self, move: Move) -> None:
        here, there = (world.play(move) for world in self.worlds)
        self.steps += 1
        if here != there:
            self.found.likeness.add(f"{move}: {here} on one table, {there} on its neighbour")
        world = self.worlds[0]
        if isinstance(move, Question | Confirm | Open | Replay):
            self.found.noise.update(below_promise(world.recorder))
        if isinstance(move, Question | Replay | Hello):
            self.found.charges.update(uncharged(world))

    def close(self) -> None:
        for world in self.worlds:
            for home in world.homes.values():
                home.party.ledger.close()


@contextmanager
def game(folder: Path, case: int = 0) -> Iterator[Game]:
    made = Game(folder, case)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


class Player:
    """Chooses the next move by luck alone."""

    def __init__(self, seed: int) -> None:
        self.luck = random.Random(seed)
        self.script: deque[Move] = deque()
        self.turns = [0] * len(plans())  # runs that were ended, by plan

    def moves(self, count: int) -> Iterator[Move]:
        for _ in range(count):
            if self.luck.random() < DEVIATION:
                yield self.deviation()
                continue
            if not self.script:
                self.script.extend(self.round())
            yield self.script.popleft()

    def round(self) -> list[Move]:
        """A round as an honest aggregator plays it, over a run, a plan and a list that luck chose, perhaps cut off."""
        place = self.luck.randrange(len(plans()))
        run = f"run-{place}-{self.turns[place]}" if self.luck.random() < 0.8 else self.luck.choice(RUNS)
        parties = self.some_of(place)
        to = {party: Where(party, run, place) for party in parties}
        moves: list[Move] = [Approve(party, place) for party in parties] if self.luck.random() < 0.3 else []
        moves += [Hello(to[party]) for party in parties]
        moves += [Keys(to[party], tuple(parties)) for party in parties]
        for sequence in range(self.luck.randint(1, SEQUENCES)):
            moves += [Question(to[party], sequence) for party in parties]
            if tolerates_loss(plans()[place]):
                moves += [Confirm(to[party], sequence) for party in parties]
            if plans()[place].secure_sum.statistics == "ckks":
                moves += [Open(to[party], sequence) for party in parties[:2]]
        if self.luck.random() < 0.15:
            moves += [Finish(to[party]) for party in parties]
            self.turns[place] += 1
        return moves if self.luck.random() < 0.6 else moves[: self.luck.randint(1, len(moves))]

    def some_of(self, place: int) -> list[str]:
        """The plan's parties, or most of them."""
        parties = sorted(party.name for party in plans()[place].parties)
        if len(parties) > 2 and self.luck.random() < 0.4:
            parties.remove(self.luck.choice(parties))
        return parties

    def deviation(self) -> Move:
        luck = self.luck
        to = Where(luck.choice(NAMES), luck.choice(RUNS), luck.randrange(len(plans())))
        sequence = luck.randrange(SEQUENCES)
        return luck.choice(
            [
                Hello(to, luck.randrange(4)),
                Keys(to, tuple(self.some_of(to.plan)), stolen=luck.random() < 0.5),
                Question(to, sequence, luck.randrange(3), luck.randrange(2)),
                Confirm(to, sequence),
                Open(to, sequence, luck.choice(["", *NAMES])),
                Finish(to),
                Junk(to, luck.choice(["hello", "keys", "ask", "confirm", "open", "finish", "nonsense"])),
                Junk(Where(to.party, f"junk-{luck.randrange(6)}", to.plan), luck.choice(["hello", "keys", "finish"])),
                Replay(luck.randrange(40), luck.choice(NAMES)),
                Restart(to.party),
                Lose(to.party, luck.choice(FOLDERS)),
                Approve(to.party, to.plan),
                Withdraw(to.party, to.plan),
            ]
        )


def play(folder: Path, seed: int, steps: int) -> Violations:
    """One game of so many moves."""
    with game(folder, seed) as made:
        for move in Player(seed).moves(steps):
            made.play(move)
        return made.found


def homes_of(made: Game) -> dict[str, Home]:
    return made.worlds[0].homes
