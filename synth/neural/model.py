"""What a family of averaged weights writes; `synth.neural.synthesizer` makes a synthesizer of it.

Most families are a `RowLossModel`: one network, one loss a row, a way to draw. A family that trains several networks
against each other writes a `Model`, with a step of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Generic, TypeVar

from torch import Tensor, nn
from torch.optim import Adam

from synth.encoding.features import Features
from synth.errors import PlanError
from synth.family import FamilySettings
from synth.neural.drawing import Codes
from synth.neural.regime import Regime
from synth.neural.released import Released
from synth.neural.schedule import Schedule
from synth.neural.server import ServerOptimizer
from synth.neural.streams import StepStreams, Stream
from synth.neural.training import LocalRound, Step
from synth.neural.weights import set_gradient
from synth.plan import Plan

BETAS = (0.9, 0.99)  # Adam's: noise is forgotten sooner than by torch's own
Network = TypeVar("Network", bound=nn.Module)  # one module; its parts may be several networks
Settings = TypeVar("Settings", bound=FamilySettings)


class Model(ABC, Generic[Network]):
    """A family under one plan, the same at the aggregator and at every party. It keeps no state."""

    candidates = 1  # rows made per row kept
    fitted = True  # whether drawn rows are fitted to the released histograms

    def __init__(self, plan: Plan, regime: Regime) -> None:
        self.plan = plan
        self.schedule = Schedule(plan, regime.carried_out(faithful=plan.profile == "faithful"))
        self.server: ServerOptimizer = regime.server.rule()

    @abstractmethod
    def network(self, features: Features) -> Network:
        """With fresh weights from torch's generator, for rows of this layout."""

    def begin(self, network: Network, released: Released, stream: Stream) -> None:
        """Teach the fresh network, before anybody is asked, what has been released already."""

    @abstractmethod
    def optimizers(self, network: Network) -> Mapping[str, Adam]:
        """One for each part that is trained; parties keep their moments under these names."""

    @abstractmethod
    def step(self, network: Network, local: LocalRound, optimizers: Mapping[str, Adam]) -> Step:
        """What one local step does. Private rows may be touched by `local.private_gradient` alone."""

    def settle(self, network: Network, released: Released) -> None:
        """Make a trained network ready to draw."""

    @abstractmethod
    def draw(
        self, network: Network, released: Released, count: int, codes: Codes, stream: Stream
    ) -> tuple[Tensor, Tensor]:
        """[count, row width] rows with one-hot blocks that honour the codes, and a score of each (see `drawing`)."""

    def figures(self, network: Network, released: Released, stream: Stream) -> dict[str, float]:
        """Latest losses for display, from released quantities only."""
        return {}


class RowLossModel(Model[Network]):
    """One network that learns by one loss a row."""

    learning_rate: float

    @abstractmethod
    def losses(self, network: Network, rows: Tensor, stream: Stream) -> Tensor:
        """[rows]: the loss of each row, a function of that row and of luck alone. Runs the whole network."""

    def step_losses(self, network: Network, made_up: Stream) -> Callable[[Tensor, Stream], Tensor]:
        """The losses of one step. What they all are held against depends on no row and is made once, from `made_up`:
        were it drawn with the rows, one row more could change it for others."""
        return partial(self.losses, network)

    def group_loss(self, network: Network, rows: Tensor, there: Tensor, stream: Stream) -> Tensor:
        """Of a group that votes: the mean over those of its places that are taken. Its rows may be coupled."""
        return (self.losses(network, rows, stream) * there).sum() / there.sum().clamp(min=1.0)

    def optimizers(self, network: Network) -> Mapping[str, Adam]:
        return {"network": Adam(network.parameters(), self.learning_rate, betas=BETAS)}

    def step(self, network: Network, local: LocalRound, optimizers: Mapping[str, Adam]) -> Step:
        gradient = local.gradient(network)

        def step(streams: StepStreams) -> None:
            losses = self.step_losses(network, streams.made_up)
            slopes = gradient(lambda rows: losses(rows, streams.dropout), local.batch(streams))
            set_gradient(network, slopes)
            optimizers["network"].step()

        return step


def settings_of(plan: Plan, kind: type[Settings]) -> Settings:
    """The plan's settings, if they are this family's."""
    if not isinstance(plan.synthesizer, kind):
        expected = kind.model_fields["name"].default
        raise PlanError(f"the plan's synthesizer is '{plan.synthesizer.name}', not '{expected}'.")
    return plan.synthesizer
