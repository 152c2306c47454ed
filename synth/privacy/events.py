"""What a party spends, written down before it is spent.

Every release is one frozen event. An event names a mechanism and its public parameters, never data, so it
can be computed from an ask alone, stored in the ledger for years, printed in a certificate and composed again
by an auditor with another accountant. The meaning of a field therefore never changes; a mechanism that
differs in any way gets a new kind.

Privacy unit, for all events: add or remove **one row at one party**. Parties hold disjoint rows, so the claim
for the whole federation is the largest claim of any party, not a sum.
"""

import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from synth.errors import PrivacyError


@dataclass(frozen=True)
class CountNoise:
    """Counts released with integer noise, one release of `queries` histograms.

    A row lies in at most one cell of each histogram, so adding it changes at most `queries` cells, each by 1.
    Every cell carries independent Skellam noise (the difference of two Poisson variables of mean
    `variance`/2). `variance` counts only noise the adversary does not know: for trust "shared" that of the
    honest parties together (nobody sees less than the secure sum), for trust "local" what this party
    added by itself.
    """

    kind: ClassVar[str] = "count_noise"
    queries: int
    variance: float  # counts², per cell
    mechanism: Literal["skellam"] = "skellam"
    trust: Literal["shared", "local"] = "shared"

    def __post_init__(self) -> None:
        _require_count(self, "queries")
        _require_positive(self, "variance")
        _require_one_of(self, "mechanism", ("skellam",))
        _require_one_of(self, "trust", ("shared", "local"))


@dataclass(frozen=True)
class SampledGaussian:
    """`steps` noisy sums over Poisson samples, as in DP-SGD.

    In every step each row joins independently with probability `sample_rate` and contributes a vector of L2
    norm at most C; the sum gets Gaussian noise of standard deviation `noise_multiplier` × C per coordinate.
    What is added afterwards, or divided by, is public.
    """

    kind: ClassVar[str] = "sampled_gaussian"
    sample_rate: float
    noise_multiplier: float
    steps: int

    def __post_init__(self) -> None:
        _require_positive(self, "sample_rate")
        if self.sample_rate > 1:
            raise PrivacyError(f"sampled_gaussian: sample_rate is a probability, got {self.sample_rate}")
        _require_positive(self, "noise_multiplier")
        _require_count(self, "steps")


@dataclass(frozen=True)
class Gaussian:
    """One release with Gaussian noise of standard deviation `noise_multiplier` × L2 sensitivity."""

    kind: ClassVar[str] = "gaussian"
    noise_multiplier: float

    def __post_init__(self) -> None:
        _require_positive(self, "noise_multiplier")


@dataclass(frozen=True)
class Laplace:
    """One release with Laplace noise of scale b = `scale_over_sensitivity` × L1 sensitivity (ε = 1/that)."""

    kind: ClassVar[str] = "laplace"
    scale_over_sensitivity: float

    def __post_init__(self) -> None:
        _require_positive(self, "scale_over_sensitivity")


@dataclass(frozen=True)
class Unaccounted:
    """Something left the party under no differential privacy that we can prove; composition returns ε = ∞.

    Published protocols that release exact statistics are run with this event (`what` says which), so their
    certificates can only ever call an ε nominal.
    """

    kind: ClassVar[str] = "unaccounted"
    what: str

    def __post_init__(self) -> None:
        if not isinstance(self.what, str) or not self.what:
            raise PrivacyError("unaccounted: say in `what` which release has no guarantee")


Event: TypeAlias = CountNoise | SampledGaussian | Gaussian | Laplace | Unaccounted

_BY_KIND: dict[str, type[Event]] = {event.kind: event for event in get_args(Event)}


def to_dict(event: Event) -> dict[str, Any]:
    """The event as plain JSON values, with its `kind` first."""
    return {"kind": event.kind, **asdict(event)}


def from_dict(record: Mapping[str, Any]) -> Event:
    """The inverse of `to_dict`; an unknown kind, an unknown key or a missing key is refused."""
    content = dict(record)
    kind = content.pop("kind", None)
    event_type = _BY_KIND.get(kind) if isinstance(kind, str) else None
    if event_type is None:
        raise PrivacyError(f"unknown event kind {kind!r}; known: {', '.join(_BY_KIND)}")
    known = {field.name: field for field in fields(event_type)}
    if unknown := sorted(map(str, content.keys() - known.keys())):
        raise PrivacyError(f"{kind}: unknown fields {unknown}; the record is from another version")
    if missing := [name for name, f in known.items() if f.default is MISSING and name not in content]:
        raise PrivacyError(f"{kind}: missing fields {missing}")
    floats = {name for name, field in known.items() if field.type is float}
    return event_type(**{k: _as_float(v) if k in floats else v for k, v in content.items()})


def _as_float(value: Any) -> Any:
    """JSON writes 2.0 as 2 in some encoders; anything else is left for the event's own check to refuse."""
    return float(value) if type(value) is int else value


def _require_count(event: Any, name: str) -> None:
    value = getattr(event, name)
    if type(value) is not int or value < 1:
        raise PrivacyError(f"{event.kind}: {name} must be a whole number of at least 1, got {value!r}")


def _require_positive(event: Any, name: str) -> None:
    value = getattr(event, name)
    if not isinstance(value, float) or not math.isfinite(value) or value <= 0:
        raise PrivacyError(f"{event.kind}: {name} must be a finite number above 0 (a float), got {value!r}")


def _require_one_of(event: Any, name: str, allowed: tuple[str, ...]) -> None:
    value = getattr(event, name)
    if value not in allowed:
        raise PrivacyError(f"{event.kind}: {name} must be one of {', '.join(allowed)}, got {value!r}")
