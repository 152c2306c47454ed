"""DP-Fed-FinDiff (Sattarov et al. 2024): masked diffusion by default, the published Gaussian one under
`profile: faithful`; FedAvg, FedAdam, FedYogi and FedProx by `server`, as in every family of averaged weights."""

from __future__ import annotations

from synth.neural.synthesizer import NeuralSynthesizer
from synth.plan import Plan
from synth.synthesizers.findiff.gaussian import GaussianDiffusion
from synth.synthesizers.findiff.masked import MaskedDiffusion


def findiff(plan: Plan) -> NeuralSynthesizer:
    return NeuralSynthesizer(GaussianDiffusion(plan) if plan.profile == "faithful" else MaskedDiffusion(plan))
