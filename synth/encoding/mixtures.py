"""One-dimensional Gaussian mixtures: the modes a numeric column is normalised by (Xu et al. 2019, section 4.2).

The rigorous way fits the variational mixture to the released histogram: values spread evenly over the cells stand for
the rows, so the fit is weighted by the counts and touches no row. Values that hold much of a column by themselves (no
capital gain, 40 hours) become modes of almost no width, because a Gaussian wide enough to be fitted would smear them.

The published way (Leitner, Algorithm 4.1) is kept for benchmarks on public data: each party fits a plain mixture of
fixed size, modes are averaged by rank for some rounds, and the server refits on draws from the parties' last mixtures.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from synth.encoding.cells import Cells
from synth.encoding.scales import Floats
from synth.errors import DataError

COMPONENTS = 10
NEGLIGIBLE = 0.005  # modes with less weight are dropped, as CTGAN does
STAND_INS = 10_000  # values that stand for a histogram in a fit
ATOM_SHARE, ATOM_CONTRAST = 0.05, 5.0  # a mode of its own: this share of the rows, this many times its neighbours
ATOM_STD_STEPS = 0.1  # 4 standard deviations are less than half a step, so everything decodes to the value itself
RELATIVE_FLOOR = 1e-6  # added to variances in units of the column's variance


@dataclass(frozen=True, eq=False)
class Mixture:
    """Weights (summing to 1), means and standard deviations of the modes."""

    weights: Floats
    means: Floats
    stds: Floats

    def __len__(self) -> int:
        return len(self.weights)

    def log_densities(self, values: Floats) -> Floats:
        """log(weight × density) of every mode at every value: shape (values, modes)."""
        z = (values[:, None] - self.means) / self.stds
        found: Floats = np.log(self.weights / self.stds) - 0.5 * (z**2 + np.log(2 * np.pi))
        return found

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        mode = rng.choice(len(self), n, p=self.weights)
        return rng.normal(self.means[mode], self.stds[mode])


def fit_cells(cells: Cells, name: str, probabilities: Floats, components: int = COMPONENTS, seed: int = 0) -> Mixture:
    """The variational mixture behind one numeric column's histogram; `probabilities` are those of `Cells`."""
    share = probabilities[: len(cells.edges(name)) - 1]
    if share.sum() <= 0:  # nothing but missing cells
        share = np.ones(len(share))
    share = share / share.sum()
    atoms = _atoms(cells, name, share)[: components // 2]
    values = np.array([cells.single_values(name)[cell] for cell in atoms])
    weights = share[atoms]
    stds = np.full(len(atoms), ATOM_STD_STEPS * cells.scales[name].step)
    rest = share.copy()
    rest[atoms] = 0.0
    if rest.sum() <= NEGLIGIBLE and len(atoms):
        return Mixture(weights / weights.sum(), values, stds)
    body = fit_mixture(cells.spread(name, rest, STAND_INS), components=components - len(atoms), seed=seed)
    return Mixture(
        weights=np.append(weights, body.weights * rest.sum()),
        means=np.append(values, body.means),
        stds=np.append(stds, body.stds),
    )


def fit_mixture(values: Floats, weights: Floats | None = None, components: int = COMPONENTS, seed: int = 0) -> Mixture:
    """The variational mixture of weighted values, with CTGAN's priors; never more modes than distinct values."""
    if weights is not None:
        values = _by_weight(values, weights, STAND_INS)
    centre, width = values.mean(), values.std()
    if width == 0:
        return Mixture(np.ones(1), values[:1].astype(np.float64), np.full(1, np.sqrt(RELATIVE_FLOOR)))
    model = BayesianGaussianMixture(
        n_components=min(components, len(np.unique(values))),
        weight_concentration_prior_type="dirichlet_process",
        weight_concentration_prior=0.001,
        reg_covar=RELATIVE_FLOOR,
        random_state=seed,
    )
    _fit(model, (values - centre) / width)
    kept = model.weights_ > NEGLIGIBLE
    return Mixture(
        weights=model.weights_[kept] / model.weights_[kept].sum(),
        means=centre + width * model.means_[kept, 0],
        stds=width * np.sqrt(model.covariances_[kept, 0, 0]),
    )


def fit_local(values: Floats, start: Mixture | None, components: int = COMPONENTS, seed: int = 0) -> Mixture:
    """A party's plain mixture, modes by ascending mean; starts from k-means, or from the averaged one."""
    values = values[~np.isnan(values)]
    if components > len(values):
        raise DataError(
            f"a mixture of {components} modes needs at least as many rows with a value; "
            "lower 'components' in the plan or leave this party out."
        )
    warm = {}
    if start is not None:
        warm = {
            "weights_init": start.weights / start.weights.sum(),
            "means_init": start.means[:, None],
            "precisions_init": (1 / start.stds**2)[:, None, None],
        }
    floor = RELATIVE_FLOOR * max(values.var(), RELATIVE_FLOOR)
    model = GaussianMixture(n_components=components, reg_covar=floor, random_state=seed, **warm)
    _fit(model, values)
    order = np.argsort(model.means_[:, 0], kind="stable")
    return Mixture(model.weights_[order], model.means_[order, 0], np.sqrt(model.covariances_[order, 0, 0]))


def by_rank(mixture: Mixture) -> Floats:
    """Means, variances and weights as rows: what a party sends, and what may be added over parties."""
    return np.stack([mixture.means, mixture.stds**2, mixture.weights])


def average_by_rank(total: Floats, parties: float) -> Mixture:
    """The unweighted mean of `parties` mixtures from the sum of their `by_rank`."""
    means, variances, weights = total / parties
    return Mixture(weights / weights.sum(), means, np.sqrt(variances))


def pool_and_refit(
    mixtures: Sequence[Mixture], rows: Sequence[int], components: int = COMPONENTS, seed: int = 0
) -> Mixture:
    """The variational mixture of as many draws from each party's mixture as it has rows, in any order of parties."""
    rng = np.random.default_rng(seed)
    parties = sorted(zip(mixtures, rows, strict=True), key=lambda pair: (*by_rank(pair[0]).ravel(), pair[1]))
    pool = np.concatenate([mixture.sample(count, rng) for mixture, count in parties])
    return fit_mixture(pool, components=components, seed=seed)


def _atoms(cells: Cells, name: str, share: Floats) -> list[int]:
    """Cells of a single value that stand out, largest first."""
    per_value = share / np.diff(cells.edges(name))
    beside = np.maximum(np.append(per_value[1:], 0.0), np.append(0.0, per_value[:-1]))
    outstanding = (share >= ATOM_SHARE) & (per_value >= ATOM_CONTRAST * beside)
    found = [cell for cell in cells.single_values(name) if outstanding[cell]]
    return sorted(found, key=lambda cell: -share[cell])


def _by_weight(values: Floats, weights: Floats, n: int) -> Floats:
    """`n` values in the proportions of their weights: a weighted fit for an estimator that knows no weights."""
    cumulative = np.cumsum(weights) / np.sum(weights)
    picked = np.searchsorted(cumulative, (np.arange(n) + 0.5) / n)
    return values[np.minimum(picked, len(values) - 1)]


def _fit(model: BayesianGaussianMixture | GaussianMixture, values: Floats) -> None:
    with warnings.catch_warnings():
        # The published settings stop after 100 iterations, converged or not; few distinct values are no error either.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(values[:, None])
