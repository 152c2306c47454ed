"""Who is compared, at which ε, and what each one's accounting covers. Quick ones first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    name: str
    environment: str | None  # None: ours
    method: str
    epsilons: tuple[float | None, ...]  # None: no privacy at all
    provable: str  # what a proof would cover, and what it leaves out

    @property
    def program(self) -> str:
        return f"benchmarks.peers.programs.with_{self.environment or 'fedsynth'}"


ROSTER = (
    Peer(
        "fedsynth marginals, 3 parties",
        None,
        "marginals",
        (1.0, 3.0),
        "ε, end to end: statistics, binning and counts in one composition; domains public, declared row counts",
    ),
    Peer(
        "opendp MST",
        "opendp",
        "mst",
        (1.0, 3.0),
        "ε, with the public keys and cuts we gave it; the number of drawn rows is ours; discrete noise",
    ),
    Peer(
        "dpmm MST",
        "dpmm",
        "mst",
        (1.0, 3.0),
        "ε only with the domain we gave it (its default reads labels off the rows); n exact; constant columns and "
        "whether a column has empty cells are read off the rows",
    ),
    Peer(
        "smartnoise MST",
        "smartnoise",
        "mst",
        (1.0, 3.0),
        "ε for add-or-remove only with n public: the exact row count is given to the fit; labels public because we "
        "fitted its transformer on the declared ones; floating-point noise",
    ),
    Peer(
        "smartnoise DPCTGAN",
        "smartnoise",
        "dpctgan",
        (3.0, 1.0),
        "none: the conditional vector samples rows by exact frequencies, batches are not the Poisson ones its "
        "accountant assumes, and the budget is checked once per epoch",
    ),
    Peer(
        "fedsynth ctgan, 3 parties",
        None,
        "ctgan",
        (3.0, 1.0),
        "ε, end to end: conditions, encoding and training in one composition; Poisson batches",
    ),
    Peer("ctgan", "ctgan", "ctgan", (None,), "none: it has no privacy mechanism"),
    Peer(
        "dpmm AIM",
        "dpmm",
        "aim",
        (1.0, 3.0),
        "as dpmm MST",
    ),
    Peer("opendp AIM", "opendp", "aim", (1.0, 3.0), "as opendp MST"),
    Peer("smartnoise AIM", "smartnoise", "aim", (1.0, 3.0), "as smartnoise MST"),
)
