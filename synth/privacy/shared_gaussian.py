"""Gaussian noise that several parties make between them, each in whole numbers: what their sum is worth.

Party p of h honest ones adds R_p = round(N_p), N_p ~ N(0, s²), to an integer, and only the sum is opened. A sum of
rounded Gaussians is not a rounded Gaussian, so the Gaussian analysis is not inherited for free. It is inherited all the
same, up to a distance that is computed here.

*Theorem.* Let G = ΣN_p ~ N(0, h s²), and let U_1 … U_{h-1} be uniform on [-½, ½), independent of G. For every integer S

    TV( S + ΣR_p ,  round(S + G - ΣU_p) )  ≤  τ  =  θ(s² / h)^{h-1} - 1,     θ(t) = Σ_{k ∈ ℤ} e^{-2π² t k²}.

The right-hand side is a function of S + G and of luck that no row touches: the Gaussian mechanism on the integer S, and
then post-processing. So one step over d coordinates is within d τ of the Gaussian mechanism of deviation s √h, whose
privacy loss, sampled or not, is known exactly; noise of parties beyond the h comes on top and is post-processing too.

*Proof.* Write N_p = R_p + F_p with F_p in [-½, ½). ΣR_p is an integer, so F_h is what G - Σ_{p<h} F_p is beyond the
nearest integer, and ΣR_p = G - ΣF_p = round(G - Σ_{p<h} F_p). Were F_1 … F_{h-1} uniform and independent given G, that
would be the right-hand side, as S is an integer. They nearly are. Given G = g, (N_1 … N_{h-1}) is normal with mean
(g/h, …) and covariance C = s² (I - 11ᵀ/h), and F is it modulo 1. By Poisson's summation formula its density there is
Σ_{k ∈ ℤ^{h-1}} e^{-2π² kᵀCk} e^{2πi k·(f - g/h)}; the term of k = 0 is 1, the density of U. The least eigenvalue of C
is s²/h, so all other terms together are at most Σ_{k≠0} e^{-2π² (s²/h) |k|²} = τ in absolute value, for every g. ∎

At s² = 64 h the bound is below 10⁻⁵⁴⁰; shares here are thousands of lattice steps and more. `GAP` is what is charged
for all coordinates of a step together, in total variation. Compare the bound for sums of discrete Gaussians (Kairouz,
Liu and Steinke, ICML 2021), which decays alike; Skellam noise (Agarwal, Kairouz and Liu, NeurIPS 2021) adds up exactly,
but its Rényi bound has ℓ1 terms and no privacy loss distribution in many dimensions. See decision 0014.
"""

from __future__ import annotations

import math

from synth.errors import PrivacyError

GAP = 1e-300  # total variation charged for one step, all coordinates together
LEAST_VARIANCE = 64.0  # of a share, over the number of shares (lattice steps²)


def distance_bound(share_variance: float, parties: int) -> float:
    """τ of one coordinate."""
    if parties == 1:
        return 0.0
    q = math.exp(-2 * math.pi**2 * share_variance / parties)
    if q == 0.0:
        return 0.0
    return math.expm1((parties - 1) * math.log1p(2 * q / (1 - q)))  # θ ≤ 1 + 2 (q + q² + …)


def share_deviation(deviation: float, parties: int) -> float:
    """What one of the parties adds (lattice steps), if together they are to add noise of that deviation."""
    share = deviation / math.sqrt(parties)
    if parties > 1 and share**2 < LEAST_VARIANCE * parties:
        raise PrivacyError(
            f"noise of {deviation:.4g} lattice steps cannot be divided among {parties} parties: a share would be too "
            "small for the sum to be Gaussian. Raise the noise, or set privacy.noise to 'local'."
        )
    return share
