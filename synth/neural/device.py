"""Where networks run: the processor, or a GPU. Whoever runs the process says so, FEDSYNTH_DEVICE, which the chart sets
from its own values; no plan and no ask has a word in it.

Everything random is drawn on the processor, by the generators of record, and moved: noise, which rows join, luck, fresh
weights. So a device changes a result by rounding only. What is summed over rows and clipped is float64 there, too; no
float32 product is shortened (TF32), and nothing is added in an order of the moment.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext

import torch

from synth.errors import InputError

DEVICE = "FEDSYNTH_DEVICE"  # in the environment: cpu, cuda, cuda:1
WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"  # cuBLAS adds in one order with this


def chosen() -> torch.device:
    """The device of this process; one that is named and not there is an error, never the processor in its place."""
    name = os.environ.get(DEVICE) or "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"{DEVICE} is '{name}', which is no device; say cpu or cuda") from None
    if device.type == "cpu":
        return device
    if device.type != "cuda" or not torch.cuda.is_available():
        raise InputError(
            f"{DEVICE} is '{name}', and torch {torch.__version__} finds no such device here: is it the image with "
            "CUDA, and was the pod given a GPU (gpu.enabled, gpu.runtimeClassName)?"
        )
    os.environ.setdefault(WORKSPACE, ":4096:8")
    torch.use_deterministic_algorithms(True)
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    return device


def on(device: torch.device) -> AbstractContextManager[object]:
    """While open, what torch makes it makes there; the processor needs no telling."""
    return nullcontext() if device.type == "cpu" else device
