"""What `autoregressive` and `tvae` share: a network, warmed up on a mixture, trained by DP-SGD.

Three events of the plan touch private rows: noisy one-way histograms, noisy pairs, and the steps of
DP-SGD. A mixture fitted to the histograms (as in the model `mixture`) gives rows that cost nothing
more; the network is first trained on those, the clipping norm is read off them, and each private
step is anchored by a gradient on them. The private steps then add what pairs do not show.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpsynth.models import (
    NO_CHECKPOINTS,
    Checkpoints,
    Codes,
    Domain,
    Preset,
    Progress,
    TrainingState,
    shares_of,
    silent,
)
from dpsynth.models.dpsgd import (
    CPU,
    Batches,
    DpSgd,
    Ranks,
    Units,
    arrays_of,
    clipping_norm_from,
    device_of,
    load_arrays,
    moved,
    steps_before,
    trainer_arrays,
    trainer_of,
    training_state,
    units_of,
)
from dpsynth.models.generators.binned_network import BinnedNetwork
from dpsynth.models.generators.conditioned import ConditionedNetwork
from dpsynth.models.generators.training import (
    counted_start,
    kept_start,
    share,
    take_steps,
    warm_up,
)
from dpsynth.models.marginals import (
    LEADERS,
    Binning,
    Fitness,
    InitialModel,
    MeasuredPairs,
    cohort_with_visits,
    log_within_bins,
    mean_by_unit,
)
from dpsynth.models.marginals.log_probability import ROWS

if TYPE_CHECKING:
    from dpsynth.encoding import AnyRows, Cohort
    from dpsynth.privacy import AnyPlan, Entropy, PrivacyBudget, Share

Truth = npt.NDArray[np.bool_]

REHEARSAL = 4_000  # units of mixture rows on which the clipping norm is read off
QUANTILE = 0.95


class WarmStarted(ABC):
    """A generator with one network over binned columns, which starts from noisy histograms.

    A subclass names itself, builds its network, and may give it a source of noise for training.
    """

    name: ClassVar[str]
    network_: BinnedNetwork
    clipping_norm_: float = 0.0  # where no private step is taken
    fitness_: Fitness
    measured_: MeasuredPairs
    device: torch.device = CPU
    ranks: Ranks | None = None

    def __init__(self, domain: Domain) -> None:
        """Build an unfitted generator from public facts; columns that are targets come last."""
        self.domain = domain.with_visits().with_targets_last()

    def train_on(self, device: str) -> None:
        """Train on a device: ``auto``, ``cpu`` or ``cuda``; rows are drawn on the processor.

        Raises:
            InputError: there is none, or not one for each process that trains the network.
        """
        self.device = device_of(device, 1 if self.ranks is None else self.ranks.place.size)

    def train_with(self, ranks: Ranks) -> None:
        """Share the private steps with other processes, which `other_rank` makes ready."""
        self.ranks = ranks

    def shares(self, budget: PrivacyBudget) -> tuple[Share, ...]:
        """Split the budget between histograms, pairs and training steps."""
        return shares_of(self.name, self.domain, budget)

    def fit(
        self,
        cohort: AnyRows,
        plan: AnyPlan,
        entropy: Entropy,
        progress: Progress = silent,
        checkpoints: Checkpoints = NO_CHECKPOINTS,
    ) -> Self:
        """Release the histograms, fit the mixture, warm the network up, then train by DP-SGD.

        Where the preset has no share for training, the plan has no private steps; none is taken.
        With checkpoints, each of these is done once: what an earlier process kept is taken over.
        """
        self.preset_ = Preset.of(self.name, self.domain, plan.budget)
        cohort = cohort_with_visits(cohort, self.domain.order)
        start = counted_start(
            cohort, self.domain, plan, entropy, self.preset_, progress, checkpoints
        )
        self.binning_, self.leaders_ = start.binning, start.products.leaders(LEADERS)
        rng = entropy.generator()
        self.network_ = self._network(int(rng.integers(2**62)))
        self.network_.draw_from(entropy.generator)
        self.network_.start_at([column.bin_shares for column in self.binning_.columns])
        self.network_.to(self.device)
        rows = moved(torch.from_numpy(start.rows(rng)), self.device)
        if training_state(checkpoints) is None:
            self._warm_up(rows, progress)
        if self.preset_.training:
            self._train(cohort, rows, plan, entropy, progress, start, checkpoints)
        self.network_.to(CPU)
        self.fitness_ = self._settle(start, rng, progress)
        assert start.released is not None
        self.measured_ = MeasuredPairs.of(start.released)
        return self

    @classmethod
    @abstractmethod
    def network_of(cls, preset: Preset, bins: tuple[int, ...], seed: int) -> BinnedNetwork:
        """Build the network of a preset; ``seed`` draws its initial weights.

        Args:
            preset: of this generator.
            bins: of each column.
            seed: hides nothing.

        Raises:
            ValueError: the preset is that of another generator.
        """

    def _network(self, seed: int) -> BinnedNetwork:
        """Build the network of this fit."""
        return self.network_of(self.preset_, self.binning_.sizes, seed)

    def _warm_up(self, rows: Tensor, progress: Progress) -> None:
        """Train on rows of the mixture: post-processing."""
        warm_up(self.network_, rows, self.preset_.warm_steps, progress)

    def _train(
        self,
        cohort: AnyRows,
        rows: Tensor,
        plan: AnyPlan,
        entropy: Entropy,
        progress: Progress,
        start: InitialModel,
        checkpoints: Checkpoints,
    ) -> None:
        """Run every step of the plan; their number and schedule are fixed beforehand."""
        state = training_state(checkpoints)
        norm = self._clipping_norm(rows) if state is None else state.config["clipping_norm"]
        self.clipping_norm_ = float(norm)
        trainer = trainer_of(
            self.network_,
            plan,
            clipping_norm=self.clipping_norm_,
            population=self.domain.population,
            learning_rate=self.preset_.learning_rate,
            anchor_weight=self.preset_.anchor,
            entropy=entropy,
            watch=lambda others: Units.of(others, self.binning_).whole(),
            ranks=self.ranks,
        )

        def keep(step: int) -> None:
            assert isinstance(trainer, DpSgd)
            config = {"clipping_norm": self.clipping_norm_}
            arrays = {**kept_start(start, target=False), **trainer_arrays(trainer)}
            checkpoints.save(TrainingState(step, config, arrays))

        taken = steps_before(trainer, checkpoints, keep)
        units: Batches = units_of(cohort, self.binning_)
        anchors = rows if self.preset_.anchor else None
        if self.ranks is not None:
            assert isinstance(units, Units)  # shards are refused where there are ranks
            job = {
                "model": self.name,
                "preset": asdict(self.preset_),
                "bins": self.binning_.sizes,
                "device": self.device.type,
                "population": self.domain.population,
                "after": taken,
            }
            units = share(self.ranks, trainer, job, anchors, units)

        def told(step: int) -> None:
            if checkpoints.due(step, trainer.event.steps):
                keep(step)
            progress("training", step / trainer.event.steps)

        take_steps(trainer, self.network_, units, anchors, after=taken, taken=told)

    @abstractmethod
    def _settle(self, start: InitialModel, rng: np.random.Generator, progress: Progress) -> Fitness:
        """Move the trained network by what was released, and say how it meets it."""

    def _clipping_norm(self, rows: Tensor) -> float:
        """Read the clipping norm off rows of the mixture: post-processing."""
        rehearsal = rows[:REHEARSAL, None]
        return clipping_norm_from(
            self.network_,
            self.network_.loss,
            rehearsal,
            torch.ones(len(rehearsal), 1),
            QUANTILE,
            otherwise=1.0,  # every column is one bin: there is nothing to learn, but steps count
        )

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = True) -> Codes:
        """Draw ``[rows, columns]`` codes: bins from the network, codes within bins by `Binning`."""
        first = self.binning_.row_factors()
        bins = self.network_.draw(rows, rng, leaders=self.leaders_, first=first, even=even)
        return self.binning_.refine(bins, rng, even=even)

    def given(self, allowed: Mapping[int, Truth]) -> tuple[ConditionedNetwork | None, float]:
        """Return the network under a condition on codes, and the share of rows that meet it."""
        return ConditionedNetwork.of(self.network_, self.binning_, allowed)

    def log_prob(self, cohort: Cohort) -> npt.NDArray[np.float64]:
        """Return the mean log-likelihood of each unit's rows, ``[units]``, in nats.

        Of rows of bins the network says, `_log_prob_of_bins`; within bins the histograms do.
        """
        cohort = cohort_with_visits(cohort, self.domain.order)
        bins = self.binning_.coarsen(cohort)[cohort.mask]
        rows = torch.from_numpy(bins.astype(np.int64))
        with torch.no_grad():
            parts = [self._log_prob_of_bins(some) for some in torch.split(rows, ROWS)]
        of_bins = torch.cat(parts).double().numpy()
        return mean_by_unit(cohort, of_bins + log_within_bins(self.binning_, cohort))

    def _log_prob_of_bins(self, rows: Tensor) -> Tensor:
        """Return the log-probability of binned rows ``[n, columns]``, or a bound from below."""
        return -self.network_.loss(rows[:, None], None)[:, 0]

    def config(self) -> dict[str, Any]:
        """Give preset, clipping norm, leading columns and order: public or post-processing."""
        return {
            "preset": asdict(self.preset_),
            "clipping_norm": self.clipping_norm_,
            "leaders": [list(columns) for columns in self.leaders_],
            "order": list(self.domain.order),
        }

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give the network's weights, the bins, what was counted, and how the fit meets it."""
        network = arrays_of(self.network_, "network")
        return network | self.binning_.arrays() | self.fitness_.arrays() | self.measured_.arrays()

    @classmethod
    def restore(
        cls, domain: Domain, config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Self:
        """Rebuild bins and network; runs of before targets came last have the table's order."""
        fitted = cls(domain)
        fitted.domain = domain.with_visits().ordered(config.get("order", ()))
        fitted.preset_ = Preset(**config["preset"])
        fitted.clipping_norm_ = float(config["clipping_norm"])
        fitted.fitness_ = Fitness.restore(arrays)
        fitted.measured_ = MeasuredPairs.restore(arrays)
        fitted.leaders_ = tuple(tuple(columns) for columns in config["leaders"])
        fitted.binning_ = Binning.restore(fitted.domain, arrays)
        fitted.network_ = fitted._network(seed=0)
        load_arrays(fitted.network_, "network", arrays)
        return fitted
