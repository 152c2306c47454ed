"""What crosses between institutions, as Flower records and back. The only importer of flwr in this package.

An `Envelope` is the transport's view of any message: named arrays and a few scalars. Flower's own serialisation
carries it (never pickle); sealed arrays are plain numbers too, so masked and encrypted answers need no special case.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

import numpy as np
from flwr.app import ConfigRecord, RecordDict

from synth.errors import ProtocolError
from synth.interface import Answer, Array, Arrays, Ask, Scalar

T = TypeVar("T")
PIECE_BYTES = 5 << 20  # as Flower cuts its own arrays; the edge lets 6 MiB through

# Little-endian numbers in at most eight dimensions, nothing else: "<f4 [12, 3]".
_FORM = re.compile(r"(?P<kind>[|][biu]1|<[iu][248]|<f[248]) \[(?P<shape>(\d{1,12}(, \d{1,12}){0,7})?)\]")


@dataclass(frozen=True)
class Envelope:
    """One message's content, whatever it means."""

    arrays: Arrays = field(default_factory=dict)
    options: dict[str, Scalar] = field(default_factory=dict)


def to_records(envelope: Envelope) -> RecordDict:
    """All in one record, or in one for every so many bytes: to a SuperLink every record and every array is an object
    of its own, pushed and fetched by itself, and each of that is several writes in its database."""
    arrays = {name: np.asarray(envelope.arrays[name], order="C") for name in sorted(envelope.arrays)}
    block = b"".join(array.tobytes() for array in arrays.values())
    layout = {f"layout/{name}": f"{array.dtype.str} {list(array.shape)}" for name, array in arrays.items()}
    options = {f"option/{name}": value for name, value in envelope.options.items()}
    first = ConfigRecord({"block": block[:PIECE_BYTES], **layout, **options})
    rest = range(PIECE_BYTES, len(block), PIECE_BYTES)
    pieces = [ConfigRecord({"block": block[start : start + PIECE_BYTES]}) for start in rest]
    return RecordDict({f"{number:06d}": record for number, record in enumerate([first, *pieces])})


def from_records(records: RecordDict) -> Envelope:
    if set(records) != set(records.config_records) or "000000" not in records:
        raise ProtocolError("a message must hold pieces of one block, and no records of another kind")
    first, *rest = (record for _, record in sorted(records.config_records.items()))
    options, layout = _under("option/", first), _under("layout/", first)
    if not all(isinstance(value, bool | int | float | str) for value in options.values()):
        raise ProtocolError("a message's options must be scalars")
    if not all(map(_is_text, [*options, *options.values(), *layout])):
        raise ProtocolError("a message holds half of a character")
    if len(first) != 1 + len(options) + len(layout) or any(set(record) != {"block"} for record in rest):
        raise ProtocolError("a message holds what is neither an option nor a piece of its block")
    pieces = [record.get("block") for record in (first, *rest)]
    if not all(isinstance(piece, bytes) for piece in pieces):
        raise ProtocolError("a message's block must be bytes")
    block = np.frombuffer(b"".join(cast(list[bytes], pieces)), np.uint8)
    return Envelope(_arrays_in(block, layout), cast(dict[str, Scalar], options))


def _is_text(value: object) -> bool:
    """Whether it can be written down: digests and signatures are over bytes."""
    return not isinstance(value, str) or value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)


def _arrays_in(block: Array, layout: Mapping[str, object]) -> Arrays:
    """The arrays that `to_records` put one behind the other, in the order of their names."""
    arrays, start = {}, 0
    for name in sorted(layout):
        form = _FORM.fullmatch(str(layout[name]))
        if form is None:
            raise ProtocolError("a message's layout names a type or shape that no array has")
        kind, shape = np.dtype(form["kind"]), [int(side) for side in form["shape"].split(", ") if side]
        end = start + math.prod(shape) * kind.itemsize
        if end > block.size:
            raise ProtocolError("a message's block is shorter than its layout says")
        arrays[name] = block[start:end].copy().view(kind).reshape(shape)  # a copy: aligned, and writable
        start = end
    if start != block.size:
        raise ProtocolError("a message's block is longer than its layout says")
    return arrays


def pack_ask(ask: Ask) -> Envelope:
    arrays = {f"ask/{name}": a for name, a in ask.arrays.items()}
    return Envelope(arrays, {f"option/{k}": v for k, v in ask.options.items()} | {"combine": ask.combine})


def unpack_ask(envelope: Envelope) -> Ask:
    combine = envelope.options.get("combine")
    if combine not in ("sum", "gather"):
        raise ProtocolError("an ask must say how its answers are combined: 'sum' or 'gather'")
    if any(not name.startswith("ask/") for name in envelope.arrays):
        raise ProtocolError("an ask holds an array that is no part of it; its sender runs another version")
    return Ask(
        arrays=_under("ask/", envelope.arrays),
        options=_under("option/", envelope.options),
        combine="sum" if combine == "sum" else "gather",
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
