"""`gswgan`: critics by autograd, what one row can do to their sum, what never leaves, and that the generator learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from synth.encoding.records import Codec, Records
from synth.errors import ProtocolError
from synth.interface import Ask
from synth.messages import wire
from synth.neural.central import across_blocks
from synth.privacy.noise import seeded_source
from synth.synthesizers.gswgan.critics import FACTOR, LOOK, RowCritics, summed
from synth.synthesizers.gswgan.estimate import SlopeRegression, spread_of
from synth.synthesizers.gswgan.synthesizer import Gswgan
from synth.synthesizers.registry import build
from tests.inline import Inline, statistics_of, trained
from tests.small import plan_of, table

SMALL: dict[str, Any] = {"name": "gswgan", "asks": 2, "made_up_rows": 30, "codes": 128, "width": 16}


def world(rows: int = 60, **changes: Any) -> Inline:
    settings = SMALL | changes.pop("synthesizer", {})
    plan = plan_of(settings, rows=rows, **changes)
    codec = Codec(plan.table)
    return Inline(plan, {p.name: codec.encode(table(p.rows, n)) for n, p in enumerate(plan.parties)}, seed=1)


def asked(federation: Inline) -> tuple[Gswgan, Ask]:
    synthesizer = build(federation.plan)
    assert isinstance(synthesizer, Gswgan)
    synthesizer.begin(statistics_of(federation), 1)
    ask = synthesizer.ask(0)
    assert ask is not None
    return synthesizer, ask


def critics_and_rows(made_up: int = 30) -> tuple[RowCritics, Records, Tensor]:
    federation = world(synthesizer={"made_up_rows": made_up})
    synthesizer, ask = asked(federation)
    critics, records = synthesizer._read(ask).critics, federation.data["party-1"]
    return critics, records, torch.from_numpy(critics.features.encode(records, np.random.default_rng(0)))


def slopes_by_autograd(critics: RowCritics, row: Tensor) -> Tensor:
    """Of one row's critic as the module says it: pairs of different blocks."""
    made_up = critics.made_up.clone().requires_grad_()
    spans, own = critics.features.spans, (row * critics.own - critics.centre) / LOOK
    heard = torch.stack([made_up[:, span.slice] @ own[span.slice] for span in spans], dim=1)  # [made-up, blocks]
    pairs = (heard.sum(1).square() - heard.square().sum(1)) / 2
    return torch.autograd.grad(pairs.sum(), made_up)[0]


def test_the_sum_is_that_of_every_rows_own_critic_by_autograd() -> None:
    critics, records, rows = critics_and_rows()
    by_hand = torch.zeros_like(critics.made_up)
    for row in rows:
        slopes = slopes_by_autograd(critics, row)
        by_hand += slopes / max(float(slopes.norm()), critics.limit)
    found = critics.slopes(summed(critics, records)).view_as(by_hand)
    torch.testing.assert_close(found, by_hand, rtol=1e-5, atol=1e-5)  # factors are whole 2^-21


def test_one_row_moves_the_sum_by_a_limit_whatever_the_aggregator_asks() -> None:
    """Made-up rows all alike, shares that nobody has: the bound is the clip, not good manners."""
    federation = world()
    synthesizer, ask = asked(federation)
    first = ask.arrays["made_up"]
    features = synthesizer.central.features
    certain = np.concatenate([np.eye(span.width)[0] for span in features.spans])
    for labels, shares in (
        (first, ask.arrays["shares"]),
        (np.repeat(first[:1], len(first), axis=0), ask.arrays["shares"]),
        (first, certain),
    ):
        hostile = Ask(ask.arrays | {"made_up": labels, "shares": shares}, ask.options)
        critics = synthesizer._read(hostile).critics
        records = federation.data["party-1"]
        for row in range(0, len(records), 7):
            one = records.take(np.array([row]))
            assert float(critics.slopes(summed(critics, one)).norm()) <= 1 + 1e-9
            with_it = critics.slopes(summed(critics, Records.concat([records, one])))
            assert float((with_it - critics.slopes(summed(critics, records))).norm()) <= 1 + 1e-9


def test_a_row_counts_the_same_in_any_company() -> None:
    """To the last bit, in tables of any size: n others that moved by a bit each would be n bits. And the sum over many
    rows is, exactly, that many times the sum over one."""
    critics, records, rows = critics_and_rows()
    alone = torch.cat([critics.factors(critics.places(row[None])) for row in rows])
    assert torch.equal(alone, critics.factors(critics.places(rows)))
    assert torch.equal(alone[5:], critics.factors(critics.places(rows[5:])))
    crowd = records.take(np.full(3_000_001 // 60, 7))
    assert torch.equal(summed(critics, crowd), len(crowd) * summed(critics, records.take(np.array([7]))))


def test_slopes_of_sums_are_exact_but_for_the_last_rounding() -> None:
    """Against Python's whole numbers, with sums as large as two thousand million rows make them."""
    critics, _, _ = critics_and_rows()
    luck = torch.Generator().manual_seed(1)
    sums = torch.randint(2**52, (critics.features.width,) * 2, generator=luck).double()
    looks = ((1 - critics.across) * (critics.own.diag() - critics.centre)).long().numpy().astype(object)
    exact = (
        looks.T @ (sums * critics.across).long().numpy().astype(object) @ critics.heard.long().numpy().astype(object)
    )
    expected = torch.tensor((exact.T / (FACTOR * LOOK**3 * critics.limit)).astype(np.float64)).ravel()
    torch.testing.assert_close(critics.slopes(sums), expected, rtol=1e-15, atol=float(expected.abs().max()) * 2**-52)


class Crowd(Records):
    """As many rows as no test can hold; of every piece that is taken there is one."""

    def __len__(self) -> int:
        return 2**20 + 1

    def take(self, indices: Any) -> Records:
        return Records({name: values[:1] for name, values in self.columns.items()})


def test_no_refusal_tells_how_many_rows_there_are() -> None:
    """Parties of more than 2^20 rows were refused, of fewer if an ask was wide: a count to the unit, for nothing."""
    critics, records, _ = critics_and_rows()
    assert float(summed(critics, Crowd(records.columns)).max()) == 257 * float(
        summed(critics, records.take(slice(0, 1))).max()
    )


def test_no_critic_leaves_and_none_is_kept() -> None:
    """An answer is noisy slopes and nothing else; a party remembers nothing from ask to ask; asks hold no weights."""
    federation = world()
    trained(federation)
    assert all(local == {} for local in federation.local.values())
    for ask, answers in list(zip(federation.asks, federation.answers, strict=True))[1:]:
        assert set(ask.arrays) == {"made_up", "shares", *(name for name in ask.arrays if name.startswith("cuts/"))}
        width = len(ask.arrays["shares"])
        assert all(set(answer.arrays) == {"slopes"} for answer in answers.values())
        assert {answer.arrays["slopes"].shape for answer in answers.values()} == {(30 * width,)}
        assert {answer.arrays["slopes"].dtype for answer in answers.values()} == {np.dtype(np.int64)}


def test_the_same_ask_twice_is_answered_from_the_rows_alone() -> None:
    """A critic with a memory would answer otherwise the second time; then no theorem on single asks would hold."""
    federation = world()
    synthesizer, ask = asked(federation)
    rows = federation.data["party-1"]
    first, local = synthesizer.answer(ask, "party-1", rows, {}, seeded_source(5))
    again, _ = synthesizer.answer(ask, "party-1", rows, local, seeded_source(5))
    np.testing.assert_array_equal(first.arrays["slopes"], again.arrays["slopes"])


@pytest.mark.parametrize("wrong", ["labels", "negative", "shares", "rows", "more", "late", "mute"])
def test_what_no_generator_asks_is_refused_before_anything_is_charged(wrong: str) -> None:
    synthesizer, ask = asked(world())
    arrays, options = dict(ask.arrays), dict(ask.options)
    labels = arrays["made_up"].copy()
    if wrong in ("labels", "negative"):
        labels[0, 0] = 10_000 if wrong == "labels" else -1
        arrays["made_up"] = labels
    elif wrong == "shares":
        arrays["shares"] = arrays["shares"] * 2
    elif wrong == "rows":
        arrays["made_up"] = labels[1:]
    elif wrong == "more":
        arrays["weights"] = np.zeros(1)
    elif wrong == "late":
        options["round"] = 2
    else:  # rows that are exactly what is expected everywhere: no critic says anything about them
        spans = synthesizer.central.features.spans
        arrays["shares"] = np.concatenate([np.eye(span.width)[0] for span in spans])
        arrays["made_up"] = np.zeros_like(labels)
    with pytest.raises(ProtocolError):
        synthesizer.cost(Ask(arrays, options), "party-1")


def as_critic(critics: RowCritics, sums: Tensor) -> Tensor:
    """W = Σ r rᵀ of the rows behind the sums."""
    looks = (1 - critics.across) * (critics.own.diag() - critics.centre) / LOOK
    return looks.T @ (sums * critics.across / FACTOR) @ looks


def test_the_regression_finds_the_moments_behind_slopes() -> None:
    critics, records, rows = critics_and_rows(made_up=300)
    sums = summed(critics, records)
    weights = as_critic(critics, sums)
    slopes = critics.slopes(sums).view_as(critics.made_up) * critics.limit
    regression = SlopeRegression.of(critics.features.width)
    regression.add(critics.made_up, slopes, 0.01)  # far below the slopes, far above what a float64 rounds off
    found = regression.weights(spread_of(critics.shares, critics.scale), len(rows))
    across = across_blocks(critics.features.spans, critics.features.width).double()
    alike = torch.corrcoef(torch.stack([(found * across).ravel(), (weights * across).ravel()]))[0, 1]
    assert float(alike) > 0.97


def test_a_killed_run_goes_on_to_the_same_ask() -> None:
    federation = world()
    synthesizer, ask = asked(federation)
    synthesizer.absorb(federation.total(synthesizer, ask))
    resumed = build(federation.plan)
    resumed.restore(synthesizer.state())
    asks = [each.ask(1) for each in (synthesizer, resumed)]
    assert None not in asks
    assert len({wire.digest(wire.pack_ask(each)) for each in asks if each is not None}) == 1


def test_without_noise_it_learns_what_depends_on_what() -> None:
    federation = world(rows=1_000, privacy="none", synthesizer={"made_up_rows": 300, "teaching_steps": 150})
    rows = trained(federation).sample(3_000, seed=1).columns
    present = ~np.isnan(rows["dose"])
    assert np.corrcoef(rows["age"][present], rows["dose"][present])[0, 1] > 0.6
    assert rows["age"][rows["died"] == 1].mean() > rows["age"][rows["died"] == 0].mean() + 8
