"""`ctgan`: a conditional generative adversarial network, whose critic is trained by DP-SGD.

`ctgan`: a conditional generative adversarial network, whose critic is trained by DP-SGD.

Three events of the plan touch private rows: noisy one-way histograms, noisy pairs, and the steps of
DP-SGD. A mixture fitted to the histograms (as in the model `mixture`) is where the generator
starts: see `dpsynth.models.generators.ctgan`. Then critic and generator take turns.

Only the critic meets private rows, and only as the units of a private step: drawn by Poisson
sampling and never by value (the log-frequency sampler of Xu et al. 2019, arXiv 1907.00503, section
4.3, would draw a rarer unit more often, which no accountant knows of), one person to a
row (no packs), each unit's gradient clipped and the sum noised. The gradient on generated rows is
added to that on purpose, unclipped and without noise: it costs nothing. The generator sees the
critic alone, so it is post-processing, and so are its many free rows. Several steps of the critic
to a turn of the generator make up for noise (Bie, Kamath and Zhang 2023, arXiv 2302.02936).

The critic of `ctgan`: it scores whether a row, under a condition, is real or generated.

A row of d binned columns enters one-hot, ``[rows, codes]``, and beside it the condition: the same
row with all columns but one set to zero (Xu et al. 2019, "Modeling tabular data using conditional
GAN", arXiv 1907.00503, section 4.3). The loss of a row is the logistic one (Goodfellow et al. 2014,
arXiv 1406.2661, equation 1). It reads that row, its label and the network: no batch statistics, no
packs of several rows, no gradient penalty, each of which would tie the rows of different people
together, or take a second derivative on them.

Before it meets a private row the critic is trained to tell rows of the mixture from crossed ones,
whose columns come from two of them. Its hidden layers then respond to how columns go together;
from random weights, noisy steps are too few to find that out. The score starts at zero again.

The generator network of `ctgan`: what it adds to a mixture of products, under a condition.

A condition says that one column, drawn uniformly, has one code (Xu et al. 2019, arXiv 1907.00503,
section 4.3). A row comes about in this order: the column j of its condition; a component k of the
mixture and a code c of column j, together from the mixture; a latent vector z; then all other
columns, independently given these, with the logits

    log P_k(x_i) + f_i(k, j, c, z),

and f a network whose last layer starts at zero. So at the start the rows have the law of the
mixture: c with k from the mixture is k from its law given c, and no law of conditions has to be
chosen. Only this generator is trained by automatic differentiation, and it never meets a private
row.

How far generated rows lie from noisy columns and pairs: it holds against a noisy critic.

The distance is that of `products.fit_products`: squared differences of shares, each in units of its
own standard error, averaged over the measured cells. Its gradient is free: the target is released.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

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
    Activations,
    DpSgd,
    Linear,
    PlainSgd,
    Units,
    arrays_of,
    clipping_norm_from,
    load_arrays,
    next_batch,
    steps_before,
    trainer_arrays,
    trainer_of,
    training_state,
)
from dpsynth.models.generators.training import counted_start, kept_start
from dpsynth.models.marginals import (
    LEADERS,
    Fitness,
    InitialModel,
    MeasuredPairs,
    Products,
    Target,
    cohort_with_visits,
    draw_evenly,
    even_points,
    inverse,
)

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


REAL, FAKE = 1.0, -1.0
Batch = tuple[Tensor, Tensor, Tensor]
"""Binned rows ``[units, k, columns]`` int64; the column of each row's condition ``[units, k]``
int64; labels ``[units, k]``, `REAL` or `FAKE`."""


class Critic(nn.Module):
    """Two hidden layers and a score; positive is real."""

    def __init__(self, bins: Sequence[int], hidden: int, *, generator: torch.Generator) -> None:
        """Draw initial weights from ``generator``; ``hidden`` is the width of the hidden layers."""
        super().__init__()
        self.codes, self.width, self.hidden = sum(bins), len(bins), hidden
        self.seen = Linear(self.codes, hidden, generator=generator)
        self.asked = Linear(self.codes, hidden, generator=generator)
        self.within = Linear(hidden, hidden, generator=generator)
        self.scored = Linear(hidden, 1, generator=generator)
        with torch.no_grad():  # one entry of each column is 1: hidden units of deviation about 1
            spreads = {self.seen: len(bins), self.asked: 10 * len(bins), self.within: hidden}
            for layer, ones in spreads.items():
                layer.weight.normal_(0.0, ones**-0.5, generator=generator)
        self.start_at_zero()
        offsets = np.concatenate([[0], np.cumsum(bins)])[:-1]
        self.offsets = torch.from_numpy(offsets.astype(np.int64))
        self.column_of = torch.from_numpy(np.repeat(np.arange(len(bins)), bins))

    def start_at_zero(self) -> None:
        """Let the score be zero for every row, whatever the hidden layers say."""
        with torch.no_grad():
            self.scored.weight.zero_()
            self.scored.bias.zero_()

    def one_hot(self, rows: Tensor) -> Tensor:
        """Turn binned rows ``[n, columns]`` into ``[n, codes]`` float32."""
        hot = torch.zeros(len(rows), self.codes)
        return hot.scatter_(1, rows + self.offsets, 1.0)

    def score(self, hot: Tensor, columns: Tensor, activations: Activations | None = None) -> Tensor:
        """Return the log-odds that rows are real, ``[n]``.

        Args:
            hot: rows one-hot, ``[n, codes]``.
            columns: the column of each row's condition, ``[n]``.
            activations: records the layers for per-unit gradients.
        """
        condition = hot * (self.column_of == columns[:, None])
        hidden = torch.tanh(self.seen(hot, activations) + self.asked(condition, activations))
        hidden = torch.tanh(self.within(hidden, activations))
        score: Tensor = self.scored(hidden, activations)
        return score[:, 0]

    def loss(self, batch: Batch, activations: Activations | None) -> Tensor:
        """Return the logistic loss of each row, ``[units, k]``."""
        rows, columns, labels = batch
        units, k, width = rows.shape
        hot = self.one_hot(rows.reshape(units * k, width))
        scores = self.score(hot, columns.reshape(units * k), activations)
        return functional.softplus(-labels * scores.reshape(units, k))

    def batch(self, rows: Tensor, label: float, rng: np.random.Generator) -> Batch:
        """Give rows ``[units, k, columns]`` a label, and each a condition column of its own.

        The column is uniform and drawn for the row alone: nothing in it depends on how common a
        code is.
        """
        columns = torch.from_numpy(rng.integers(0, self.width, tuple(rows.shape[:2])))
        return rows, columns, torch.full(rows.shape[:2], label)


def crossed(rows: Tensor, others: Tensor, rng: np.random.Generator) -> Tensor:
    """Take each column from the one or the other row, ``[n, columns]``.

    From the other with a chance that is itself uniform, drawn for each row.
    """
    chance = rng.random((len(rows), 1))
    mixed: Tensor = torch.where(torch.from_numpy(rng.random(rows.shape) < chance), others, rows)
    return mixed


def joined(first: Batch, second: Batch) -> Batch:
    """Put two batches of equal shape end to end."""
    rows, columns, labels = (torch.cat(parts) for parts in zip(first, second, strict=True))
    return rows, columns, labels


SPREAD = 0.3  # standard deviation of each part that enters the hidden layer, at the start


class Ask(NamedTuple):
    """What generated rows are asked for: int64 ``[n]``, and latent vectors ``[n, latent]``."""

    component: Tensor
    column: Tensor
    code: Tensor
    latent: Tensor


class GeneratorNetwork(nn.Module):
    """A network of two hidden layers from component, condition and latent vector to all logits."""

    def __init__(
        self,
        products: Products,
        *,
        hidden: int,
        latent: int,
        fixed: int,
        generator: torch.Generator,
    ) -> None:
        """Draw initial weights from ``generator``; the last layer starts at zero.

        Args:
            products: the mixture; its number of components and its columns give the sizes.
            hidden: width of the hidden layers.
            latent: width of the latent vector, at least 1.
            fixed: so many columns, from the first, keep the logits of the mixture.
            generator: of the initial weights.
        """
        super().__init__()
        codes = products.tables.shape[1]
        self.sizes, self.latent = list(products.sizes), latent
        columns = torch.from_numpy(np.repeat(np.arange(len(self.sizes)), self.sizes))
        self.offsets, self.column_of = torch.from_numpy(products.offsets[:-1]), columns
        self.free = (columns >= fixed).float()

        def drawn(inputs: int, spread: float) -> nn.Parameter:
            return nn.Parameter(spread * torch.randn(inputs, hidden, generator=generator))

        self.of_component = drawn(len(products.weights), SPREAD)
        self.of_condition = drawn(codes, SPREAD)
        self.of_latent = drawn(latent, SPREAD)
        self.within = drawn(hidden, hidden**-0.5)
        self.out = nn.Parameter(torch.zeros(hidden, codes))

    def added(self, ask: Ask) -> Tensor:
        """Return what the network adds to the mixture's logits, ``[n, codes]``."""
        condition = self.of_condition[self.offsets[ask.column] + ask.code]
        hidden = self.of_component[ask.component] + condition + ask.latent @ self.of_latent
        hidden = torch.tanh(hidden)
        hidden = hidden + torch.tanh(hidden @ self.within)
        added: Tensor = hidden @ self.out
        return added * self.free

    def laws(self, ask: Ask, products: Products) -> Tensor:
        """Return each row's distributions of all columns, end to end, ``[n, codes]``.

        The condition holds exactly: its column puts all mass on its code.
        """
        tables = torch.from_numpy(products.tables)[ask.component]
        logits = torch.log(tables + 1e-9) + self.added(ask)
        blocks = [torch.softmax(block, 1) for block in torch.split(logits, self.sizes, 1)]
        return self.held(torch.cat(blocks, 1), ask)

    def held(self, laws: Tensor, ask: Ask) -> Tensor:
        """Put all mass of each row's condition column on its code."""
        others = laws * (self.column_of != ask.column[:, None])
        place = self.offsets[ask.column] + ask.code
        return others + torch.zeros_like(laws).scatter_(1, place[:, None], 1.0)

    def ask(
        self, products: Products, rows: int, rng: np.random.Generator, *, even: bool = False
    ) -> Ask:
        """Draw conditions, components and latent vectors for ``rows`` rows.

        Args:
            products: the mixture that components and codes come from.
            rows: how many.
            rng: of the draw.
            even: spread components, columns and codes more evenly than chance.
        """
        width = len(self.sizes)
        column = rng.permutation(rows) % width if even else rng.integers(0, width, rows)
        points = rng.random(rows)
        if even:
            points = (rng.random() + rng.permutation(rows)) / max(rows, 1)
        ends = np.cumsum(products.weights)[None, :]
        component = inverse(ends, np.zeros(rows, dtype=np.int64), points)
        code = np.empty(rows, dtype=np.int64)
        for j, size in enumerate(self.sizes):
            at = np.flatnonzero(column == j)
            tables, components = products.column(j), component[at]
            if even:
                means = (tables @ np.arange(size, dtype=np.float32))[components]
                points = even_points([means], rng)
            else:
                points = rng.random(len(at))
            code[at] = inverse(np.cumsum(tables, axis=1, dtype=np.float64), components, points)
        latent = rng.standard_normal((rows, self.latent), dtype=np.float32)
        return Ask(*map(torch.from_numpy, (component, column, code, latent)))

    def hard(self, laws: Tensor, rng: np.random.Generator) -> Tensor:
        """Draw a binned row of each row of laws, independently: ``[n, columns]`` int64."""
        points = torch.from_numpy(rng.random((len(laws), len(self.sizes)), dtype=np.float32))
        blocks = torch.split(laws, self.sizes, 1)
        return torch.stack(
            [_inverse(block, points[:, j : j + 1]) for j, block in enumerate(blocks)], 1
        )

    @torch.no_grad()
    def draw(
        self, products: Products, rows: int, rng: np.random.Generator, *, even: bool = True
    ) -> Ints:
        """Draw binned rows ``[rows, columns]``.

        Args:
            products: the mixture; may be tilted in the columns that the network leaves as they are.
            rows: how many.
            rng: of the draw.
            even: spread the draws more evenly than chance; see `products.Products.draw`.
        """
        ask = self.ask(products, rows, rng, even=even)
        laws = self.laws(ask, products)
        if not even:
            return self.hard(laws, rng).numpy()
        bins = np.empty((rows, len(self.sizes)), dtype=np.int64)
        leaders = products.leaders(LEADERS)
        for j, block in enumerate(torch.split(laws, self.sizes, 1)):
            bins[:, j] = draw_evenly(block.numpy(), bins[:, list(leaders[j])], rng)
        return rng.permutation(bins)


def _inverse(laws: Tensor, points: Tensor) -> Tensor:
    """Invert the distribution function of each row, ``[n, bins]``, at its point, ``[n, 1]``.

    Where a row has all its mass on one bin, that bin is found at any point.
    """
    return (laws.cumsum(1) <= points).sum(1).clamp_(max=laws.shape[1] - 1)


TINY = 1e-9


class MarginalDistance:
    """Standardised squared distance of a generator to a target."""

    def __init__(self, target: Target, products: Products) -> None:
        """Take the target and the mixture that the generator adds to."""
        measured = np.isfinite(target.pair_sd)
        cells = measured.sum() + len(target.one)
        precision = np.where(measured, target.pair_sd, np.inf) ** -2.0 / cells
        self.precision, self.pairs = torch.tensor(precision).float(), torch.tensor(target.pairs)
        self.one_precision = torch.tensor(target.one_sd**-2.0 / cells).float()
        self.one, self.pairs = torch.tensor(target.one).float(), self.pairs.float()
        self.products, self.tables = products, torch.from_numpy(products.tables)
        weighted = self.tables * torch.tensor(products.weights).float()[:, None]
        self.start, self.start_one = weighted.T @ self.tables, weighted.sum(0)

    def of(self, laws: Tensor, ask: Ask, residual: GeneratorNetwork) -> Tensor:
        """Estimate the distance from rows' distributions of all columns, ``[n, codes]``.

        Given what it was asked for, a row's columns are independent, so pairs are mean products
        of its laws. The same rows with the laws of the mixture have a joint distribution that is
        known exactly: it is the control variate, without which few rows would bury the target.
        """
        with torch.no_grad():
            before = residual.held(self.tables[ask.component], ask)
            known = self.start - before.T @ before / len(laws)
            known_one = self.start_one - before.mean(0)
        pairs = known + laws.T @ laws / len(laws) - self.pairs
        one_way = known_one + laws.mean(0) - self.one
        return (self.precision * pairs**2).sum() + (self.one_precision * one_way**2).sum()

    def moved(self, laws: Tensor, ask: Ask, residual: GeneratorNetwork) -> Tensor:
        """Estimate by how many nats a row's law, given what it was asked for, left the mixture's.

        The mean divergence (Kullback and Leibler) of ``laws`` from the mixture's; no less than
        that of the rows' own law from it.
        """
        start = residual.held(self.tables[ask.component], ask)
        nats: Tensor = laws * (torch.log(laws + TINY) - torch.log(start + TINY))
        return nats.sum(1).mean()
