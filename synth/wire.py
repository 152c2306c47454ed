"""What crosses between institutions, as Flower records and back. The only importer of flwr in this package.

An `Envelope` is the transport's view of any message: named arrays and a few scalars. Flower's own serialisation
carries it (never pickle); sealed arrays stay plain ndarrays, so masked and encrypted answers need no special case.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

import numpy as np
from flwr.app import Array as FlowerArray
from flwr.app import ArrayRecord, ConfigRecord, RecordDict

from synth.errors import ProtocolError
from synth.interface import Answer, Arrays, Ask, Scalar

T = TypeVar("T")


@dataclass(frozen=True)
class Envelope:
    """One message's content, whatever it means."""

    arrays: Arrays = field(default_factory=dict)
    options: dict[str, Scalar] = field(default_factory=dict)


def to_records(envelope: Envelope) -> RecordDict:
    arrays = ArrayRecord({name: FlowerArray(np.asarray(a, order="C")) for name, a in envelope.arrays.items()})
    return RecordDict({"arrays": arrays, "options": ConfigRecord(dict(envelope.options))})


def from_records(records: RecordDict) -> Envelope:
    if set(records) != {"arrays", "options"}:
        raise ProtocolError("a message must hold exactly the records 'arrays' and 'options'")
    arrays = {name: array.numpy() for name, array in records.array_records["arrays"].items()}
    options = {name: cast(Scalar, value) for name, value in records.config_records["options"].items()}
    if not all(isinstance(value, bool | int | float | str) for value in options.values()):
        raise ProtocolError("a message's options must be scalars")
    return Envelope(arrays, options)


def pack_ask(ask: Ask, party: str) -> Envelope:
    """The ask as this party sees it: its own extra arrays, nobody else's."""
    arrays = {f"ask/{name}": a for name, a in ask.arrays.items()}
    arrays |= {f"only/{name}": a for name, a in ask.only.get(party, {}).items()}
    return Envelope(arrays, {f"option/{k}": v for k, v in ask.options.items()} | {"combine": ask.combine})


def unpack_ask(envelope: Envelope, party: str) -> Ask:
    combine = envelope.options.get("combine")
    if combine not in ("sum", "gather"):
        raise ProtocolError("an ask must say how its answers are combined: 'sum' or 'gather'")
    only = _under("only/", envelope.arrays)
    if any(not name.startswith(("ask/", "only/")) for name in envelope.arrays):
        raise ProtocolError("an ask holds an array that is no part of it; its sender runs another version")
    return Ask(
        arrays=_under("ask/", envelope.arrays),
        options=_under("option/", envelope.options),
        combine="sum" if combine == "sum" else "gather",
        only={party: only} if only else {},
    )


def pack_answer(answer: Answer) -> Envelope:
    return Envelope(dict(answer.arrays), {"weight": float(answer.weight)})


def unpack_answer(envelope: Envelope) -> Answer:
    weight = envelope.options.get("weight")
    if not isinstance(weight, float):
        raise ProtocolError("an answer must carry its weight")
    return Answer(dict(envelope.arrays), weight)


def digest(envelope: Envelope) -> str:
    """SHA-256 over names, types, shapes and bytes: what a stored answer is the answer *to*."""
    state = hashlib.sha256()
    for name in sorted(envelope.arrays):
        array = np.asarray(envelope.arrays[name], order="C")
        state.update(f"{name}|{array.dtype.str}|{array.shape}|".encode() + array.tobytes())
    for name in sorted(envelope.options):
        state.update(f"{name}={envelope.options[name]!r}|".encode())
    return state.hexdigest()


def _under(prefix: str, values: Mapping[str, T]) -> dict[str, T]:
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}
