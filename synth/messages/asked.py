"""Reading an ask as strictly as a form: exactly these options and arrays, of these types and sizes, all of it finite.

A party charges its ledger before it computes, so whatever cannot be answered must be refused before: every inquiry's
`cost` reads the whole ask with these functions, and what they let through can be answered. Everything expected follows
from the plan, or from parts of the ask that were checked already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from synth.errors import ProtocolError
from synth.interface import Array, Arrays, Ask


@dataclass(frozen=True)
class Form:
    """What an array must be; reals and integers alike have one exact type."""

    shape: tuple[int, ...]
    dtype: type[np.generic] = np.float64


def whole_numbers(ask: Ask, phase: str, *names: str) -> list[int]:
    """The options besides the phase, in the order of `names`: whole numbers from 0, these and no others."""
    if ask.options.get("phase") != phase or set(ask.options) != {"phase", *names}:
        raise ProtocolError(f"an ask of phase '{phase}' must carry exactly the options {', '.join(['phase', *names])}")
    values = [ask.options[name] for name in names]
    numbers = [value for value in values if type(value) is int and value >= 0]  # a bool passes for no number
    if len(numbers) != len(values):
        raise ProtocolError(f"the options {', '.join(names)} of an ask must be whole numbers from 0")
    return numbers


def exactly(arrays: Arrays, forms: Mapping[str, Form]) -> Arrays:
    """These arrays, if they are all that was expected and nothing else."""
    require_names(arrays, forms)
    for name, form in forms.items():
        checked(arrays, name, form)
    return arrays


def require_names(arrays: Arrays, names: Iterable[str]) -> None:
    if set(arrays) != set(names):
        raise ProtocolError("an ask holds other arrays than the plan calls for; both sides need the same plan")


def checked(arrays: Arrays, name: str, form: Form) -> Array:
    """One array, if it is there and as it must be."""
    array = arrays.get(name)
    if array is None or array.dtype != form.dtype or array.shape != form.shape:
        raise ProtocolError(f"array '{name}' of an ask is missing, or of another type or shape than the plan calls for")
    if not np.isfinite(array).all():
        raise ProtocolError(f"array '{name}' of an ask is not finite")
    return array


def distribution(arrays: Arrays, name: str, cells: int) -> Array:
    """Probabilities: none negative, and their sum is 1."""
    array = checked(arrays, name, Form((cells,)))
    if array.min(initial=0.0) < 0 or not np.isclose(array.sum(), 1.0, atol=1e-6):
        raise ProtocolError(f"array '{name}' of an ask should hold probabilities and does not")
    return array
