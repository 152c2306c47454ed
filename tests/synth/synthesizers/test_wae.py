"""`wae` and `fedstdg`: the published penalty, sizes and draws; and that the sound forms learn what they should."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from synth.encoding.features import Features
from synth.encoding.records import Records
from synth.errors import PlanError, PrivacyError
from synth.neural.latent import apart, mmd, nearness
from synth.neural.streams import Stream
from synth.plan import Plan, parse_plan
from synth.privacy.dpsgd import ClippedSum
from synth.synthesizers.fedstdg.published import Published
from synth.synthesizers.fedstdg.synthesizer import Recurrent, in_steps
from synth.synthesizers.registry import build
from synth.synthesizers.wae.synthesizer import Autoencoder
from tests.contract.test_synthesizers import SMALLEST
from tests.inline import Inline, trained
from tests.small import plan_of


def test_mmd_is_the_printed_double_sum() -> None:
    torch.manual_seed(0)
    codes, luck = torch.randn(5, 3), torch.randn(5, 3)

    def kernel(one: torch.Tensor, other: torch.Tensor) -> float:
        return 6 / (6 + float((one - other).square().sum()))

    for count in (2, 4, 5):
        p, q, pairs = luck[:count], codes[:count], range(count)
        within = sum(kernel(x[i], x[j]) for x in (p, q) for i in pairs for j in pairs if i != j) / (count * (count - 1))
        across = 2 * sum(kernel(p[i], q[j]) for i in pairs for j in pairs) / count**2
        there = (torch.arange(5) < count).float()
        assert float(mmd(codes, luck, there)) == pytest.approx(within - across, abs=1e-5)
    assert float(mmd(codes, luck, torch.tensor([1.0, 0, 0, 0, 0]))) == 0.0


def test_a_codes_own_penalty_has_the_slope_of_mmd() -> None:
    """Against codes of a whole batch, the single rows' penalties push each code as the batch's distance does."""
    codes, luck = torch.randn(400, 2) * 0.3 + 1, torch.randn(400, 2)
    one, other = codes.clone().requires_grad_(), codes.clone().requires_grad_()
    mmd(one, luck, torch.ones(400)).backward()  # type: ignore[no-untyped-call]
    (apart(other, codes, luck).mean()).backward()  # type: ignore[no-untyped-call]
    assert one.grad is not None
    assert other.grad is not None
    torch.testing.assert_close(one.grad, other.grad, rtol=0.02, atol=1e-5)
    assert float(nearness(codes, codes).diagonal().min()) == pytest.approx(1.0)


def test_the_published_penalty_is_refused_by_dp_sgd() -> None:
    """Clipping bounds no row of a loss that couples rows, and the engine notices."""
    plan = plan_of(SMALLEST["wae"])
    model = Autoencoder(plan)
    features = _features(plan)
    network = model.network(features)

    def coupled(rows: torch.Tensor) -> torch.Tensor:
        codes = network.encoder(rows)
        told = network.decoder(codes).square().sum(1)
        return told + mmd(codes, torch.zeros_like(codes), torch.ones(len(codes)))

    with pytest.raises(PrivacyError, match="depends on other rows"):
        ClippedSum(network, 1.0)(coupled, torch.zeros(3, features.width))
    losses = model.step_losses(network, Stream(1))
    ClippedSum(network, 1.0)(lambda rows: losses(rows, Stream(2)), torch.zeros(3, features.width))


def _features(plan: Plan) -> Features:
    return Features(plan.modelled, {}, {name: np.array([1.0]) for name in plan.modelled.numeric})


def series(steps: int, attributes: int, profile: str, **said: Any) -> Plan:
    columns: dict[str, Any] = {"who": {"kind": "identifier"}, "t": {"kind": "integer", "min": 1, "max": steps}}
    columns |= {f"x{n}": {"kind": "continuous", "min": 0, "max": 1, "decimals": 2} for n in range(attributes)}
    sequence = {"entity": "who", "time": "t", "length": steps, "shortest": steps}
    return parse_plan(
        {
            "name": "series",
            "schema": {"columns": columns, "sequence": sequence},
            "parties": [{"name": name, "rows": 200} for name in ("north", "south")],
            "synthesizer": {"name": "fedstdg"} | said,
            "privacy": {"epsilon": 3.0, "delta": 1e-5},
            "statistics": {"bins": 8},
            "profile": profile,
        }
    )


@pytest.mark.parametrize(
    ("steps", "attributes", "printed"), [(30, 5, 29_269), (24, 6, 26_358), (24, 27, 29_739), (24, 13, 27_485)]
)
def test_published_sizes(steps: int, attributes: int, printed: int) -> None:
    """Sine, stock, energy (printed as 29,729) and air."""
    plan = series(steps, attributes, "faithful", preset="published", sample_rate=0.1)
    cuts = {name: np.array([0.5]) for name in plan.modelled.numeric}
    network = Published(plan).network(Features(plan.modelled, {}, cuts))
    assert sum(parameter.numel() for parameter in network.parameters()) == printed


def test_what_was_published_of_sequences_is_about_clients_and_levels() -> None:
    plan = series(3, 2, "faithful", preset="published", sample_rate=0.1)
    assert plan.unit == "subject"
    with pytest.raises(PlanError, match="trained by votes"):
        build(series(3, 2, "faithful"))


def test_steps_are_told_one_after_the_other() -> None:
    plan = series(3, 2, "rigorous")
    features = Features(plan.modelled, {}, {name: np.array([0.5]) for name in plan.modelled.numeric})
    groups = in_steps(features.spans, plan.layout)
    assert [[span.column for span in step] for step in groups] == [["x0@1", "x1@1"], ["x0@2", "x1@2"], ["x0@3", "x1@3"]]


def test_a_recurrent_model_learns_what_comes_after_what() -> None:
    """Without privacy: a number that stays what it was must come out as one."""
    plan = series(3, 1, "rigorous", steps_per_round=20, rounds=3, width=8, own_rows=16, bins=4, learning_rate=0.05)
    plan = plan.model_copy(update={"privacy": "none"})
    rng = np.random.default_rng(0)

    def rows() -> Records:
        level = rng.integers(0, 2, 200) * 0.8 + 0.1
        return Records({f"x0@{step}": level for step in (1, 2, 3)})

    world = Inline(plan, {"north": rows(), "south": rows()}, seed=1)
    made = trained(world).sample(400, seed=1)
    assert np.corrcoef(made.columns["x0@1"] > 0.5, made.columns["x0@2"] > 0.5)[0, 1] > 0.6


def test_luck_that_all_rows_share_is_drawn_apart_from_theirs() -> None:
    """The codes that every row is held against are the same however many rows a batch has."""
    plan = series(2, 1, "rigorous", width=4, own_rows=8)
    model = Recurrent(plan)
    features = Features(plan.modelled, {}, {name: np.array([0.5]) for name in plan.modelled.numeric})
    network = model.network(features)
    row = torch.eye(features.width)[:1] + torch.eye(features.width)[2:3]
    few, many = (model.step_losses(network, Stream(5))(row.repeat(count, 1), Stream(6))[0].item() for count in (1, 200))
    assert few == pytest.approx(many, rel=1e-6)
