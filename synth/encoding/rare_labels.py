"""Labels whose counts are hidden by noise: what they most likely hold, all of them together.

Setting negative counts to zero makes rare labels many times too common; taking the same off every label takes it off
the large ones, too. Many labels seen with the same noise say together how common small counts are: the distribution of
true counts that explains the noisy ones best (Kiefer and Wolfowitz, 1956, by expectation maximisation) is the prior
under which each label's mean is computed. So labels without a row share little, labels of ten rows under noise of
thirty get about ten each, and a label that stands far above the noise keeps its count.
"""

from __future__ import annotations

import numpy as np

from synth.encoding.scales import Floats

LARGE = 6.0  # standard deviations from which on a count is taken as it is
POINTS, STEPS = 60, 200  # of the prior's support; of expectation maximisation


def shrunk_counts(counts: Floats, sigma: float) -> Floats:
    """Counts of which none is negative, from counts with independent noise of standard deviation `sigma`."""
    hidden = counts < LARGE * sigma
    if not hidden.any():
        return counts.copy()
    seen = counts[hidden]
    support = LARGE * sigma * (np.arange(POINTS) / (POINTS - 1)) ** 2  # denser where rare labels are
    likelihood = np.exp(-0.5 * ((np.maximum(seen, -LARGE * sigma)[:, None] - support) / sigma) ** 2)
    prior = np.full(POINTS, 1 / POINTS)
    for _ in range(STEPS):
        posterior = prior * likelihood
        prior = (posterior / posterior.sum(axis=1, keepdims=True)).mean(axis=0)
    posterior = prior * likelihood
    found = counts.copy()
    found[hidden] = (posterior @ support) / posterior.sum(axis=1)
    return found
