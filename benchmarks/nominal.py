"""What published ε are worth: `python -m benchmarks.nominal`; the last line is one JSON object. Takes seconds.

Each row is a paper's own setting under the accountant that it used (nominal) and under ours, which composes what the
algorithm does. Neither counts what the papers release without any noise (quantiles, mixtures, label vectors), so even
the larger ε is none that holds from end to end.

findiff_reset   DP-Fed-FinDiff on credit default, five clients, batches of 16: noise enough for ε = 1 over one round of
                100 steps, as an accountant finds that is built anew in every round; then over 3,000 rounds
gswgan_K        tabular GS-WGAN with K discriminators: the published accountant (Wang, Balle and Kasiviswanathan 2019,
                theorem 9) counts the 32 rows of a step as 32 independent draws of a discriminator; one discriminator
                answers them all, so a step is one draw with noise 1.07 / √32
"""

from __future__ import annotations

import json
import math

from synth.privacy.accounting import compose
from synth.privacy.calibration import calibrate_noise_multiplier
from synth.privacy.events import SampledGaussian
from synth.synthesizers.gswgan.published import composed_epsilon

FINDIFF_ROWS, FINDIFF_CLIENTS, FINDIFF_BATCH, FINDIFF_STEPS, FINDIFF_ROUNDS = 30_000, 5, 16, 100, 3_000
GSWGAN_NOISE, GSWGAN_BATCH, GSWGAN_DELTA = 1.07, 32, 1e-5
GSWGAN = ((1500, 21_000), (1000, 20_000), (750, 20_000), (250, 21_000))  # discriminators, generator steps


def findiff() -> dict[str, float]:
    rate, delta = FINDIFF_BATCH * FINDIFF_CLIENTS / FINDIFF_ROWS, 1 / FINDIFF_ROWS
    noise = calibrate_noise_multiplier(1.0, delta, rate, FINDIFF_STEPS)
    spent = compose([SampledGaussian(rate, noise, FINDIFF_STEPS * FINDIFF_ROUNDS)], delta)
    return {"nominal": 1.0, "composed": spent.epsilon, "noise_multiplier": noise}


def gswgan(discriminators: int, steps: int) -> dict[str, float]:
    """Poisson sampling stands for one of K here, which flatters the paper a little."""
    composed = composed_epsilon(discriminators, GSWGAN_NOISE, GSWGAN_BATCH, steps, GSWGAN_DELTA)
    return {"nominal": published_epsilon(discriminators, steps), "composed": composed}


def published_epsilon(discriminators: int, steps: int, orders: int = 100) -> float:
    """The paper's accountant: theorem 9 for every generated row, at whole Rényi orders."""
    rate = 1 / discriminators

    def gaussian(order: int) -> float:
        return order / (2 * GSWGAN_NOISE**2)

    def sampled(order: int) -> float:
        second = min(math.log(4 * math.expm1(gaussian(2))), math.log(2) + gaussian(2))
        logs = [2 * math.log(rate) + math.log(math.comb(order, 2)) + second]
        for j in range(3, order + 1):
            logs.append(j * math.log(rate) + math.log(math.comb(order, j)) + math.log(2) + (j - 1) * gaussian(j))
        most = max(0.0, *logs)
        return (most + math.log(math.exp(-most) + sum(math.exp(each - most) for each in logs))) / (order - 1)

    rows = GSWGAN_BATCH * steps
    return min(rows * sampled(order) + math.log(1 / GSWGAN_DELTA) / (order - 1) for order in range(2, orders + 1))


def main() -> None:
    found = {"findiff_reset": findiff()} | {f"gswgan_{count}": gswgan(count, steps) for count, steps in GSWGAN}
    print(f"{'':16}{'nominal ε':>12}{'composed ε':>12}")
    for name, row in found.items():
        print(f"{name:16}{row['nominal']:12.2f}{row['composed']:12.1f}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
