"""What can go wrong with a sum at the aggregator, beside what synth/errors.py draws.

ProtocolError
├── SumRefused             a contribution that crypto/ refuses; its code says which way
├── Disagreement           parties that must say the same do not: layouts, keys, opened sums, statements
└── MissingParties
    └── Lost               parties that did not answer in time; the others may be enough
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from crypto.errors import CryptoError
from synth.errors import MissingParties, ProtocolError


class SumRefused(ProtocolError):
    def __init__(self, error: CryptoError) -> None:
        super().__init__(f"{error} (nothing was opened; resume when the fault is gone)")
        self.code = error.code


class Disagreement(ProtocolError):
    code = "parties-disagree"


class Lost(MissingParties):
    def __init__(self, parties: list[str]) -> None:
        super().__init__(f"no answer from {', '.join(parties)}; resume when they are back")
        self.parties = parties


@contextmanager
def sum_refusals() -> Iterator[None]:
    """The one place where refusals of crypto/ become errors of the aggregator."""
    try:
        yield
    except CryptoError as error:
        raise SumRefused(error) from error
