"""Asks of the right phase at the right time that cannot be answered: each is refused before anything is charged.

Hundreds of asks for every phase of every family, each wrong in one way. What an aggregator that runs another version,
another plan or an attack could send: other options, other arrays, other types, other sizes, numbers that are none.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aggregator.sums.secure_sum import SecureSum
from fed_node.guard import Refused, attempt
from fed_node.party import Party
from synth.assessment.inquiry import AssessmentInquiry
from synth.interface import Array, Ask, Inquiry
from synth.messages import wire
from synth.messages.wire import Envelope
from synth.neural.question import SHARES
from synth.plan import Plan
from synth.statistics.mixture_rounds import statistics_inquiry
from synth.synthesizers.registry import build
from tests.contract.test_synthesizers import SMALLEST
from tests.fed_node.two_parties import ROWS, RUN, World, make_homes
from tests.small import plan_of

MALFORMED = 400  # for every family and phase
NAME = "party-1"
MASKED = {"statistics": "masked", "updates": "masked"}


@dataclass
class Waiting:
    """A party that was asked everything before `sequence`, and the proper ask that comes next."""

    plan: Plan
    party: Party
    sums: SecureSum
    proper: Ask
    sequence: int

    def envelope(self, ask: Ask) -> Envelope:
        packed = wire.pack_ask(ask)
        header: dict[str, Any] = {"run": RUN, "plan": self.plan.digest(), "epoch": 0, "sequence": self.sequence}
        return Envelope(packed.arrays, packed.options | header)


@contextmanager
def waiting(folder: Path, plan: Plan, phase: str) -> Iterator[Waiting]:
    """Through everything that precedes the last ask of the statistics, or the first of another phase."""
    parties = {name: Party(home) for name, home in make_homes(folder, plan).items()}
    world = World({name: party.handle for name, party in parties.items()})
    sums = SecureSum(plan, RUN, world)
    sums.agree_on_keys(world("hello", dict.fromkeys(sums.parties, sums.hello())).received)
    proper, asked = _next(plan, sums, phase)
    yield Waiting(plan, parties[NAME], sums, proper, asked)
    for party in parties.values():
        party.ledger.close()


def _next(plan: Plan, sums: SecureSum, phase: str) -> tuple[Ask, int]:
    """The ask that is to come, and how many came before."""
    statistics = statistics_inquiry(plan)
    if phase == "statistics":
        last = plan.family.statistics_asks - 1
        _drive(statistics, sums, 0, last)
        return _asked(statistics, last), last
    asked = plan.family.statistics_asks
    _drive(statistics, sums, 0, asked)
    synthesizer = build(plan)
    synthesizer.begin(statistics.result(), 1)
    if phase == "training":
        return _asked(synthesizer, 0), asked
    _drive(synthesizer, sums, asked, plan.family.asks)
    assessment = AssessmentInquiry(plan)
    assessment.begin(statistics.result(), synthesizer.sample(plan.rows, 1))
    return _asked(assessment, 0), asked + plan.family.asks


def _drive(inquiry: Inquiry, sums: SecureSum, sequence: int, count: int) -> None:
    for number in range(count):
        inquiry.absorb(sums.total(_asked(inquiry, number), sequence + number))


def _asked(inquiry: Inquiry, number: int) -> Ask:
    ask = inquiry.ask(number)
    assert ask is not None
    return ask


# ── one mistake ──


def _mistaken_array(rng: random.Random, array: Array) -> Array:
    """Another type, another shape, or a number that is none."""
    ways = ["type", "text", "axis", "longer"] + ["shorter"] * (array.size > 0)
    ways += ["number"] * (array.size > 0 and array.dtype.kind in "fi")  # of hashes, any number is one
    match rng.choice(ways):
        case "type":
            others = [kind for kind in ("f2", "f4", "f8", "i4", "i8", "u8", "?") if array.dtype != kind]
            return np.zeros(array.shape, rng.choice(others))
        case "text":
            return array.astype("U9")
        case "axis":
            return array[None]
        case "longer":
            return np.append(array.ravel(), array.ravel()[:1]) if array.size else np.zeros((1, *array.shape))
        case "shorter":
            return array.ravel()[:-1]
    broken = array.copy()
    worst = (np.nan, np.inf, -np.inf) if array.dtype.kind == "f" else (-(2**60), 2**60)
    broken.flat[rng.randrange(array.size)] = rng.choice(worst)
    return broken


def _mistaken_options(rng: random.Random, ask: Ask) -> Ask:
    options: dict[str, Any] = dict(ask.options)
    name = rng.choice(sorted(options))
    match rng.randrange(3):
        case 0:
            del options[name]
        case 1:
            options[rng.choice(["epsilon", "noise_multiplier", "", "Phase"])] = rng.choice([1, 0.5, "x", True])
        case 2:
            options[name] = rng.choice([-1, 2**70, 0.0, 1.0, True, "0", "", "none", float("inf")])
    return replace(ask, options=options)


def _mistake(rng: random.Random, ask: Ask) -> Ask:
    arrays, name = dict(ask.arrays), rng.choice([*sorted(ask.arrays), ""])
    ways = ["options", "more", "combine"] + ["array", "array", "less", "renamed"] * bool(name)
    match rng.choice(ways):
        case "options":
            return _mistaken_options(rng, ask)
        case "combine":
            return replace(ask, combine="sum" if ask.combine == "gather" else "gather")
        case "more":
            arrays[f"more/{rng.randrange(9)}"] = np.zeros(rng.randrange(4))
        case "array":
            arrays[name] = _mistaken_array(rng, arrays[name])
        case "less":
            del arrays[name]
        case "renamed":
            arrays[name + "x"] = arrays.pop(name)
    return replace(ask, arrays=arrays)


def _refuse_all(here: Waiting, seed: int) -> None:
    rng, codes = random.Random(seed), set()
    ledger = here.party.home / "ledger.sqlite"
    before = ledger.read_bytes()
    for _ in range(MALFORMED):
        envelope = here.envelope(_mistake(rng, here.proper))
        reply = attempt("ask", lambda envelope=envelope: here.party.handle("ask", envelope))  # type: ignore[misc]
        assert isinstance(reply, Refused), {k: (v.dtype, v.shape) for k, v in envelope.arrays.items()}
        codes.add(reply.code)
    assert ledger.read_bytes() == before
    assert codes <= {"protocol", "ask-outside-plan"}
    here.sums.total(here.proper, here.sequence)  # and the run goes on
    assert ledger.read_bytes() != before


@pytest.mark.parametrize("family", sorted(SMALLEST))
def test_asks_that_no_family_can_answer(tmp_path: Path, family: str) -> None:
    plan = plan_of(SMALLEST[family], parties=2, rows=ROWS, secure_sum=MASKED)
    with waiting(tmp_path, plan, "training") as here:
        _refuse_all(here, 1)


@pytest.mark.parametrize("profile", ["rigorous", "faithful"])
def test_asks_for_statistics_that_nobody_planned(tmp_path: Path, profile: str) -> None:
    plan = plan_of(SMALLEST["ctgan"], parties=2, rows=ROWS, secure_sum=MASKED, profile=profile)
    with waiting(tmp_path, plan, "statistics") as here:
        _refuse_all(here, 2)


def test_asks_for_an_assessment_that_nobody_planned(tmp_path: Path) -> None:
    plan = plan_of(SMALLEST["marginals"], parties=2, rows=ROWS, secure_sum=MASKED, assessment={"share": 0.2})
    with waiting(tmp_path, plan, "assessment") as here:
        _refuse_all(here, 4)


def test_weights_by_similarity_need_everybodys_shares(tmp_path: Path) -> None:
    settings = SMALLEST["ctgan"] | {"weighting": "similarity"}
    plain = {"privacy": {"epsilon": 3.0, "delta": 1e-5, "noise": "local"}}
    plan = plan_of(settings, parties=2, rows=ROWS, secure_sum=MASKED, **plain)
    with waiting(tmp_path, plan, "training") as here:
        for shares in ([1.0, 1e-300], [0.95, 0.05], [0.5, 0.6], [-0.5, 1.5], [0.5], [0.4, 0.3, 0.3]):
            ask = replace(here.proper, arrays=here.proper.arrays | {SHARES: np.array(shares)})
            reply = attempt("ask", lambda ask=ask: here.party.handle("ask", here.envelope(ask)))  # type: ignore[misc]
            assert isinstance(reply, Refused), shares
            assert reply.code == "protocol"
        _refuse_all(here, 3)
