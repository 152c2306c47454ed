"""What whoever verifies has beside the certificate, and what looking at one thing gave."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from synth.plan import Plan

if TYPE_CHECKING:
    from synth.certificate.certificate import Signature

IsSigned = Callable[["Signature", bytes], bool]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `holds` is None where nothing was given to hold it against."""

    what: str
    holds: bool | None
    detail: str


@dataclass(frozen=True)
class PinnedKey:
    """A public key that was compared out of band, and from when to when its owner signed with it."""

    public_key: str  # hexadecimal
    valid_from: dt.datetime | None = None
    retired_on: dt.datetime | None = None

    def misused(self, moment: dt.datetime | None) -> str | None:
        """Why a signature of that moment does not count, in words; None: it does."""
        if moment is None:
            return None if self.retired_on is None else "a key that was retired, and no time says that it was before"
        if self.retired_on is not None and moment >= self.retired_on:
            return f"a key that was retired on {self.retired_on.isoformat()}, before the certificate was issued"
        if self.valid_from is not None and moment < self.valid_from:
            return f"a key that was valid from {self.valid_from.isoformat()} on, after the certificate was issued"
        return None


Keys = Mapping[str, Sequence[PinnedKey]]  # by name: the present key and those retired


@dataclass(frozen=True)
class Evidence:
    """What the verifier has beside the certificate. What is missing fails, unless `unsigned` is said: then it is shown
    as not checked. A signature or a party that somebody took off looks just like one that never was."""

    is_signed: IsSigned
    keys: Keys | None = None
    plan: Plan | None = None
    tables: Mapping[str, str] = field(default_factory=dict)  # file name → SHA-256
    models: Mapping[str, str] = field(default_factory=dict)  # the same of the model
    unsigned: bool = False
    now: dt.datetime | None = None  # for certificates that say they are of the future
    fingerprint: Callable[[str], str] = str  # of a public key in hexadecimal, as people compare it

    def missing(self, what: str, detail: str) -> Finding:
        if self.unsigned:
            return Finding(what, None, detail)
        return Finding(what, False, f"{detail} (with --unsigned it is only said, not failed)")
