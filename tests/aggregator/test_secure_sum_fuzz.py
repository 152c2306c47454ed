"""Thousands of damaged protocol messages, both ways: typed errors or the right answer, nothing else, and life goes on.

The generator is seeded, so a failure repeats. A damaged message that is accepted must mean what the proper one meant:
damage to a field nobody reads.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from aggregator.sums.exchange import Replies
from aggregator.sums.secure_sum import SecureSum
from synth.errors import FedsynthError
from synth.interface import Array
from synth.messages import wire
from synth.messages.wire import Envelope
from tests.aggregator.sealed_parties import RUN, TRAINING, SealedParties, admitted, assert_is_sum, plan_for

ME = "party-2"
ODD_VALUES: list[object] = ["", "x", -1, 0, 1, 2**61, 2**63 - 1, True, 1.5, float("nan"), "[]", "ed25519:AAAA"]


def damaged(envelope: Envelope, chance: random.Random) -> Envelope:
    """One to three accidents or attacks on an envelope's fields."""
    arrays, options = dict(envelope.arrays), dict(envelope.options)
    for _ in range(chance.randint(1, 3)):
        name = chance.choice(sorted(arrays) or [""])
        key = chance.choice(sorted(options) or [""])
        match chance.randrange(8):
            case 0 if arrays:
                del arrays[name]
            case 1 if options:
                options.pop(key, None)
            case 2:
                options[key or "new"] = chance.choice(ODD_VALUES)  # type: ignore[assignment]
            case 3 if arrays:
                arrays[chance.choice([*sorted(arrays), "voucher/party-9"])] = arrays[name]
            case 4 if len(arrays) > 1:
                arrays[f"{name}x"] = arrays.pop(name)
            case _ if arrays:
                arrays[name] = damaged_array(arrays[name], chance)
    return Envelope(arrays, options)


def damaged_array(array: Array, chance: random.Random) -> Array:
    match chance.randrange(7):
        case 0 | 1 | 2 if array.size:
            data = bytearray(array.tobytes())
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            return np.frombuffer(bytes(data), dtype=array.dtype).reshape(array.shape)
        case 3:
            return array[: chance.randrange(len(array) + 1)]
        case 4:
            return array.astype(np.float64) * np.nan
        case 5:
            return array.reshape(1, -1)
    return np.concatenate([array, array[:1]])


def same(one: Envelope, other: Envelope) -> bool:
    return wire.digest(one) == wire.digest(other)


def refused_or_harmless(
    message: Envelope, use: Callable[[Envelope], Envelope | None], times: int, seed: int, compare: bool = True
) -> int:
    """Deliver damaged messages; how many were refused."""
    proper, refusals, chance = use(message), 0, random.Random(seed)
    for _ in range(times):
        try:
            reply = use(damaged(message, chance))
        except FedsynthError:
            refusals += 1
        else:
            assert not compare or (proper is not None and reply is not None and same(reply, proper))
    return refusals


def sent(world: SealedParties, kind: str, party: str = ME) -> Envelope:
    return next(e for name, who, e in reversed(world.record) if (name, who) == (f"to {kind}", party))


@pytest.mark.parametrize("minimum", [None, 2])
def test_masked_messages_to_a_party(minimum: int | None, tmp_path: Path) -> None:
    world = SealedParties(plan_for("masked", secure_sum={"minimum_parties": minimum}), tmp_path)
    sums = admitted(world)
    sums.total(TRAINING, 0)
    refusals = refused_or_harmless(
        sent(world, "ask"), lambda m: world.deliver("ask", ME, m), 150, seed=1, compare=False
    )
    sums.total(TRAINING, 1)
    if minimum:
        refusals += refused_or_harmless(sent(world, "confirm"), lambda m: world.deliver("confirm", ME, m), 450, seed=2)
    assert refusals > 30
    assert_is_sum(sums.total(TRAINING, 2), sums.parties, 2)


@pytest.mark.parametrize("mode", ["masked", "ckks"])
def test_keys_to_a_party(mode: str, tmp_path: Path) -> None:
    """None of them begins an epoch with other parties or keys than were announced."""
    world = SealedParties(plan_for(mode), tmp_path)
    sums = admitted(world)
    seal = world.seals[ME]
    before = {name: s.hello(Envelope({}, {"epoch": 1})).arrays["announcement"] for name, s in world.seals.items()}
    content = Envelope({f"announcement/{k}": v for k, v in before.items()}, {"epoch": 1})
    if mode == "ckks":
        made = world.seals["party-1"].keys(content)
        content = Envelope(content.arrays | {"box": made.arrays[f"key/for/{ME}"]}, content.options)
    offer = seal.sessions.offered(1)

    def use(message: Envelope) -> None:
        seal.sessions._write("offer", {"epoch": 1, "key": offer.to_bytes().hex()})
        seal.sessions._last_epoch = 0  # or it would be refused as an epoch that was agreed on
        world.deliver("keys", ME, message)
        assert seal.sessions.current.parties == ["party-1", "party-2", "party-3"]
        assert seal.sessions.current.epoch == 1

    assert refused_or_harmless(content, use, 400 if mode == "masked" else 100, seed=3, compare=False) > 80
    assert_is_sum(sums.total(TRAINING, 0), sums.parties, 0)


def test_open_messages_to_a_party(tmp_path: Path) -> None:
    """A damaged ciphertext opens nothing and costs the key; everybody then agrees on a new one."""
    world = SealedParties(plan_for("ckks", secure_sum={"minimum_parties": 2}), tmp_path)
    sums = admitted(world)
    sums.total(TRAINING, 0)
    message, folder, kept = sent(world, "open"), world.home(ME) / "sessions" / RUN, tmp_path / "kept"
    shutil.copytree(folder, kept)

    def use(message: Envelope) -> Envelope:
        try:
            return world.deliver("open", ME, message)
        except FedsynthError:
            shutil.copytree(kept, folder, dirs_exist_ok=True)
            world.restart(ME)
            raise

    assert refused_or_harmless(message, use, 100, seed=4) > 50
    assert_is_sum(sums.total(TRAINING, 1), sums.parties, 1)


class Recorded:
    """Parties that say again what they said, damaged."""

    def __init__(self, world: SealedParties, chance: random.Random) -> None:
        self.said = {(kind.removeprefix("from "), party): e for kind, party, e in world.record if "from" in kind}
        self.chance = chance
        self.damages: tuple[str, str] | None = None

    def __call__(self, kind: str, envelopes: dict[str, Envelope]) -> Replies:
        replies = {party: self.said[kind, party] for party in envelopes}
        for party in replies:
            if self.damages == (kind, party):
                replies[party] = damaged(replies[party], self.chance)
        return Replies(replies)


@pytest.mark.parametrize(
    ("mode", "minimum", "times"), [("masked", None, 400), ("masked", 2, 600), ("ckks", 2, 120), ("plain", None, 300)]
)
def test_replies_to_the_aggregator(mode: str, minimum: int | None, times: int, tmp_path: Path) -> None:
    world = SealedParties(plan_for(mode, secure_sum={"minimum_parties": minimum}), tmp_path)
    sums = admitted(world)
    sums.total(TRAINING, 0)
    recorded = Recorded(world, random.Random(5))
    refusals = 0
    for _ in range(times):
        again = SecureSum(world.plan, RUN, recorded)
        recorded.damages = recorded.chance.choice(sorted(set(recorded.said)))
        try:
            again.agree_on_keys(recorded("hello", dict.fromkeys(again.parties, again.hello())).received)
            total = again.total(TRAINING, 0)
        except FedsynthError:
            refusals += 1
        else:
            assert_is_sum(total, sums.parties, 0)
    assert refusals > times / 3
    assert_is_sum(sums.total(TRAINING, 1), sums.parties, 1)
