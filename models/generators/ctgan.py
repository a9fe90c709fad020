"""`ctgan`: a conditional generative adversarial network, whose critic is trained by DP-SGD.

Three events of the plan touch private rows: noisy one-way histograms, noisy pairs, and the steps of
DP-SGD. A mixture fitted to the histograms (as in the model `mixture`) is where the generator
starts: see `dpsynth.models.generators.adversarial.network`. Then critic and generator take turns.

Only the critic meets private rows, and only as the units of a private step: drawn by Poisson
sampling and never by value (the log-frequency sampler of Xu et al. 2019, arXiv 1907.00503, section
4.3, would draw a rarer unit more often, which no accountant knows of), one person to a
row (no packs), each unit's gradient clipped and the sum noised. The gradient on generated rows is
added to that on purpose, unclipped and without noise: it costs nothing. The generator sees the
critic alone, so it is post-processing, and so are its many free rows. Several steps of the critic
to a turn of the generator make up for noise (Bie, Kamath and Zhang 2023, arXiv 2302.02936).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpsynth.errors import InputError
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
    DpSgd,
    PlainSgd,
    Units,
    clipping_norm_from,
    next_batch,
    steps_before,
    trainer_arrays,
    trainer_of,
    training_state,
)
from dpsynth.models.generators.adversarial.critic import FAKE, REAL, Critic, crossed, joined
from dpsynth.models.generators.adversarial.network import GeneratorNetwork
from dpsynth.models.generators.adversarial.trainer import GeneratorTrainer
from dpsynth.models.generators.counted_start import counted_start, kept_start
from dpsynth.models.generators.network_weights import arrays_of, load_arrays
from dpsynth.models.marginals import Fitness, InitialModel, MeasuredPairs, cohort_with_visits

if TYPE_CHECKING:
    from dpsynth.encoding import Cohort
    from dpsynth.privacy import AnyPlan, Entropy, PrivacyBudget, Share

Ints = npt.NDArray[np.int64]

WARM_BATCH = 2_000  # rows of the mixture, and as many crossed ones
WARM_RATE = 0.01
FAKES = 4_000  # generated rows beside each private batch
REHEARSAL = 4_000  # units of mixture rows on which the clipping norm is read off
QUANTILE = 0.99
NORM = "clipping_norm"


class Ctgan:
    """Conditional generator over binned columns, and its critic."""

    name: ClassVar[str] = "ctgan"
    neural: ClassVar[bool] = True
    resumable: ClassVar[bool] = True

    def __init__(self, domain: Domain, *, pac: int = 1) -> None:
        """Build an unfitted generator from public facts.

        Args:
            domain: columns, codes and units.
            pac: rows that the critic judges at once (Lin et al. 2018, arXiv 1712.04086); 1 only.

        Raises:
            InputError: ``pac`` is not 1. A pack of several people's rows has one gradient, so
                clipping it bounds no person's part, and sampling packs is not sampling units.
        """
        if pac != 1:
            raise InputError(
                f"pac is {pac}; it must be 1: a pack would tie the rows of several units together, "
                "and clipping bounds one unit's part only if its rows are judged alone"
            )
        self.domain = domain.with_visits()

    def shares(self, budget: PrivacyBudget) -> tuple[Share, ...]:
        """Split the budget between histograms, pairs and training steps."""
        return shares_of(self.name, self.domain, budget)

    def fit(
        self,
        cohort: Cohort,
        plan: AnyPlan,
        entropy: Entropy,
        progress: Progress = silent,
        checkpoints: Checkpoints = NO_CHECKPOINTS,
    ) -> Self:
        """Release the histograms, fit the mixture, then let critic and generator take turns.

        With checkpoints, each of these is done once: what an earlier process kept is taken over.
        """
        self.preset_ = Preset.of(self.name, self.domain, plan.budget)
        cohort = cohort_with_visits(cohort)
        self.start_ = counted_start(
            cohort, self.domain, plan, entropy, self.preset_, progress, checkpoints, target=True
        )
        rng = entropy.generator()
        self.residual_ = self._residual(int(rng.integers(2**62)))
        seed = torch.Generator().manual_seed(int(rng.integers(2**62)))
        critic = Critic(self.start_.binning.sizes, self.preset_.hidden, generator=seed)
        rows = torch.from_numpy(self.start_.rows(rng))
        if training_state(checkpoints) is None:
            self._warm_up(critic, rows, rng, progress)
        self._train(cohort, critic, rows, plan, entropy, rng, progress, checkpoints)
        assert self.start_.released is not None
        draw = partial(self.residual_.draw, self.start_.products)
        self.fitness_ = self.start_.released.judged(draw)
        self.measured_ = MeasuredPairs.of(self.start_.released)
        return self

    def _residual(self, seed: int) -> GeneratorNetwork:
        return GeneratorNetwork(
            self.start_.products,
            hidden=self.preset_.hidden,
            latent=self.preset_.latent,
            fixed=self.start_.binning.hidden,
            generator=torch.Generator().manual_seed(seed),
        )

    def _warm_up(
        self, critic: Critic, rows: Tensor, rng: np.random.Generator, progress: Progress
    ) -> None:
        """Let the critic tell rows of the mixture from crossed ones: post-processing."""
        steps = self.preset_.warm_steps
        trainer = PlainSgd(
            critic, learning_rate=WARM_RATE, steps=steps, schedule="cosine", optimizer="adam"
        )
        ones = torch.ones(2 * WARM_BATCH, 1)
        for step in range(steps):
            whole, first, second = rows[torch.from_numpy(_some(rng, len(rows)))]
            mixed = crossed(first, second, rng)
            good, bad = (
                critic.batch(part[:, None], label, rng)
                for part, label in ((whole, REAL), (mixed, FAKE))
            )
            trainer.step(critic.loss, joined(good, bad), ones)
            progress("warming up", (step + 1) / steps)
        critic.start_at_zero()

    def _train(
        self,
        cohort: Cohort,
        critic: Critic,
        rows: Tensor,
        plan: AnyPlan,
        entropy: Entropy,
        rng: np.random.Generator,
        progress: Progress,
        checkpoints: Checkpoints,
    ) -> None:
        """Run every step of the plan; their number and turns are fixed beforehand."""
        state = training_state(checkpoints)

        def watch(others: Cohort) -> tuple[Any, Tensor]:
            bins, weights = Units.of(others, self.start_.binning).whole()
            return critic.batch(bins, REAL, rng), weights

        norm = self._clipping_norm(critic, rows, rng) if state is None else state.config[NORM]
        self.clipping_norm_ = float(norm)
        trainer = trainer_of(
            critic,
            plan,
            clipping_norm=self.clipping_norm_,
            population=self.domain.population,
            learning_rate=self.preset_.learning_rate,
            anchor_weight=self.preset_.anchor,
            entropy=entropy,
            watch=watch,
            anchored_always=True,
        )
        units, steps = Units.of(cohort, self.start_.binning), trainer.event.steps
        # how far this one is used depends on how many units are drawn: it serves nothing else
        asking = entropy.generator()
        generator_trainer = GeneratorTrainer(
            self.start_, self.residual_, critic, steps // self.preset_.rounds, rng
        )

        def keep(step: int) -> None:
            assert isinstance(trainer, DpSgd)
            arrays = {**kept_start(self.start_, target=True), **trainer_arrays(trainer)}
            arrays |= generator_trainer.arrays()
            checkpoints.save(TrainingState(step, {NORM: self.clipping_norm_}, arrays))

        taken = steps_before(trainer, checkpoints, keep)
        if state is not None:
            generator_trainer.go_on(taken // self.preset_.rounds, state.arrays)
        for step in range(taken, steps):
            batch, weights = next_batch(trainer, units)
            real = critic.batch(batch, REAL, asking)
            trainer.step(critic.loss, real, weights, anchor=generator_trainer.fakes(FAKES))
            generator_trainer.remember()
            if (step + 1) % self.preset_.rounds == 0:
                generator_trainer.turn()
            if checkpoints.due(step + 1, steps):
                keep(step + 1)
            progress("training", (step + 1) / steps)

    def _clipping_norm(self, critic: Critic, rows: Tensor, rng: np.random.Generator) -> float:
        """Read the clipping norm off rows of the mixture: post-processing."""
        rehearsal = critic.batch(rows[:REHEARSAL, None], REAL, rng)
        return clipping_norm_from(
            critic, critic.loss, rehearsal, torch.ones(rehearsal[1].shape), QUANTILE
        )

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = True) -> Codes:
        """Draw ``[rows, columns]`` codes; the hidden column weighs the rows and is left out.

        The network leaves the hidden column as the mixture has it, so a mixture that is tilted by
        it gives the tilted law of the whole generator, exactly.
        """
        binning, products = self.start_.binning, self.start_.products
        factors = binning.row_factors()
        products = products if factors is None else products.tilted(0, factors)
        bins = self.residual_.draw(products, rows, rng, even=even)
        return binning.refine(bins, rng, even=even)

    def log_prob(self, cohort: Cohort) -> npt.NDArray[np.float64]:
        """Return the mean log-likelihood of each unit's rows, ``[units]``, in nats.

        It is that of the mixture which the network starts from: it has no density in closed form.
        """
        return self.start_.log_prob(cohort_with_visits(cohort))

    def config(self) -> dict[str, Any]:
        """Give the preset and the clipping norm: public or post-processing."""
        return {"preset": asdict(self.preset_), "clipping_norm": self.clipping_norm_}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give the generator's weights, mixture, bins, what was counted and fitness; no critic."""
        residual = arrays_of(self.residual_, "residual")
        return residual | self.start_.arrays() | self.fitness_.arrays() | self.measured_.arrays()

    @classmethod
    def restore(
        cls, domain: Domain, config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Self:
        """Rebuild mixture, bins and generator."""
        fitted = cls(domain)
        fitted.preset_ = Preset(**config["preset"])
        fitted.clipping_norm_ = float(config["clipping_norm"])
        fitted.fitness_ = Fitness.restore(arrays)
        fitted.measured_ = MeasuredPairs.restore(arrays)
        fitted.start_ = InitialModel.restore(fitted.domain, arrays)
        fitted.residual_ = fitted._residual(seed=0)
        load_arrays(fitted.residual_, "residual", arrays)
        return fitted


def _some(rng: np.random.Generator, rows: int) -> Ints:
    """Choose three sets of rows, ``[3, WARM_BATCH]``."""
    return rng.integers(0, rows, (3, WARM_BATCH))
