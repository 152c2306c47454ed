"""What a plan may say about how the parties' changes are put together; the same words in every neural family.

Light: reading a plan reads this. All of it acts on what was released under noise already, or on no row at all, so it
costs no privacy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from synth.schema import Strict

if TYPE_CHECKING:
    from synth.neural.server import ServerOptimizer


class ServerSettings(Strict):
    """Federated optimiser: what is made of the average change, and what holds a party near the others."""

    optimizer: Literal["fedavg", "fedadam", "fedyogi"] = Field(
        "fedavg", description="FedAvg takes the average; the others are Reddi et al.'s adaptive ones (2021)."
    )
    learning_rate: float = Field(1e-3, gt=0, description="Step of 'fedadam' and 'fedyogi'; 'fedavg' has none.")
    beta: float = Field(0.9, ge=0, lt=1, description="Memory of their mean change.")
    beta2: float = Field(0.999, ge=0, lt=1, description="Memory of their mean squared change.")
    floor: float = Field(1e-8, gt=0, description="How small a change they still tell from none (τ).")
    proximal: float = Field(
        0.0, ge=0, description="FedProx's μ: pull back to the round's first weights, added after clipping and noise."
    )

    def rule(self) -> ServerOptimizer:
        from synth.neural import server

        if self.optimizer == "fedavg":
            return server.fed_avg
        adaptive = server.fed_adam if self.optimizer == "fedadam" else server.fed_yogi
        return adaptive(self.learning_rate, self.beta, self.beta2, self.floor)


FED_AVG = ServerSettings()
