"""A party that gives the shared CKKS key to the aggregator, where the plan tolerates the loss of parties.

Four parties, D colludes. The aggregator collects answers for {A, B, C, D}, claims that C was lost and collects the same
numbers for {A, B, D}. With D's keys it decrypts whatever it likes and asks nobody to confirm. Pairwise masks cancel in
both sums, so without the parties' own masks inside the ciphertexts the difference would be C's counts with one share of
the noise.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aggregator.sums.secure_sum import SecureSum
from crypto.confirming import uncover
from crypto.masking import RingVector
from crypto.vectors import EncryptedVectors
from fed_node.seal.numbers import context_of, shape_of
from synth.errors import Refusal
from synth.messages.fields import blob, blobs
from synth.messages.sums import Layout
from synth.messages.wire import Envelope
from tests.aggregator.sealed_parties import STATISTICS, SealedParties, admitted, answer_of, plan_for, sum_of

COLLUDER, VICTIM = "party-4", "party-3"
EVERYBODY = ["party-1", "party-2", VICTIM, COLLUDER]
OTHERS = ["party-1", "party-2", COLLUDER]


class Stopped(Exception):
    """The aggregator has what it wanted and does not go on."""


@pytest.fixture
def world(tmp_path: Path) -> SealedParties:
    return SealedParties(plan_for("ckks", parties=4, secure_sum={"minimum_parties": 3, "colluders": 1}), tmp_path)


def collected(world: SealedParties, sums: SecureSum) -> dict[str, Envelope]:
    """Everybody's answer to ask 0 in a new epoch, and nothing after it."""

    def stop(kind: str, party: str, envelope: Envelope) -> Envelope:
        if kind == "confirm":
            raise Stopped
        return envelope

    world.outgoing = stop
    with pytest.raises(Stopped):
        sums.total(STATISTICS, 0)
    world.outgoing = lambda kind, party, envelope: envelope
    answers = [(party, reply) for kind, party, reply in world.record if kind == "from ask"]
    return dict(answers[-len(sums.parties) :])


def decrypted(world: SealedParties, answers: dict[str, Envelope]) -> tuple[EncryptedVectors, RingVector]:
    """What the colluder's key shows of their sum."""
    parties, layout = sorted(answers), Layout.of(answer_of(COLLUDER, 0))
    vectors = EncryptedVectors(shape_of(world.plan, layout, len(parties)))
    sent = [(party, blob(answers[party], "sealed")) for party in parties]
    key = context_of(world.seals[COLLUDER].sessions.current)
    return vectors, vectors.parts(key.open(sent, length=vectors.size, parties=parties))[0]


def counts_of(parties: list[str]) -> np.ndarray:  # type: ignore[type-arg]
    total = sum_of(parties, 0)
    return np.concatenate([total.arrays["counts"], total.arrays["rows"]])


def test_two_lists_without_any_confirmation_show_nobodys_counts(world: SealedParties) -> None:
    sums = admitted(world)
    first, with_victim = decrypted(world, collected(world, sums))
    world.lost, sums.epoch, sums.parties = {("*", VICTIM)}, None, OTHERS
    second, without = decrypted(world, collected(world, sums))
    # Each comparison is of 26 counts with values uniform in the ring of 32 bits or more: false alarm 26 / 2^32 each.
    assert not np.any(first.counts(with_victim) == counts_of(EVERYBODY))
    assert not np.any(second.counts(without) == counts_of(OTHERS))
    assert not np.any(first.counts(with_victim) - second.counts(without) == counts_of([VICTIM]))


def test_the_list_that_is_confirmed_opens_and_the_other_stays_closed_for_ever(world: SealedParties) -> None:
    sums = admitted(world)
    collected(world, sums)
    world.lost, sums.epoch, sums.parties = {("*", VICTIM)}, None, OTHERS
    sums.total(STATISTICS, 0)
    message = next(envelope for kind, _, envelope in reversed(world.record) if kind == "to open")
    answers = {party: reply for kind, party, reply in world.record if kind == "from ask" and party != VICTIM}
    vectors, covered = decrypted(world, answers)
    opened = uncover(covered, blobs(message, "seed"), parties=OTHERS)
    assert np.array_equal(vectors.counts(opened), counts_of(OTHERS))  # so the masks were all that hid it
    world.lost = set()
    again = SecureSum(world.plan, "run-1", world)  # everybody is back: the numbers are bound to the shorter list
    again.agree_on_keys(world("hello", dict.fromkeys(EVERYBODY, again.hello())).received)
    with pytest.raises(Refusal) as refused:
        again.total(STATISTICS, 0)
    assert refused.value.code == "already-confirmed"
