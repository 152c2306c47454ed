"""What a plan may say about `wae`. Kept apart from the network so that reading a plan needs no torch."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from synth.neural.family_settings import AveragedSettings
from synth.neural.regime import Published

GAP = "votes at the whole ε each, of clients that may vote again"


class WaeSettings(AveragedSettings):
    """Wasserstein autoencoder (DP-Fed-WAE): rows are drawn from what its decoder thinks of random codes."""

    # The paper's choice on Adult: 64-16-64, 50,000 clients of two records, each heard once: 5,000 rounds of ten, ten
    # epochs of Adam at 1e-3 on a client's own records, one vote among all weights, a tenth of which it would vote for.
    published_values: ClassVar[dict[str, Any]] = {
        "update": "signds",
        "rounds": 5000,
        "steps_per_round": 1,
        "sample_rate": 0.0002,
        "code_width": 16,
        "bins": 5,
        "penalty": 1.0,
        "code_noise": 0.0,
        "averaging": 0.0,
        "candidates": 1,
        "votes": {"records_per_client": 2, "local_optimizer": "adam", "local_steps": 10, "top": 0.1, "step": 0.1},
    }

    name: Literal["wae"] = "wae"
    code_width: int = Field(8, ge=1, le=4096, description="Numbers that a row is squeezed into.")
    penalty: float = Field(10.0, ge=0, description="How much codes that look like luck count beside telling rows back.")
    code_noise: float = Field(0.4, ge=0, description="Deviation of what is added to a code before a row is told back.")
    own_rows: int = Field(256, ge=2, le=65_536, description="Rows of its own that the model is held against in a step.")

    @property
    def published(self) -> Published:
        return Published(None, gap=GAP, bins=True, votes=True, clients=True)
