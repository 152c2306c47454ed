"""A dozen runs, a hundred faults of a dozen kinds, nobody at the keyboard (`make test-chaos`).

CHAOS_SEED, CHAOS_RUNS and CHAOS_FAULTS choose; what was done is printed, so that a failure can be played again, and a
session that was cut short goes on with CHAOS_FIRST. What must hold after each run is in chaos.py; a few faults that
heal quickly are part of `make test-kind`.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.e2e.chaos import Story
from tests.e2e.faults import chosen
from tests.e2e.federation import LASTING, Federation, a_cluster
from tests.small import plan_of, table

pytestmark = pytest.mark.chaos
PARTIES = ["party-1", "party-2", "party-3"]
SEED, RUNS, COUNT = (int(os.environ.get(f"CHAOS_{name}", given)) for name, given in
                     (("SEED", "1"), ("RUNS", "12"), ("FAULTS", "108")))  # fmt: skip
FIRST = int(os.environ.get("CHAOS_FIRST", "0"))


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with a_cluster():
        federation = Federation(tmp_path_factory.mktemp("chaos"), PARTIES)
        federation.provision()
        try:
            rows = {party: table(200, seed=number).to_csv(index=False) for number, party in enumerate(PARTIES)}
            federation.install({party: each.encode() for party, each in rows.items()}, policy=LASTING)
            told = Story(federation, lambda name: plan_of({"name": "ctgan", "rounds": 25}, name=name))
            yield told
            sys.stderr.write(f"\n{Counter(told.struck)}; named {sum(told.named)} of {len(told.named)}\n")
        finally:
            federation.remove()


@pytest.fixture(scope="module")
def calm(story: Story) -> float:
    """ε of a run that nothing happened to."""
    return story.epsilon(story.started("calm"))


@pytest.mark.parametrize("number", range(FIRST, RUNS))
def test_a_run_is_released_whatever_happens(story: Story, calm: float, number: int) -> None:
    share = -(-COUNT // RUNS)
    story.meet(chosen(SEED, COUNT, PARTIES)[number * share : (number + 1) * share], f"chaos-{number}", calm)


def test_whoever_is_missing_is_named(story: Story) -> None:
    assert all(story.named)
