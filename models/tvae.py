"""`tvae`: a tabular variational autoencoder, trained by DP-SGD.

Two events of the plan touch private rows: joint noisy one-way histograms, which give the bins and
the starting point, and the steps of DP-SGD on binned rows. Everything else (merging, the clipping
norm, the schedule) follows from public facts and from what those events released.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch

from dpsynth.events import UNDECIDED, JointHistograms, PoissonSgd
from dpsynth.mechanisms import joint_histograms
from dpsynth.models.base import Codes, Domain, Progress, silent
from dpsynth.models.dpsgd import DpSgd, clipping_norm_from
from dpsynth.models.independent import EVENT, histograms_event
from dpsynth.models.marginals import Bins, merge_all
from dpsynth.models.network import Network, Shape
from dpsynth.plan import PrivacyBudget, PrivacyPlan, Share

if TYPE_CHECKING:
    from dpsynth.cohort import Cohort
    from dpsynth.entropy import Entropy

STEPS_EVENT = "DP-SGD steps"
REHEARSAL = 2_000  # synthetic units on which the clipping norm is read off


@dataclass(frozen=True)
class Preset:
    """Settings of a fit, a public function of domain and budget; never of data."""

    hidden: int
    latent: int
    bins: int
    sampling_rate: float
    steps: int
    learning_rate: float
    histogram_share: float

    @classmethod
    def of(cls, domain: Domain, budget: PrivacyBudget) -> Preset:
        """Choose the preset by public size and epsilon."""
        small = domain.population < 20_000
        return cls(
            hidden=128,
            latent=16,
            bins=8 if small and budget.epsilon <= 3 else 16,
            sampling_rate=0.1 if domain.max_rows == 1 else 0.05,
            steps=200 if budget.epsilon <= 1 else 300,
            learning_rate=0.01 if budget.epsilon <= 1 else 0.005,
            histogram_share=0.15,
        )


class Tvae:
    """Variational autoencoder with an autoregressive skip over binned columns."""

    name: ClassVar[str] = "tvae"
    neural: ClassVar[bool] = True

    def __init__(self, domain: Domain) -> None:
        """Build an unfitted generator from public facts."""
        self.domain = domain

    def shares(self, budget: PrivacyBudget) -> tuple[Share, ...]:
        """Split the budget between the one-way histograms and the training steps."""
        preset = Preset.of(self.domain, budget)
        steps = PoissonSgd(STEPS_EVENT, preset.sampling_rate, preset.steps, noise_multiplier=UNDECIDED)
        return (
            Share(histograms_event(self.domain), preset.histogram_share),
            Share(steps, 1.0 - preset.histogram_share),
        )

    def fit(
        self, cohort: Cohort, plan: PrivacyPlan, entropy: Entropy, progress: Progress = silent
    ) -> Self:
        """Release the histograms, merge bins by them, then train by DP-SGD."""
        self.preset_ = Preset.of(self.domain, plan.budget)
        event = plan.event(EVENT)
        assert isinstance(event, JointHistograms)
        progress("histograms", 0.0)
        noisy = joint_histograms(cohort, self.domain.sizes, event, entropy)
        self.bins_ = merge_all(self.domain, noisy, sigma=event.sigma, most=self.preset_.bins)
        progress("histograms", 1.0)
        self.network_ = self._network(int(entropy.generator().integers(2**62)))
        self.network_.start_at([np.log(bins.bin_shares + 1e-6) for bins in self.bins_])
        self._train(cohort, plan, entropy, progress)
        return self

    def _network(self, seed: int) -> Network:
        shape = Shape(
            tuple(bins.count for bins in self.bins_), self.preset_.hidden, self.preset_.latent
        )
        return Network(shape, generator=torch.Generator().manual_seed(seed))

    def _train(
        self, cohort: Cohort, plan: PrivacyPlan, entropy: Entropy, progress: Progress
    ) -> None:
        """Run every step of the plan; their number and schedule are fixed beforehand."""
        event = plan.event(STEPS_EVENT)
        assert isinstance(event, PoissonSgd)
        rehearsal = torch.from_numpy(self._rehearsal_units(entropy.generator()))
        self.clipping_norm_ = clipping_norm_from(
            self.network_, self.network_.loss, rehearsal, torch.ones(rehearsal.shape[:2])
        )
        trainer = DpSgd(
            self.network_,
            event=event,
            clipping_norm=self.clipping_norm_,
            population=self.domain.population,
            learning_rate=self.preset_.learning_rate,
            entropy=entropy,
            schedule="cosine",
            optimizer="adam",
        )
        binned = self._binned(cohort.codes)
        for step in range(event.steps):
            chosen = trainer.sample_batch(len(binned))
            rows = torch.from_numpy(binned[chosen].astype(np.int64))
            trainer.step(self.network_.loss, rows, torch.from_numpy(cohort.mask[chosen]))
            progress("training", (step + 1) / event.steps)

    def _binned(self, codes: Codes) -> npt.NDArray[np.uint16]:
        """Map codes ``[units, rows, columns]`` to bins."""
        columns = [bins.coarsen(codes[..., j]) for j, bins in enumerate(self.bins_)]
        return np.stack(columns, axis=-1)

    def _rehearsal_units(self, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Draw units from the noisy one-way histograms: post-processing, free of charge."""
        columns = [
            rng.choice(bins.count, size=REHEARSAL, p=bins.bin_shares / bins.bin_shares.sum())
            for bins in self.bins_
        ]
        return np.stack(columns, axis=-1)[:, None, :].astype(np.int64)

    def sample(self, rows: int, rng: np.random.Generator) -> Codes:
        """Draw ``[rows, columns]`` codes: bins from the network, codes within bins by histogram."""
        drawn = self.network_.draw(rows, rng)
        refined = [bins.refine(drawn[:, j], rng) for j, bins in enumerate(self.bins_)]
        return np.column_stack(refined)

    def config(self) -> dict[str, Any]:
        """Give the preset and the clipping norm; all public or post-processing."""
        return {"preset": asdict(self.preset_), "clipping_norm": self.clipping_norm_}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give the network's weights and the columns' bins."""
        weights = {
            f"network.{name}": tensor.detach().numpy().copy()
            for name, tensor in self.network_.state_dict().items()
        }
        return weights | {
            "bin_of": np.concatenate([bins.bin_of for bins in self.bins_]),
            "shares": np.concatenate([bins.shares for bins in self.bins_]),
        }

    @classmethod
    def restore(
        cls, domain: Domain, config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Self:
        """Rebuild bins and network."""
        fitted = cls(domain)
        fitted.preset_ = Preset(**config["preset"])
        fitted.clipping_norm_ = float(config["clipping_norm"])
        ends = np.cumsum(domain.sizes)[:-1]
        fitted.bins_ = tuple(
            Bins(bin_of, shares)
            for bin_of, shares in zip(
                np.split(arrays["bin_of"], ends), np.split(arrays["shares"], ends), strict=True
            )
        )
        fitted.network_ = fitted._network(seed=0)
        prefix = "network."
        fitted.network_.load_state_dict(
            {
                name.removeprefix(prefix): torch.from_numpy(array.copy())
                for name, array in arrays.items()
                if name.startswith(prefix)
            }
        )
        return fitted
