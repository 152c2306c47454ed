"""An aggregator that keeps every byte it ever saw, alone or with one party's help: what it can open, and what not."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

from crypto.ckks import PartyContext, _ciphertext
from crypto.encrypted import EncryptedVector
from crypto.errors import CryptoError
from crypto.quantize import narrowest_counts
from crypto.ring_digits import RingDigits
from fed_node.errors import NoSession, NotSealed, SumRefused
from synth.errors import FedsynthError, Refusal
from synth.interface import Arrays, Scalar
from synth.messages.fields import as_array, as_arrays, blob, blobs
from synth.messages.sums import Layout, count_limit
from synth.messages.wire import Envelope
from tests.aggregator.sealed_parties import (
    STATISTICS,
    TRAINING,
    SealedParties,
    admitted,
    answer_of,
    assert_is_sum,
    plan_for,
)

WINDOW_BYTES = 48


def seen_bytes(world: SealedParties) -> bytes:
    """Everything that passed the aggregator, in one piece."""
    parts = [array.tobytes() for _, _, envelope in world.record for array in envelope.arrays.values()]
    texts = [str(value).encode() for _, _, envelope in world.record for value in envelope.options.values()]
    return b"|".join(parts + texts)


def replies(world: SealedParties, kind: str) -> dict[str, Envelope]:
    """The last reply of each party to this kind of message."""
    return {party: envelope for name, party, envelope in world.record if name == f"from {kind}"}


def context_of(world: SealedParties, party: str = "party-1") -> PartyContext:
    context = world.seals[party].sessions.current.context
    assert context is not None
    return context


def test_no_secret_key_is_in_what_the_aggregator_holds(tmp_path: Path) -> None:
    world = SealedParties(plan_for("ckks"), tmp_path)
    sums = admitted(world)
    sums.total(STATISTICS, 0)
    seen, context = seen_bytes(world), context_of(world)
    secret, public = context.secret_bytes(), context.public.data
    windows = [
        secret[start : start + WINDOW_BYTES] for start in range(0, len(secret) - WINDOW_BYTES, WINDOW_BYTES // 2)
    ]
    private = [window for window in windows if window not in public]
    assert len(private) > 500  # the key is in there ...
    assert not [window for window in private if window in seen]  # ... and nowhere here
    assert public in seen
    for seal in world.seals.values():
        assert seal.sessions.current.key.to_bytes() not in seen
        assert seal.credentials.identity.to_bytes() not in seen


def test_the_aggregators_context_opens_nothing(tmp_path: Path) -> None:
    world = SealedParties(plan_for("ckks"), tmp_path)
    sums = admitted(world)
    sums.total(STATISTICS, 0)
    assert sums.epoch is not None
    public = sums.epoch.public
    assert public is not None
    assert not public._context.has_secret_key()
    vector = EncryptedVector.from_bytes(blob(replies(world, "ask")["party-1"], "sealed"))
    with pytest.raises(ValueError, match="secret_key"):
        _ciphertext(public._context, vector.chunks()[0]).decrypt()
    with pytest.raises(CryptoError):
        PartyContext(public.data)


def other_ciphertexts(sealed: dict[str, bytes]) -> dict[str, dict[str, bytes]]:
    """What an aggregator could send in place of the three vouched ciphertexts to learn one of them.

    The last is what lattice reduction found a q for: a small polynomial that is nearly 0 on the slots of any fixed
    pattern, so that Σc + q·c_victim keeps the pattern. Here q = 2 stands for it; no q passes, as nothing altered does.
    """
    first, second, victim = (sealed[party] for party in sorted(sealed))
    vector = EncryptedVector.from_bytes(victim)
    coefficients = np.frombuffer(vector.body, "<u8")
    zero = EncryptedVector(vector.context_digest, vector.length, bytes(len(vector.body))).to_bytes()
    scaled = EncryptedVector(vector.context_digest, vector.length, (3 * coefficients).tobytes()).to_bytes()
    flipped = bytearray(victim)
    flipped[-1] ^= 1
    names = sorted(sealed)
    return {
        "one alone": dict(zip(names, (zero, zero, victim), strict=True)),
        "one left out": dict(zip(names, (first, second, zero), strict=True)),
        "one twice": dict(zip(names, (first, victim, victim), strict=True)),
        "one bit": dict(zip(names, (first, second, bytes(flipped)), strict=True)),
        "one missing": dict(zip(names[:2], (first, second), strict=True)),
        "one more": dict(zip([*names, "party-9"], (first, second, victim, victim), strict=True)),
        "a multiple of one": dict(zip(names, (first, second, scaled), strict=True)),
    }


@pytest.mark.parametrize("minimum", [None, 2])
def test_parties_open_nothing_but_the_sum_of_what_was_vouched_for(minimum: int | None, tmp_path: Path) -> None:
    """There is no message in which a sum of the aggregator's own could stand, and an altered ciphertext fails."""
    world = SealedParties(plan_for("ckks", secure_sum={"minimum_parties": minimum}), tmp_path)
    sums = admitted(world)
    total = sums.total(TRAINING, 0)
    proper = next(envelope for kind, _, envelope in world.record if kind == "to open")
    kinds = {"sealed", "voucher"} | ({"consent", "seed"} if minimum else set())
    assert {name.split("/")[0] for name in proper.arrays} == kinds
    opener = world.seals["party-1"]
    for what, sealed in other_ciphertexts(blobs(proper, "sealed")).items():
        arrays = {name: array for name, array in proper.arrays.items() if not name.startswith("sealed/")}
        with pytest.raises(SumRefused) as refused:
            opener.open(Envelope(arrays | as_arrays("sealed", sealed), proper.options))
        code = "crypto.participation.unknown-identity" if what == "one more" else "crypto.forged"
        assert refused.value.code == code, what
    aggregators_own = Envelope(proper.arrays | {"total": as_array(b"anything")}, proper.options)
    again = opener.open(aggregators_own)  # nobody reads it; refused ciphertexts cost no key, for none was tried
    assert np.array_equal(again.arrays["reals"][-1:], [total.weight])  # type: ignore[union-attr]


def test_masked_answers_are_no_ciphertexts(tmp_path: Path) -> None:
    world = SealedParties(plan_for("masked"), tmp_path)
    admitted(world).total(TRAINING, 0)
    with pytest.raises(NotSealed):
        world.seals["party-1"].open(Envelope({}, {"epoch": 0, "sequence": 0}))


def test_a_party_that_encrypts_something_else_costs_everybody_the_key(tmp_path: Path) -> None:
    """Its digits are no digits: the sum is forged, and the key is not tried a second time."""
    world = SealedParties(plan_for("ckks"), tmp_path)
    sums = admitted(world)
    liar = world.seals["party-3"].sessions.current.context
    assert liar is not None
    honest = liar.encrypt
    object.__setattr__(liar, "encrypt", lambda slots, parties: honest(slots + 0.4, parties=parties))
    with pytest.raises(Refusal) as refused:
        sums.total(STATISTICS, 0)
    assert refused.value.code == "crypto.forged"
    with pytest.raises(NoSession):
        world.seals["party-1"].sequence(Envelope({}, {"epoch": 0, "sequence": 0}))
    assert_is_sum(sums.total(STATISTICS, 0), sums.parties, 0)
    assert sums.epoch is not None
    assert sums.epoch.number == 1


def test_a_round_is_opened_from_one_set_of_ciphertexts_only(tmp_path: Path) -> None:
    """Encrypting the same numbers again gives another ciphertext; it is not opened in the same epoch."""
    world = SealedParties(plan_for("ckks"), tmp_path)
    sums = admitted(world)
    first = sums.total(STATISTICS, 0)
    before = len(world.record)
    again = sums.total(STATISTICS, 0)
    assert sums.epoch is not None
    assert sums.epoch.number == 1  # refused as already opened; a new epoch made it possible
    assert [kind for kind, _, _ in world.record[before:]].count("from keys") == 3
    assert np.array_equal(first.arrays["counts"], again.arrays["counts"])  # type: ignore[union-attr]


def test_a_party_that_gives_the_ckks_key_away_shows_nobodys_counts(tmp_path: Path) -> None:
    """With the key, one party's ciphertext opens; the counts inside are masked, the reals (noisy already) are not."""
    world = SealedParties(plan_for("ckks"), tmp_path)
    admitted(world).total(STATISTICS, 0)
    vector = EncryptedVector.from_bytes(blob(replies(world, "ask")["party-1"], "sealed"))
    colluder = context_of(world, "party-3")
    rows = np.array([_ciphertext(colluder._context, chunk).decrypt() for chunk in vector.chunks()])
    slots = rows.ravel()[: vector.length]
    truth = answer_of("party-1", 0)
    counts, reals = Layout.of(truth).flatten(truth)
    codec = narrowest_counts(count_limit(world.plan), 3)
    digits = RingDigits(codec.bits, 3)
    split = digits.slots(counts.size)
    assert not np.any(codec.decode(digits.decode(slots[:split])) == counts)  # false alarm: 26 / 2^32
    assert np.allclose(slots[split:] * (reals[-1] / slots[-1]), reals, atol=1e-6)


def test_masked_vectors_of_some_parties_are_uniform(tmp_path: Path) -> None:
    """Every proper subset, over many rounds; with own masks, even all three before they are confirmed.

    Seven chi-square tests of 256 byte values at 1e-6 each: one false alarm in 140,000 runs.
    """
    world = SealedParties(plan_for("masked", secure_sum={"minimum_parties": 2}), tmp_path)
    sums = admitted(world)
    rounds: list[Arrays] = []
    for sequence in range(25):
        sums.total(TRAINING, sequence)
        rounds.append({p: np.frombuffer(blob(e, "sealed"), "<u8") for p, e in replies(world, "ask").items()})
    names = sorted(rounds[0])
    for size in (1, 2, 3):
        for subset in combinations(names, size):
            words = np.concatenate([np.sum([each[p] for p in subset], axis=0, dtype=np.uint64) for each in rounds])
            observed = np.bincount(words.view(np.uint8), minlength=256)
            expected = words.nbytes / 256
            assert np.sum((observed - expected) ** 2 / expected) < chi2.isf(1e-6, 255), subset


@pytest.mark.parametrize("mode", ["masked", "ckks"])
def test_a_loss_invented_before_the_sum_is_confirmed_gives_one_sum_only(mode: str, tmp_path: Path) -> None:
    """All three answered; the aggregator says that one was lost, gets the sum of two, and returns to the first."""
    world = SealedParties(plan_for(mode, secure_sum={"minimum_parties": 2}), tmp_path)
    sums = admitted(world)
    all_three: dict[str, Envelope] = {}

    def hide(kind: str, party: str, reply: Envelope) -> Envelope:
        if kind == "ask" and len(all_three) < 3:
            all_three[party] = reply
            if len(all_three) == 3:
                world.lost.add(("*", "party-3"))
                raise LookupError  # the aggregator stops here and begins again
        return reply

    world.incoming = hide
    with pytest.raises(LookupError):
        sums.total(TRAINING, 0)
    first = sums.epoch
    assert first is not None
    sums.total(TRAINING, 0)  # party-3 is "lost": the sum of two
    assert sums.parties == ["party-1", "party-2"]
    vouchers: Arrays = {f"voucher/{party}": reply.arrays["voucher"] for party, reply in all_three.items()}
    header: dict[str, Scalar] = {"epoch": first.number, "sequence": 0}
    for party in ("party-1", "party-2"):
        with pytest.raises(SumRefused) as refused:
            world.seals[party].confirm(Envelope(dict(vouchers), dict(header)))
        assert refused.value.code == "crypto.misplaced.wrong-epoch"
    mine = world.seals["party-3"].confirm(Envelope(dict(vouchers), dict(header)))  # it cannot know, and stands by all
    if mode == "ckks":  # it holds the key, but does not open without the consent of all
        some: Arrays = {f"sealed/{party}": reply.arrays["sealed"] for party, reply in all_three.items()}
        some |= {"consent/party-3": mine.arrays["consent"], "seed/party-3": mine.arrays["seed"]}
        with pytest.raises(SumRefused) as refused:
            world.seals["party-3"].open(Envelope(some | vouchers, dict(header)))
        assert refused.value.code == "crypto.participation.too-few-parties"


@pytest.mark.parametrize("mode", ["masked", "ckks"])
def test_different_questions_to_different_parties_give_no_sum(mode: str, tmp_path: Path) -> None:
    """One party gets the model, the others a dead one: their masks do not cancel, and nobody opens the sum."""
    world = SealedParties(plan_for(mode), tmp_path)
    sums = admitted(world)

    def other(kind: str, party: str, envelope: Envelope) -> Envelope:
        dead = {"ask/weights": np.zeros(3)}
        return Envelope(envelope.arrays | dead, envelope.options) if (kind, party) == ("ask", "party-1") else envelope

    world.outgoing = other
    with pytest.raises(FedsynthError) as refused:
        sums.total(TRAINING, 0)
    assert refused.value.code == "crypto.misplaced.wrong-question"  # an honest aggregator notices first
    received = replies(world, "ask")
    if mode == "masked":
        words = [np.frombuffer(blob(reply, "sealed"), "<u8") for reply in received.values()]
        counts = (words[0] + words[1] + words[2])[:26].view(np.int64)
        assert np.abs(counts).min() > 10**9  # uniform in ±2^63, the counts are below 2000; false alarm: 3e-9
        return
    arrays = as_arrays("sealed", {party: blob(reply, "sealed") for party, reply in received.items()})
    arrays |= {f"voucher/{party}": reply.arrays["voucher"] for party, reply in received.items()}
    for seal in world.seals.values():
        with pytest.raises(SumRefused) as closed:
            seal.open(Envelope(arrays, {"epoch": 0, "sequence": 0}))
        assert closed.value.code == "crypto.misplaced.wrong-question"
