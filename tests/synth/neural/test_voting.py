"""Training by votes: sums are whole numbers, groups are public in number and secret in turn, bits steer the step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from synth.audit.canaries import extreme_rows
from synth.audit.replay import Neighbours, Subject, replay, unmoved
from synth.encoding.records import Codec
from synth.errors import PlanError, ProtocolError
from synth.interface import Sum
from synth.neural.groups import VotingRound
from synth.neural.regime import Regime
from synth.neural.schedule import Schedule
from synth.neural.vote_settings import VoteSettings
from synth.neural.voting import DECAYS, HEARD, TURNS, VOTES, YES, Tally, Voting
from synth.privacy.accounting import compose
from synth.privacy.events import Unaccounted, Votes
from synth.privacy.noise import seeded_source
from synth.programme import whole_cost
from synth.synthesizers.registry import build
from tests.contract.test_synthesizers import SMALLEST
from tests.inline import Inline, trained
from tests.small import plan_of, table

SMALL: dict[str, Any] = SMALLEST["vae"] | {
    "update": "signds",
    "sample_rate": 0.5,
    "votes": {"records_per_client": 2, "step": 0.05},
}


def world_of(settings: dict[str, Any], **changes: Any) -> Inline:
    plan = plan_of(settings, **changes)
    codec = Codec(plan.table)
    return Inline(plan, {p.name: codec.encode(table(p.rows, n)) for n, p in enumerate(plan.parties)}, seed=1)


def test_what_leaves_is_whole_numbers_of_public_size() -> None:
    world = world_of(SMALL)
    trained(world)
    for answers in world.answers[1:]:
        for answer in answers.values():
            assert answer.arrays[VOTES].dtype == np.int64
            assert np.abs(answer.arrays[VOTES]).sum() <= 50
            assert answer.arrays[VOTES].sum() % 2 == 0  # fifty of a hundred groups vote, one vote each


def test_all_votes_and_statistics_cost_the_plans_epsilon_and_no_more() -> None:
    plan = plan_of(SMALL)
    spent = compose(whole_cost(plan, "party-1"), 1e-5).epsilon
    assert 0.99 * 3.0 < spent <= 3.0
    assert {type(event) for event in whole_cost(plan, "party-1")[1:]} == {Votes}


def test_a_faithful_run_votes_with_the_whole_epsilon_and_says_that_it_is_nominal() -> None:
    plan = plan_of({"name": "wae", "preset": "published", "sample_rate": 0.1, "rounds": 3}, profile="faithful")
    events = whole_cost(plan, "party-1")
    assert {event.epsilon for event in events if isinstance(event, Votes)} == {3.0}
    assert any(isinstance(event, Unaccounted) for event in events)


def test_one_row_changes_what_one_group_wishes_for_and_nothing_else() -> None:
    world = world_of(SMALL)
    trained(world)
    subject = Subject(lambda: build(world.plan), world.asks[1:], "party-1", world.plan.noisy_parties)
    rows = world.data["party-1"].take(slice(0, 60))
    found = [replay(subject, Neighbours(rows, extra)) for extra in extreme_rows(world.plan.table)]
    assert [each.violations for each in found] == [[], [], []]
    assert max(each.tightness for each in found) == 1.0
    assert unmoved(subject, rows) == ["array 'yes' is the same under other noise"]  # without a bit it is always 0


def test_the_audit_sees_a_row_in_two_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of(SMALL)
    trained(world)
    drawn = VotingRound._drawn

    def everywhere(self: VotingRound, rows: Any) -> Any:
        batch, there = drawn(self, rows)
        batch[:, -1], there[:, -1] = rows[torch.tensor([len(rows) - 1])][0], 1.0
        return batch, there

    monkeypatch.setattr(VotingRound, "_drawn", everywhere)
    subject = Subject(lambda: build(world.plan), world.asks[1:], "party-1", world.plan.noisy_parties)
    found = replay(subject, Neighbours(world.data["party-1"].take(slice(0, 60)), extreme_rows(world.plan.table)[1]))
    assert any("it should be with one of them" in each for each in found.violations)


def test_empty_tables_vote_too() -> None:
    world = world_of(SMALL)
    synthesizer = trained(world)
    nobody = world.data["party-1"].take(slice(0, 0))
    answer, _ = synthesizer.answer(world.asks[1], "party-1", nobody, {}, seeded_source(1))
    assert np.abs(answer.arrays[VOTES]).sum() > 0


def voting_of(**said: Any) -> Voting:
    return Voting(plan_of(SMALL), VoteSettings(**said), 0.5, 4, published=False)


def test_votes_move_weights_by_a_step_each() -> None:
    weights = {"a": np.zeros((2, 2), np.float32), "b": np.zeros(3, np.float32)}
    total = Sum({VOTES: np.array([1, 0, -2, 3, 0, 0, 5]), YES: np.array([0])}, 1.0, ("party-1",))
    change = Tally(voting_of(step=0.1)).change(total, weights, 0, 1.0)
    np.testing.assert_allclose(change["a"], [[0.1, 0], [-0.2, 0.3]])
    np.testing.assert_allclose(change["b"], [0, 0, 0.5])
    with pytest.raises(ProtocolError):
        Tally(voting_of()).change(replace(total, arrays={VOTES: np.zeros(3)}), weights, 0, 1.0)


@pytest.mark.parametrize(("published", "decays"), [(False, 1), (True, 0)])
def test_bits_of_a_patience_are_pooled_unless_as_published(published: bool, decays: int) -> None:
    """Three rounds of which the second doubts: together they say yes, but not one after the other."""
    tally = Tally(replace(voting_of(records_per_client=1, bit_share=0.1, patience=3), published=published))
    state: dict[str, Any] = {}
    for yes in (90, 40, 90):  # of a hundred groups at one party
        state = tally.heard(state, Sum({VOTES: np.zeros(1), YES: np.array([yes])}, 1.0, ("party-1",)))
    assert int(state[DECAYS]) == decays
    assert (int(state[TURNS]), int(state[HEARD])) == ((0, 0) if not published else (1, 80))


def test_wishes_are_what_a_groups_own_records_do() -> None:
    """Two steps of 'sgd' and of 'adam' by torch itself, for every group alone."""
    network = nn.Sequential(nn.Linear(3, 2))
    rows, there = torch.randn(4, 5, 3), (torch.arange(20).view(4, 5) % 3 > 0).float()

    def loss(part: nn.Module, x: torch.Tensor, seen: torch.Tensor, _: object) -> torch.Tensor:
        return (part(x).square().sum(1) * seen).sum() / seen.sum()

    for name, kind in (("sgd", torch.optim.SGD), ("adam", torch.optim.Adam)):
        voting = voting_of(local_optimizer=name, local_steps=2, local_rate=0.01)
        found = VotingRound(voting, "party-1", seeded_source(1)).wishes(network, loss, rows, there)
        for group in range(4):
            copy = nn.Sequential(nn.Linear(3, 2))
            copy.load_state_dict(network.state_dict())
            optimizer = kind(copy.parameters(), lr=0.01)
            for _ in range(2):
                optimizer.zero_grad()
                loss(copy, rows[group], there[group], None).backward()
                optimizer.step()
            moved = [
                (after - before).flatten()
                for after, before in zip(copy.parameters(), network.parameters(), strict=True)
            ]
            np.testing.assert_allclose(found[group], torch.cat(moved).detach().numpy(), atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sample_rate": 0.001}, "less than one"),
        ({"votes": {"chosen": 2}}, "needs votes.among"),
        ({"votes": {"among": 10, "top": 0.99}}, "some of them"),
    ],
)
def test_votes_that_cannot_be_held_are_refused_in_words(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Exception, match=words):
        build(plan_of(SMALL | changes))


def test_what_was_published_without_votes_has_none() -> None:
    with pytest.raises(PlanError, match="has no votes"):
        build(plan_of(SMALL, profile="faithful"))


def test_a_regime_of_votes_is_one_vote_a_round() -> None:
    regime = Regime(2, 5, 0.5, 1.0, votes=VoteSettings())
    assert regime.carried_out(faithful=True).rounds == 10
    assert regime.declared(faithful=False).answers == "votes"
    assert Schedule(plan_of(SMALL), regime).voting is not None
