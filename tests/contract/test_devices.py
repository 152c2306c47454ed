"""Every neural family runs on whatever device its process is told, and a device decides nothing but where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from synth.encoding.records import Codec, Records
from synth.errors import InputError
from synth.interface import Answer, Arrays
from synth.neural import device, drawing, synthesizer
from synth.neural.synthesizer import NeuralSynthesizer
from synth.plan import Plan
from synth.privacy.dpsgd import PrivateGradient
from synth.privacy.noise import NoiseSource
from synth.privacy.steady import PADDED_ROWS, padded
from synth.synthesizers.registry import FAMILIES, build, settings_of
from tests.contract.fake_device import DEVICE, Elsewhere, Fake
from tests.contract.test_synthesizers import SMALLEST
from tests.inline import Inline, trained
from tests.small import plan_of, table

NEURAL = ("autoregressive", "ctgan", "vae")  # of the others docs/lifecycle.md says where they run
CASES: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in NEURAL]
CASES += [("ctgan", {"profile": "faithful"}), ("autoregressive", {"privacy": "none"})]


def _outcome(plan: Plan) -> tuple[Arrays, Records, list[dict[str, Answer]]]:
    codec = Codec(plan.table)
    world = Inline(plan, {p.name: codec.encode(table(p.rows, n)) for n, p in enumerate(plan.parties)}, 1)
    made = trained(world)
    made.losses()
    return made.state(), made.sample(40, seed=3, where={"sex": "f"}), world.answers


@pytest.mark.slow
@pytest.mark.parametrize(("family", "changes"), CASES)
def test_a_run_on_a_device_is_the_run_on_the_processor(
    family: str, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(SMALLEST[family], **changes)
    assert isinstance(build(plan), NeuralSynthesizer)
    monkeypatch.setattr(PrivateGradient.__init__, "__defaults__", (PADDED_ROWS,))  # one piece: the shape of both
    monkeypatch.setattr(drawing, "FEWEST_CANDIDATES", 60)
    monkeypatch.setattr(drawing, "REFERENCE_ROWS", 60)
    expected = _outcome(plan)
    monkeypatch.setattr(synthesizer, "chosen", lambda: DEVICE)
    drawn, weights = _watched(monkeypatch)
    with Fake():
        found = _outcome(plan)
    for name, array in expected[0].items():
        np.testing.assert_array_equal(found[0][name], array, err_msg=name)
    for name, column in expected[1].columns.items():
        np.testing.assert_array_equal(found[1].columns[name], column)
    for ours, theirs in zip(found[2], expected[2], strict=True):
        for party in theirs:
            for name, array in theirs[party].arrays.items():
                assert type(ours[party].arrays[name]) is np.ndarray
                np.testing.assert_array_equal(ours[party].arrays[name], array)
    assert bool(drawn) == (changes.get("privacy") != "none")
    assert weights
    assert all(isinstance(each.data, Elsewhere) and each.dtype == torch.float32 for each in weights)


def _watched(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[torch.Tensor]]:
    """Noise as it is drawn, which is numpy's and the processor's; and the weights of every network that is loaded."""
    drawn: list[Any] = []
    weights: list[torch.Tensor] = []
    gaussian, loaded = NoiseSource.rounded_gaussian, NeuralSynthesizer._loaded

    def noted(source: NoiseSource, sigma: float, count: int) -> Any:
        drawn.append(gaussian(source, sigma, count))
        assert type(drawn[-1]) is np.ndarray
        return drawn[-1]

    def looked(self: NeuralSynthesizer, *given: Any) -> torch.nn.Module:
        network = loaded(self, *given)
        weights.extend(network.parameters())
        return network

    monkeypatch.setattr(NoiseSource, "rounded_gaussian", noted)
    monkeypatch.setattr(NeuralSynthesizer, "_loaded", looked)
    return drawn, weights


def test_the_fake_device_refuses_what_a_gpu_refuses() -> None:
    with Fake(), torch.device(DEVICE):
        there, here = torch.ones(3), torch.ones(3, device="cpu")
        with pytest.raises(RuntimeError, match="same device"):
            _ = there + here
        with pytest.raises(RuntimeError, match=r"numpy"):
            there.numpy()
        assert there.cpu().tolist() == [1.0, 1.0, 1.0]
        with pytest.raises(RuntimeError, match="same device"):
            torch.nn.Linear(3, 2, device="cpu")(there)


def test_pieces_have_one_shape_on_a_device_however_many_rows_join() -> None:
    """A GPU cuts its work by the shape of the whole: one row more must not move the others to another rounding."""
    with Fake():
        shapes = {padded(torch.ones(rows, 2, device=DEVICE), 256).shape for rows in (0, 1, 63, 64, 65, 256)}
    assert shapes == {(256, 2)}
    assert [len(padded(torch.ones(rows, 2), 256)) for rows in (1, 64, 65)] == [64, 64, 128]


def test_the_plan_and_the_aggregator_have_no_word_in_it() -> None:
    """No setting of any family, no option of any ask names a device."""
    for family in FAMILIES:
        assert not [name for name in settings_of(family).model_fields if "device" in name or "gpu" in name]


@pytest.mark.parametrize(
    ("name", "told"), [("cuda", "finds no such device"), ("gpu", "no device"), ("meta", "finds no")]
)
def test_a_device_that_is_not_there_is_an_error_and_not_the_processor(
    name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv(device.DEVICE, name)
    with pytest.raises(InputError, match=told):
        device.chosen()


@pytest.mark.parametrize("name", ["", "cpu"])
def test_the_processor_is_the_default(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(device.DEVICE, name)
    assert device.chosen() == torch.device("cpu")
