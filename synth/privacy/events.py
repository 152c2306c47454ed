"""What a party spends, written down before it is spent.

Every release is one frozen event. An event names a mechanism and its public parameters, never data, so it
can be computed from an ask alone, stored in the ledger for years, printed in a certificate and composed again
by an auditor with another accountant. The meaning of a field therefore never changes; a mechanism that
differs in any way gets a new kind.

An event describes itself (`event`); its loss is computed by `losses`, loaded only then: reading a ledger or a plan
needs no numerical code. So a new mechanism is one class here and its loss there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from synth.errors import PrivacyError
from synth.privacy.checks import require_count, require_one_of, require_positive
from synth.privacy.event import Event
from synth.privacy.selection.event import Votes
from synth.units import NOUNS, PLURALS

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    from synth.privacy.losses import Floats


@dataclass(frozen=True)
class CountNoise(Event):
    """Counts released with integer noise, one release of `queries` histograms.

    A row lies in at most one cell of each histogram, so adding it changes at most `queries` cells, each by 1.
    Every cell carries independent Skellam noise (the difference of two Poisson variables of mean
    `variance`/2). `variance` counts only noise the adversary does not know: for trust "shared" that of the
    honest parties together (nobody sees less than the secure sum), for trust "local" what this party
    added by itself.

    A unit that lies in up to m cells of each of q histograms is charged as m q of them: m times `variance` in a cell is
    the noise of m releases that were added up, each of them holding the unit once (Skellam noise divides exactly).
    """

    kind: ClassVar[str] = "count_noise"
    queries: int
    variance: float  # counts², per cell
    mechanism: Literal["skellam"] = "skellam"
    trust: Literal["shared", "local"] = "shared"

    def __post_init__(self) -> None:
        require_count(self, "queries")
        require_positive(self, "variance")
        require_one_of(self, "mechanism", ("skellam",))
        require_one_of(self, "trust", ("shared", "local"))

    def words(self) -> str:
        return f"{self.queries} histograms with integer noise of variance {self.variance:g} per cell"

    def brief(self) -> str:
        return f"{self.queries} histograms, integer noise of variance {self.variance:.4g}"

    def units(self) -> tuple[Event, int]:
        return CountNoise(1, self.variance, about=self.about), self.queries

    def loss(self, interval: float) -> PrivacyLossDistribution:
        from synth.privacy.losses import skellam_loss

        return skellam_loss(self.variance, interval)

    def rdp(self, orders: Sequence[int]) -> Floats:
        from synth.privacy.losses import skellam_rdp

        return skellam_rdp(self.variance, tuple(orders))

    def sampler_error(self) -> float:
        from synth.privacy.losses import skellam_sampler_error

        return skellam_sampler_error(self.variance)


@dataclass(frozen=True)
class SampledGaussian(Event):
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
        require_positive(self, "sample_rate")
        if self.sample_rate > 1:
            raise PrivacyError(f"sampled_gaussian: sample_rate is a probability, got {self.sample_rate}")
        require_positive(self, "noise_multiplier")
        require_count(self, "steps")

    def words(self) -> str:
        return (
            f"{self.steps} training steps, each on a random {self.sample_rate:.3%} of the {PLURALS[self.about]}, with "
            f"Gaussian noise of {self.noise_multiplier:.4g} times a {NOUNS[self.about]}'s largest influence"
        )

    def brief(self) -> str:
        return (
            f"{self.steps} steps on {self.sample_rate:.3%} of {PLURALS[self.about]}, noise {self.noise_multiplier:.4g}"
        )

    def counted(self) -> tuple[Event, int]:
        return replace(self, steps=1), self.steps

    def repeated(self, times: int) -> list[Event]:
        return [replace(self, steps=self.steps * times)]

    def joining(self) -> float:
        return self.sample_rate

    def loss(self, interval: float) -> PrivacyLossDistribution:
        from synth.privacy.losses import gaussian_loss

        return gaussian_loss(self.noise_multiplier, self.sample_rate, interval)

    def rdp(self, orders: Sequence[int]) -> Floats:
        from synth.privacy.losses import gaussian_rdp

        return gaussian_rdp(self.noise_multiplier, self.sample_rate, orders)


@dataclass(frozen=True)
class SharedGaussian(SampledGaussian):
    """The same steps where several parties make the noise between them, and only their sum is opened.

    The sum is over the Poisson samples of all parties and lies on a lattice, as do its summands. Each of `parties`
    honest parties adds Gaussian noise of variance (`noise_multiplier` × C)² / `parties`, rounded to the lattice;
    `shared_gaussian` proves that their sum tells nobody more than Gaussian noise of the whole variance would.
    """

    kind: ClassVar[str] = "shared_gaussian"
    parties: int  # whose noise is surely in the opened sum and unknown to the adversary

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(self, "parties")

    def words(self) -> str:
        return f"{super().words()}, which {self.parties} parties that do not collude add between them"

    def brief(self) -> str:
        return f"{super().brief()} by {self.parties}"

    def shared_by(self) -> int:
        return self.parties

    def sampler_error(self) -> float:
        from synth.privacy.shared_gaussian import GAP

        return GAP


@dataclass(frozen=True)
class Gaussian(Event):
    """One release with Gaussian noise of standard deviation `noise_multiplier` × L2 sensitivity."""

    kind: ClassVar[str] = "gaussian"
    noise_multiplier: float

    def __post_init__(self) -> None:
        require_positive(self, "noise_multiplier")

    def words(self) -> str:
        return f"one release with Gaussian noise of {self.noise_multiplier:.4g} times a row's largest influence"

    def brief(self) -> str:
        return f"Gaussian, noise {self.noise_multiplier:.4g}"

    def loss(self, interval: float) -> PrivacyLossDistribution:
        from synth.privacy.losses import gaussian_loss

        return gaussian_loss(self.noise_multiplier, 1.0, interval)

    def rdp(self, orders: Sequence[int]) -> Floats:
        from synth.privacy.losses import gaussian_rdp

        return gaussian_rdp(self.noise_multiplier, 1.0, orders)


@dataclass(frozen=True)
class Laplace(Event):
    """One release with Laplace noise of scale b = `scale_over_sensitivity` × L1 sensitivity (ε = 1/that)."""

    kind: ClassVar[str] = "laplace"
    scale_over_sensitivity: float

    def __post_init__(self) -> None:
        require_positive(self, "scale_over_sensitivity")

    def words(self) -> str:
        return f"one release with Laplace noise of {self.scale_over_sensitivity:.4g} times a row's largest influence"

    def brief(self) -> str:
        return f"Laplace, scale {self.scale_over_sensitivity:.4g}"

    def loss(self, interval: float) -> PrivacyLossDistribution:
        from synth.privacy.losses import laplace_loss

        return laplace_loss(self.scale_over_sensitivity, interval)

    def rdp(self, orders: Sequence[int]) -> Floats:
        from synth.privacy.losses import laplace_rdp

        return laplace_rdp(self.scale_over_sensitivity, orders)


@dataclass(frozen=True)
class Unaccounted(Event):
    """Something left the party under no differential privacy that we can prove; composition returns ε = ∞.

    Published protocols that release exact statistics are run with this event (`what` says which), so their
    certificates can only ever call an ε nominal.
    """

    kind: ClassVar[str] = "unaccounted"
    guaranteed = False
    what: str

    def __post_init__(self) -> None:
        if not isinstance(self.what, str) or not self.what:
            raise PrivacyError("unaccounted: say in `what` which release has no guarantee")

    def words(self) -> str:
        return f"{self.what}, without any guarantee"

    def brief(self) -> str:
        return f"{self.what}: no guarantee"

    def loss(self, interval: float) -> PrivacyLossDistribution:
        raise PrivacyError("unaccounted: there is no loss distribution of a release without a guarantee")

    def rdp(self, orders: Sequence[int]) -> Floats:
        raise PrivacyError("unaccounted: there is no Rényi divergence of a release without a guarantee")


__all__ = ["CountNoise", "Event", "Gaussian", "Laplace", "SampledGaussian", "SharedGaussian", "Unaccounted", "Votes"]

_BY_KIND: dict[str, type[Event]] = {
    event.kind: event for event in (CountNoise, SampledGaussian, SharedGaussian, Gaussian, Laplace, Unaccounted, Votes)
}


def counted(events: Iterable[Event]) -> Counter[Event]:
    """How often each mechanism, whatever the order of the events and the asks they were spread over."""
    counts: Counter[Event] = Counter()
    for event in events:
        one, times = event.counted()
        counts[one] += times
    return counts


def to_dict(event: Event) -> dict[str, Any]:
    """The event as plain JSON values, with its `kind` first. One about rows does not say so, as before there were
    others."""
    content = asdict(event)
    if event.about == "row":
        del content["about"]
    return {"kind": event.kind, **content}


def as_records(events: Iterable[Event]) -> list[dict[str, Any]]:
    return [to_dict(event) for event in events]


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
    floats = {name for name, field in known.items() if field.type == "float"}
    return event_type(**{k: _as_float(v) if k in floats else v for k, v in content.items()})


def _as_float(value: Any) -> Any:
    """JSON writes 2.0 as 2 in some encoders; anything else is left for the event's own check to refuse."""
    return float(value) if type(value) is int else value
