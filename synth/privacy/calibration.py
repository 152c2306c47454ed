"""From a budget to noise.

Everything here is computed from public numbers of the plan, by the aggregator and by every party separately, and
must come out the same. So noise levels are looked for on the grid of four-significant-digit decimals only: the
answer is the smallest such value that keeps `compose`, the ledger's own function, at or below ε. Two machines
whose floating point differs in the last digits would have to straddle a grid point to disagree, and then the
party's ledger, which composes what was asked, still decides.

The search starts from an estimate that costs nothing, because far too little noise is slow to account for, and goes
on in grids of privacy loss of increasing precision. A coarser grid only overstates ε, so each answer is a valid start
for the next and the expensive last one is evaluated a few times.
"""

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache, partial

from dp_accounting.gaussian_mechanism import get_epsilon_gaussian, get_sigma_gaussian

from synth.errors import BudgetError, PrivacyError
from synth.privacy.accounting import as_units, compose, rdp_epsilon
from synth.privacy.events import CountNoise, Event, SampledGaussian, SharedGaussian
from synth.units import Unit

_DECADE = 9000  # four-digit mantissas 1000 … 9999
_LEAST_VOTE, _LARGEST_VOTE = -2 * _DECADE, _DECADE + 1000  # grid indices of an ε of 0.01 and of 20
_LARGEST_NOISE = 8 * _DECADE  # grid index of 10^8; more noise than this is no mechanism
_ESTIMATING_ORDERS = (2, 4, 8, 16, 32, 64)  # for where to begin; every order costs as much as its number


@lru_cache(maxsize=1024)  # asked anew for every party of a plan
def gaussian_sigma(epsilon: float, delta: float) -> float:
    """The noise of a Gaussian mechanism of sensitivity 1 that costs (ε, δ)."""
    return float(get_sigma_gaussian(epsilon, delta))


@lru_cache(maxsize=1024)
def variance_for_share(epsilon: float, delta: float, share: float, queries: int) -> float:
    """Noise for counts that may cost a share of a budget whose rest is calibrated afterwards, by exact composition.

    Shares are shares of ρ (zero-concentrated DP), the currency that adds up: the counts may cost, alone, what a
    Gaussian mechanism with `share` of the ρ of a (ε, δ) Gaussian mechanism would cost.
    """
    _check_budget(epsilon, delta)
    if not 0 < share < 1:
        raise PrivacyError(f"a share of the budget must lie between 0 and 1, got {share}")
    return calibrate_count_variance(epsilon_for_share(epsilon, delta, share), delta, queries)


def epsilon_for_share(epsilon: float, delta: float, share: float) -> float:
    """What a Gaussian mechanism costs, alone, that has a share of the ρ of an (ε, δ) Gaussian mechanism."""
    return float(get_epsilon_gaussian(gaussian_sigma(epsilon, delta) / math.sqrt(share), delta))


def calibrate_noise_multiplier(
    epsilon: float, delta: float, sample_rate: float, steps: int, other_events: Iterable[Event] = (), shares: int = 1
) -> float:
    """The least noise for `steps` DP-SGD steps such that they and the other events cost at most (ε, δ), whether a party
    makes it alone or so many make it between them."""
    others = tuple(other_events)
    about = _about(others)
    alone = SampledGaussian(sample_rate, 1.0, steps, about=about)
    event = SharedGaussian(sample_rate, 1.0, steps, shares, about=about) if shares > 1 else alone
    return _least_noise(epsilon, delta, event, others)


def calibrate_count_variance(epsilon: float, delta: float, queries: int, other_events: Iterable[Event] = ()) -> float:
    """The least variance per cell such that the counts and the other events cost at most (ε, δ)."""
    others = tuple(other_events)
    return _least_noise(epsilon, delta, CountNoise(queries, 1.0, about=_about(others)), others)


@lru_cache(maxsize=64)
def calibrate_votes(epsilon: float, delta: float, votes: Callable[[float], Event], others: tuple[Event, ...]) -> float:
    """The largest ε of a vote with which all of `votes(ε)` and the other events cost at most (ε, δ)."""
    _check_budget(epsilon, delta)

    def fits(index: int, coarsening: float = 1) -> bool:
        return compose([*others, votes(_grid_value(index))], delta, coarsening).epsilon <= epsilon

    if not fits(_LEAST_VOTE):
        raise BudgetError(f"ε = {epsilon:g} leaves nothing to vote with; take fewer rounds, or a smaller sample_rate")
    good, step = _bisect(partial(fits, coarsening=10), _LEAST_VOTE, _LARGEST_VOTE), 1
    while good + step < _LARGEST_VOTE and fits(good + step):
        good, step = good + step, 2 * step
    return _grid_value(_bisect(fits, good, min(good + step, _LARGEST_VOTE)))


def steps_affordable(
    epsilon: float,
    delta: float,
    sample_rate: float,
    noise_multiplier: float,
    spent: Iterable[Event] = (),
    *,
    at_most: int,
) -> int:
    """How many further steps, up to `at_most`, fit the budget. Training refuses the step after these."""
    _check_budget(epsilon, delta)
    spent = tuple(spent)

    def fits(steps: int) -> bool:
        training = [SampledGaussian(sample_rate, noise_multiplier, steps)] if steps else []
        return compose([*spent, *training], delta).epsilon <= epsilon

    if at_most < 1 or not fits(0):
        return 0
    return at_most if fits(at_most) else _bisect(fits, 0, at_most)


def _about(others: tuple[Event, ...]) -> Unit:
    """Whose loss adds up with these."""
    return others[0].about if others else "row"


@lru_cache(maxsize=64)
def _least_noise(epsilon: float, delta: float, event: CountNoise | SampledGaussian, others: tuple[Event, ...]) -> float:
    """The smallest noise on the grid with which the event fits the budget."""
    _check_budget(epsilon, delta)
    spent = compose(others, delta).epsilon
    if spent >= epsilon:
        raise BudgetError(
            f"other releases already cost ε = {spent:.4g} of {epsilon:g}; raise ε or let them have more noise"
        )

    def cost(index: int, coarsening: float) -> float:
        noisy = _with_noise(event, _grid_value(index))
        return compose([*others, noisy], delta, coarsening).epsilon

    index = _estimate(epsilon, delta, event, others)
    for coarsening in (10.0, 1.0):
        index = _least_index(partial(cost, coarsening=coarsening), epsilon, index)
    if index > _LARGEST_NOISE:
        raise BudgetError(f"no amount of noise brings the total to ε = {epsilon:g}; other releases cost {spent:.6g}")
    return _grid_value(index)


def _estimate(epsilon: float, delta: float, event: CountNoise | SampledGaussian, others: tuple[Event, ...]) -> int:
    """Where to start: counts as if they were alone and their noise Gaussian, steps by Rényi DP."""
    if isinstance(event, CountNoise):
        variance = event.queries * gaussian_sigma(epsilon, delta) ** 2
        return min(_grid_index(math.log(variance)), _LARGEST_NOISE)

    def cost(index: int) -> float:
        return rdp_epsilon(as_units([*others, _with_noise(event, _grid_value(index))]), delta, _ESTIMATING_ORDERS)

    return min(_least_index(cost, epsilon, 0), _LARGEST_NOISE)


def _with_noise(event: CountNoise | SampledGaussian, noise: float) -> Event:
    if isinstance(event, CountNoise):
        return replace(event, variance=noise)
    return replace(event, noise_multiplier=noise)


def _grid_value(index: int) -> float:
    """… 0.9999, 1.000, 1.001, …, 9.999, 10.00, …; index 0 is 1."""
    decade, mantissa = divmod(index, _DECADE)
    return float(f"{1000 + mantissa}e{decade - 3}")


def _grid_index(log_value: float) -> int:
    """The grid point at or just above e^log_value."""
    decade, fraction = divmod(log_value / math.log(10), 1)
    return int(decade) * _DECADE + math.ceil(1000 * 10**fraction) - 1000


def _least_index(cost: Callable[[int], float], epsilon: float, start: int) -> int:
    """The least index whose cost is at most ε, for a falling cost; above _LARGEST_NOISE if there is none.

    Cost is roughly a power of the noise, so everything is done in logarithms.
    """

    def excess(index: int) -> float:
        return math.log(max(cost(index), 1e-300) / epsilon)

    near, over = start, excess(start)
    upwards, factor = over > 0, 1.2
    while True:  # walk until one side is too costly and the other affordable
        step = factor * over if math.isfinite(over) else 1.0
        far = _grid_index(math.log(_grid_value(near)) + step)
        far = min(max(far, near + 1), _LARGEST_NOISE + 1) if upwards else min(far, near - 1)
        over_there = excess(far)
        if (over_there > 0) != upwards:
            break
        if far > _LARGEST_NOISE:
            return far
        if math.isfinite(over):  # else nothing is known yet of how steep the cost is
            factor *= 2
        near, over = far, over_there
    costly, affordable = ((near, over), (far, over_there)) if upwards else ((far, over_there), (near, over))
    return _interpolate(excess, costly, affordable)


def _interpolate(excess: Callable[[int], float], costly: tuple[int, float], affordable: tuple[int, float]) -> int:
    """Where the excess first falls to 0, by straight lines; every third guess bisects, to be sure to end."""
    for turn in itertools.count(1):
        (low, over), (high, under) = costly, affordable
        if high - low == 1:
            break
        straight = over / (over - under) if math.isfinite(over) and turn % 3 else 0.5
        log_low, log_high = math.log(_grid_value(low)), math.log(_grid_value(high))
        middle = min(max(_grid_index(log_low + straight * (log_high - log_low)), low + 1), high - 1)
        there = excess(middle)
        costly, affordable = ((middle, there), affordable) if there > 0 else (costly, (middle, there))
    return affordable[0]


def _bisect(fits: Callable[[int], bool], good: int, bad: int) -> int:
    """The last index that fits, coming from `good`, which does, to `bad`, which does not."""
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good


def _check_budget(epsilon: float, delta: float) -> None:
    if not (0 < epsilon < math.inf and 0 < delta < 1):
        raise PrivacyError(f"a budget needs 0 < ε < ∞ and 0 < δ < 1, got ε = {epsilon}, δ = {delta}")
