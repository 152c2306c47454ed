"""A hostile aggregator with one colluding party plays 100,000 moves against real parties; then every hole that was ever
found is opened again, one at a time, and must be noticed. The last line is one JSON object.

    python -m benchmarks.adversary [--steps N] [--seed N]
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import tempfile
import time
from pathlib import Path

from tests.adversary.game import Violations, play
from tests.adversary.mutations import MUTATIONS, caught

GAME_STEPS = 250
MEMORY = Path("/dev/shm")  # a ledger waits for the disk at every entry; here it need not


def _game(seed: int) -> Violations:
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        return play(Path(folder) / "game", seed, GAME_STEPS)


def _mutation(name: str) -> bool:
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        return caught(name, Path(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=100_000, help="moves in all")
    parser.add_argument("--seed", type=int, default=1, help="of the first game; the others count on from it")
    arguments = parser.parse_args()
    games, began = -(-arguments.steps // GAME_STEPS), time.monotonic()
    noise = charges = likeness = 0
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        seeds = range(arguments.seed, arguments.seed + games)
        for number, found in enumerate(pool.imap(_game, seeds), start=1):
            noise, charges = noise + len(found.noise), charges + len(found.charges)
            likeness += len(found.likeness)
            for sentence in (*found.noise, *found.charges, *found.likeness):
                print(f"game {arguments.seed + number - 1}: {sentence}")
            if number % 40 == 0:
                print(f"{number * GAME_STEPS:,} moves in {time.monotonic() - began:.0f} s", flush=True)
        noticed = dict(zip(MUTATIONS, pool.map(_mutation, MUTATIONS, chunksize=1), strict=True))
    for name, is_caught in noticed.items():
        print(f"{'caught' if is_caught else 'MISSED'}: {name}")
    result = {
        "steps": games * GAME_STEPS,
        "opened_below_promise": noise,
        "uncharged": charges,
        "distinguishable": likeness,
        "mutations_caught": sum(noticed.values()),
        "mutations": len(noticed),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
