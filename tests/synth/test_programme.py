"""A run's asks are listed in one place, and that place is light enough for a party's front door."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fed_node.consent.approvals import check_ask
from fed_node.consent.description import describe
from fed_node.errors import AskOutsidePlan
from synth.certificate.certificate import noise_in_words, sampling_in_words
from synth.errors import ProtocolError
from synth.family import MIXTURE_ROUNDS, Sampling
from synth.interface import Ask
from synth.plan import Plan
from synth.programme import costs, inquiries, only_plain, programme, whole_cost
from synth.statistics.histograms import Statistics
from synth.statistics.mixture_rounds import MixtureInquiry
from tests.contract.test_synthesizers import SMALLEST
from tests.inline import Inline
from tests.small import plan_of, table

ROOT = Path(__file__).parents[2]
PLANS: dict[str, dict[str, Any]] = {
    "private": {},
    "exact": {"privacy": "none"},
    "assessed": {"assessment": {"share": 0.2, "pairs": 5}},
    "plain": {
        "secure_sum": {"statistics": "plain", "updates": "plain"},
        "privacy": {"epsilon": 3, "delta": 1e-5, "noise": "local"},
    },
}


def plan_for(family: str, kind: str) -> Plan:
    return plan_of(SMALLEST[family], **PLANS[kind])


@pytest.mark.parametrize("family", SMALLEST)
@pytest.mark.parametrize("kind", PLANS)
def test_steps_stages_inquiries_and_costs_are_of_one_length(family: str, kind: str) -> None:
    plan = plan_for(family, kind)
    planned = programme(plan)
    steps = list(planned)
    assert steps == [planned.step(sequence) for sequence in range(planned.asks)]
    assert planned.step(-1) is planned.step(planned.asks) is None
    assert list(inquiries(plan)) == [stage.phase for stage in planned.stages]
    assert all(inquiry.phase == phase for phase, inquiry in inquiries(plan).items())
    assert len(costs(plan, "party-1")) == planned.asks
    assert whole_cost(plan, "party-1") == [event for ask in costs(plan, "party-1") for event in ask]
    assert only_plain(plan) is (kind == "plain")


def test_exact_counts_are_asked_for_once() -> None:
    """Two asks were declared and one was asked, so the kit's own certificate did not hold against its plan."""
    assert [stage.asks for stage in programme(plan_for("marginals", "private")).stages] == [1, 2]
    assert [stage.asks for stage in programme(plan_for("marginals", "exact")).stages] == [1, 1]


def test_consent_is_to_the_programme() -> None:
    plan = plan_for("marginals", "exact")
    check_ask(plan, Ask(options={"phase": "training", "round": 0}), 1)
    with pytest.raises(AskOutsidePlan, match="consists of 2 asks"):
        check_ask(plan, Ask(options={"phase": "training", "round": 1}), 2)


def test_a_phase_that_is_none_of_the_plans_has_no_stage() -> None:
    with pytest.raises(ProtocolError, match="one of the plan's: statistics, training"):
        programme(plan_for("ctgan", "private")).stage("assessment")


def test_what_a_family_samples_and_answers_is_said_as_it_declares_it() -> None:
    ctgan, faithful = plan_for("ctgan", "private"), plan_of(SMALLEST["ctgan"], profile="faithful")
    assert ctgan.family.sampling == Sampling(0.2)
    assert "probability 0.2" in sampling_in_words(ctgan)
    assert "as published" in sampling_in_words(faithful)
    assert "Model updates" in noise_in_words(ctgan)
    for family in ("marginals", "bayes"):
        plan = plan_for(family, "private")
        assert "No row sampling" in sampling_in_words(plan)
        assert "Model updates" not in noise_in_words(plan)
        assert "added here" not in describe(plan, "party-1")


def test_everything_a_plan_may_ask_is_described_to_the_party() -> None:
    words = describe(plan_for("marginals", "assessed"), "party-1")
    assert [line[:5] for line in words.splitlines() if re.match(r"  \d\. ", line)] == ["  1. ", "  2. ", "  3. "]
    assert "2. 2 times" in words
    assert "2. Once" in describe(plan_for("marginals", "exact"), "party-1")
    assert f"1. {MIXTURE_ROUNDS} times" in describe(plan_of(SMALLEST["ctgan"], profile="faithful"), "party-1")


def test_averaged_mixtures_are_taken_up_again_between_rounds() -> None:
    """To the bit: parties refuse another question under a number that they were charged for."""
    plan = plan_of(SMALLEST["ctgan"], profile="faithful", privacy="none", parties=2)
    from synth.encoding.records import Codec

    world = Inline(plan, {p.name: Codec(plan.table).encode(table(80, n)) for n, p in enumerate(plan.parties)}, seed=1)
    whole = MixtureInquiry(plan)
    for number in range(MIXTURE_ROUNDS):
        ask = whole.ask(number)
        assert ask is not None
        total = world.total(whole, ask)
        resumed = MixtureInquiry(plan)
        resumed.restore(whole.state())
        again = resumed.ask(number)
        assert again is not None
        assert {name: array.tobytes() for name, array in again.arrays.items()} == {
            name: array.tobytes() for name, array in ask.arrays.items()
        }
        whole.absorb(total)
        resumed.absorb(total)
    assert resumed.result().to_arrays().keys() == whole.result().to_arrays().keys()
    assert set(Statistics.from_arrays(plan, resumed.state()).mixtures) == set(plan.table.numeric)


def test_only_the_programme_lists_the_phases() -> None:
    """Description puts each into words, under the programme's own type; nobody else names more than one."""
    named = {}
    for package in ("synth", "fed_node", "aggregator", "fedsynth"):
        for path in (ROOT / package).rglob("*.py"):
            found = {phase for phase in ("statistics", "training", "assessment") if f'"{phase}"' in path.read_text()}
            if len(found) == 3 or {"statistics", "training"} <= found:
                named[path.relative_to(ROOT).as_posix()] = found
    assert set(named) == {"synth/programme.py", "fed_node/consent/description.py"}


def test_no_family_is_known_outside_its_folder_and_the_registry() -> None:
    for package in ("synth", "fed_node", "aggregator"):
        for path in (ROOT / package).rglob("*.py"):
            if "synthesizers" not in path.parts:
                assert not re.search(r"synthesizers\.(bayes|ctgan|marginals)", path.read_text()), path


def test_consent_loads_no_model() -> None:
    loaded = "import sys, fed_node.consent.approvals, fed_node.consent.description; print('torch' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
