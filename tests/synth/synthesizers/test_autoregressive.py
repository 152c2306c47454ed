"""`autoregressive`: the exact likelihood, dependence that no pair shows, conditions, and the order of columns."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch

from benchmarks.neural import networks, parity_table
from synth.encoding.features import Span
from synth.encoding.records import Codec
from synth.interface import Synthesizer
from synth.neural.streams import Stream
from synth.neural.synthesizer import NeuralSynthesizer
from synth.plan import Plan, parse_plan
from synth.synthesizers.autoregressive.synthesizer import Autoregression, Network, in_order
from synth.synthesizers.registry import FAMILIES, build
from tests.inline import Inline, statistics_of, trained
from tests.small import plan_of

COINS = {"name": "autoregressive", "steps": 150, "width": 16, "sample_rate": 0.3}


def coins(rows: int, settings: dict[str, Any], privacy: Any) -> Inline:
    schema, frame = parity_table(rows, 3)
    share = rows // 3
    content = {
        "name": "coins",
        "schema": schema.model_dump(mode="json"),
        "parties": [{"name": f"party-{n}", "rows": share} for n in range(3)],
        "synthesizer": settings,
        "privacy": privacy,
    }
    plan, codec = parse_plan(content), Codec(schema)
    parts = {f"party-{n}": codec.encode(frame.iloc[n * share : (n + 1) * share]) for n in range(3)}
    return Inline(plan, parts, 1)


def odd_share(rows: pd.DataFrame) -> float:
    """How often the last column is the parity of the first three."""
    counted = rows[["coin0", "coin1", "coin2"]].astype(int).sum(axis=1) % 2
    return float((counted == rows["odd"].astype(int)).mean())


@cache
def learned() -> tuple[Plan, Synthesizer]:
    world = coins(6_000, COINS, "none")
    return world.plan, trained(world)


def table_from(**where: str) -> pd.DataFrame:
    plan, synthesizer = learned()
    return Codec(plan.table).decode(synthesizer.sample(3_000, seed=2, where=where))


def test_it_learns_what_no_pair_shows() -> None:
    assert odd_share(table_from()) > 0.8


def test_conditions_on_any_column_are_draws_given_them() -> None:
    """The fixed column comes last, and yet those before it are as the model has them given it."""
    rows = table_from(odd="1", coin0="0")
    assert set(rows["odd"]) == {"1"}
    assert set(rows["coin0"]) == {"0"}
    assert odd_share(rows) > 0.8


def test_probabilities_of_all_rows_add_up_to_one() -> None:
    """The loss is the negative logarithm of a law, the first column's left out."""
    spans = [Span("a", "label", 0, 2), Span("b", "mode", 2, 3), Span("c", "label", 5, 2)]
    torch.manual_seed(1)
    network = Network(spans, width=4)
    blocks = [torch.eye(span.width) for span in spans]
    rows = torch.stack([torch.cat(chosen) for chosen in product(*blocks)])
    model = Autoregression(plan_of({"name": "autoregressive"}))
    likely = torch.exp(-model.losses(network, rows, Stream(0))).view(2, -1).sum(1)
    torch.testing.assert_close(likely, torch.ones(2))


def test_before_training_every_column_has_its_released_histogram() -> None:
    world = coins(3_000, COINS, "none")
    synthesizer = build(world.plan)
    assert isinstance(synthesizer, NeuralSynthesizer)
    synthesizer.begin(statistics_of(world), 1)
    network = synthesizer._loaded(synthesizer.released.features, synthesizer.weights)
    assert isinstance(network, Network)
    for place, span in enumerate(network.spans[1:], start=1):
        prefix = torch.zeros(1, network.layers(place)[0].in_features)
        guess = network.guess(place, prefix).softmax(1)[0]
        wanted = torch.from_numpy(synthesizer.released.shares(span)).float()
        np.testing.assert_allclose(guess.detach(), wanted, atol=0.15)


def test_the_order_is_public() -> None:
    """A function of the schema and of the layout that every ask carries: both sides find the same."""
    spans = [Span(name, "label", 2 * n, 2) for n, name in enumerate("abc")]
    assert [span.column for span in in_order(spans, "a")] == ["b", "c", "a"]
    assert [span.column for span in in_order(spans, None)] == ["a", "b", "c"]


def test_the_benchmark_takes_every_network_of_the_registry() -> None:
    found = networks()
    assert {"autoregressive", "ctgan"} <= set(found) <= set(FAMILIES)
    assert not {"marginals", "bayes"} & set(found)
    plans: list[Plan] = [plan_of(settings) for settings in found.values()]
    assert all(plan.family.answers != "counts" for plan in plans)
    assert {plan_of(found[name]).family.answers for name in ("autoregressive", "ctgan")} == {"gradients"}
