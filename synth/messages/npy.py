"""One array as NumPy's .npy bytes, read by a form that leaves nothing to guess and nothing to execute.

NumPy's own reader evaluates the header as Python text, allocates whatever the header declares before it looks for the
bytes, and falls back to a tokenizer for headers of Python 2. Files and messages of strangers are read here instead: one
form of header, numbers or text only, and exactly as many bytes as the shape needs.
"""

from __future__ import annotations

import re

import numpy as np

from synth.interface import Array

_START = b"\x93NUMPY\x01\x00"
_LENGTH_BYTES = 2
_LONGEST_HEADER = 4096
_HEADER = re.compile(
    r"\{'descr': '(?P<kind>\|b1|\|[iu]1|[<>][iu][248]|[<>]f[248]|<U\d{1,6})', 'fortran_order': (?P<order>True|False), "
    r"'shape': \((?P<shape>|\d{1,18},|\d{1,18}(, \d{1,18}){1,15})\), \} *\n"
)


class NotAnArray(ValueError):
    """Bytes that are no array, in words that show none of them."""


def read(data: bytes) -> Array:
    """The array; it may be written to and does not hold on to `data`."""
    start = len(_START) + _LENGTH_BYTES
    length = int.from_bytes(data[len(_START) : start], "little")
    if not data.startswith(_START) or length > _LONGEST_HEADER:
        raise NotAnArray("it is no array in NumPy's form")
    form = _HEADER.fullmatch(data[start : start + length].decode("latin-1"))
    if form is None:
        raise NotAnArray("its header names a type or shape that is not read here: numbers and text only")
    kind, shape = np.dtype(form["kind"]), [int(side) for side in form["shape"].replace(",", " ").split()]
    content, cells = memoryview(data)[start + length :], int(np.prod(shape, dtype=object))
    if cells * kind.itemsize != len(content) or (not kind.itemsize and cells):
        raise NotAnArray("its header declares another size than it has")
    flat = np.frombuffer(content, kind).copy() if kind.itemsize else np.empty(0, kind)
    return flat.reshape(shape, order="F" if form["order"] == "True" else "C")
