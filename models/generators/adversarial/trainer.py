"""The generator of `ctgan` in training: it sees a critic and released counts, never a real row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpsynth.errors import InputError
from dpsynth.models.generators.adversarial.critic import FAKE, Critic
from dpsynth.models.generators.adversarial.distance import MarginalDistance
from dpsynth.models.generators.adversarial.network import GeneratorNetwork
from dpsynth.models.generators.network_weights import arrays_of, load_arrays
from dpsynth.models.marginals import InitialModel

GENERATOR_STEPS = 4  # steps of the generator after each round of the critic: free
BATCH = 2_000  # generated rows of a generator's step
LEARNING_RATE = 0.01  # of the generator, down to zero along a line
KL_WEIGHT = 0.3  # weight of the divergence from the mixture in the generator's loss
MARGINAL_WEIGHT = 0.1  # weight of the distance to the noisy pairs in the generator's loss
EMA_DECAY = 0.95  # of the running mean of critics that the generator learns from

WEIGHTS, MEMORY, MOMENT = "generator.weights", "generator.memory", "generator.moment"
_MOMENTS = ("exp_avg", "exp_avg_sq")


class GeneratorTrainer:
    """The generator in training: it learns from a running mean of critics, and from the pairs."""

    def __init__(
        self,
        start: InitialModel,
        residual: GeneratorNetwork,
        critic: Critic,
        turns: int,
        rng: np.random.Generator,
    ) -> None:
        """Take the generator and the critic; ``turns`` are what the schedule spans."""
        assert start.target is not None
        self.products, self.residual, self.critic, self.rng = start.products, residual, critic, rng
        self.distance = MarginalDistance(start.target, start.products)
        self.memory = Critic(start.binning.sizes, critic.hidden, generator=torch.Generator())
        self.memory.load_state_dict(critic.state_dict())
        self.optimizer = torch.optim.Adam(
            residual.parameters(), lr=LEARNING_RATE, betas=(0.5, 0.99)
        )
        self.steps, self.taken = max(1, turns * GENERATOR_STEPS), 0

    @torch.no_grad()
    def fakes(self, rows: int) -> tuple[Tensor, Tensor, Tensor]:
        """Generate a batch for the critic, each row with the column of its condition."""
        ask = self.residual.ask(self.products, rows, self.rng)
        bins = self.residual.hard(self.residual.laws(ask, self.products), self.rng)
        return bins[:, None], ask.column[:, None], torch.full((rows, 1), FAKE)

    def remember(self) -> None:
        """Move the mean of critics towards the critic as it is: less noise than any one has."""
        pairs = zip(self.memory.parameters(), self.critic.parameters(), strict=True)
        for mean, now in pairs:
            mean.data.lerp_(now.data, 1.0 - EMA_DECAY)

    def turn(self) -> None:
        """Take the steps that follow a round of the critic."""
        for _ in range(GENERATOR_STEPS):
            self.step()

    def step(self) -> None:
        """Take one step: the critic's gradient at drawn rows is passed straight to their laws.

        A critic tells soft rows from drawn ones at once, so it is shown drawn ones.
        """
        ask = self.residual.ask(self.products, BATCH, self.rng)
        laws = self.residual.laws(ask, self.products)
        hot = self.critic.one_hot(self.residual.hard(laws.detach(), self.rng))
        scores = self.memory.score(hot + laws - laws.detach(), ask.column)
        loss = KL_WEIGHT * self.distance.moved(laws, ask, self.residual) - scores.mean()
        loss = loss + MARGINAL_WEIGHT * self.distance.of(laws, ask, self.residual)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1.0 - self.taken / self.steps)
        self.optimizer.step()
        self.taken += 1

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return copies of the weights, the mean of critics, and the moments of Adam.

        All are functions of noisy sums and released counts, and of draws that hide nothing.
        """
        arrays = arrays_of(self.residual, WEIGHTS) | arrays_of(self.memory, MEMORY)
        for place, parameter in enumerate(self.residual.parameters()):
            state = self.optimizer.state.get(parameter, {})
            for name in _MOMENTS:  # zero before the first step
                moment = state.get(name, torch.zeros_like(parameter))
                arrays[f"{MOMENT}{place}.{name}"] = moment.detach().numpy().copy()
        return arrays

    def go_on(self, turns: int, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Put a new trainer to where another one stood after so many turns.

        Raises:
            InputError: the arrays are those of other networks.
        """
        try:
            load_arrays(self.residual, WEIGHTS, arrays)
            load_arrays(self.memory, MEMORY, arrays)
        except RuntimeError:
            raise InputError("the checkpoint is not that of this network") from None
        self.taken = turns * GENERATOR_STEPS
        for place, parameter in enumerate(self.residual.parameters()):
            state: dict[str, Tensor] = {"step": torch.tensor(float(self.taken))}
            for name in _MOMENTS:
                moment = arrays.get(f"{MOMENT}{place}.{name}")
                if moment is None or moment.shape != tuple(parameter.shape):
                    raise InputError("the checkpoint is not that of this network")
                state[name] = torch.from_numpy(moment.copy())
            self.optimizer.state[parameter] = state
