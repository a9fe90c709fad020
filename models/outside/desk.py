"""The side that holds the rows: it runs each event of the plan once, and hands out the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Cohort
from dpsynth.errors import BudgetError, DpsynthError, InputError
from dpsynth.models import Codes, Domain, Progress, shares_of, silent
from dpsynth.models.marginals import Binning, Counted, cohort_with_visits, count_columns, pair_noise
from dpsynth.models.outside.mechanisms import Columns, PlugIn, serve
from dpsynth.models.presets import ONE_WAY, PAIRS, STEPS
from dpsynth.models.registry import GeneratorSpec
from dpsynth.models.run_size import OUTSIDE
from dpsynth.privacy import (
    ChosenHistograms,
    Event,
    ObservedPlan,
    OsEntropy,
    PrivacyPlan,
    chosen_histograms,
)
from dpsynth.privacy.public_quality import QUALITY

if TYPE_CHECKING:
    from torch import fx, nn

    from dpsynth.privacy import Entropy, PrivacyBudget, Share


Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ROWS = 2_000  # of those from which a clipping norm is read
QUANTILE = 0.95


class Desk:
    """Runs the events of one plan on one cohort, each once; see `mechanisms` for the argument."""

    def __init__(
        self,
        cohort: Cohort,
        domain: Domain,
        plan: PrivacyPlan | ObservedPlan,
        entropy: Entropy,
        progress: Progress,
        *,
        steps: int | None = None,
    ) -> None:
        """Take the private rows, and what the plan pays for.

        Args:
            cohort: raw codes ``[units, rows, columns]``.
            domain: the public facts, the hidden column included.
            plan: its events are run once each.
            entropy: source of sampling and noise.
            progress: called with a stage and its fraction done.
            steps: of the training that are taken, for a rehearsal on made-up rows; None: all.
        """
        self._cohort, self._domain = cohort_with_visits(cohort), domain
        self._plan, self._entropy, self._progress = plan, entropy, progress
        self._steps = steps
        events = (plan.plan if isinstance(plan, ObservedPlan) else plan).events
        self._left = {event.name: event for event in events if event.name != QUALITY}
        self._counted: Counted | None = None

    @property
    def answers(self) -> dict[str, Callable[..., Any]]:
        """What a generator can ask, by name."""
        return {
            "count_columns": self._count_columns,
            "count_pairs": self._count_pairs,
            "train": self._train,
            "generator": self._entropy.generator,
        }

    @property
    def unused(self) -> tuple[str, ...]:
        """Names of the events that were paid for and not run."""
        return tuple(self._left)

    @property
    def binning(self) -> Binning:
        """The bins of the columns.

        Raises:
            InputError: they were not counted.
        """
        return self._columns().binning

    def _take(self, name: str) -> Event:
        """Take an event off the list, before it is run: it is gone even if it fails."""
        event = self._left.pop(name, None)
        if event is None:
            raise BudgetError(f"the plan has no event '{name}', or it was run already")
        return event

    def _columns(self) -> Counted:
        if self._counted is None:
            raise InputError("count the columns first: all else is about their bins")
        return self._counted

    def _count_columns(self, bins: int) -> Columns:
        if type(bins) is not int or not 2 <= bins <= 64:
            raise InputError("columns are cut into 2 to 64 bins")
        self._take(ONE_WAY)
        self._counted = counted = count_columns(
            self._cohort, self._domain, self._plan, self._entropy, most_bins=bins
        )
        names = tuple(feature.name for feature in self._domain.features)
        shares = tuple(column.bin_shares.copy() for column in counted.bins)
        return Columns(names, shares, counted.total / counted.mass)

    def _count_pairs(self, pairs: list[tuple[int, int]]) -> list[Floats]:
        counted = self._columns()
        event = self._take(PAIRS)
        assert isinstance(event, ChosenHistograms)
        sizes = counted.binning.sizes
        places = range(len(sizes))
        if not 0 < len(pairs) <= event.most or not all(
            i in places and j in places and i != j for i, j in pairs
        ):
            raise InputError(f"a pair is two columns of the domain; at most {event.most} pairs")
        binned = counted.binning.binned(self._cohort)
        sigmas = pair_noise(sizes, pairs, event)
        tables = chosen_histograms(binned, sizes, pairs, sigmas, event, self._entropy)
        if isinstance(self._plan, ObservedPlan):
            self._plan.observer.paired(tables, pairs, sigmas, event, counted.binning)
        return [table / event.mass for table in tables]

    def _train(
        self, graph: fx.Graph, layers: dict[str, nn.Module], rows: Ints | None, rate: float
    ) -> dict[str, list[npt.NDArray[np.float32]]]:
        """Train a copy of a network; return its parameters, by the names of its layers."""
        import torch

        from dpsynth.models.dpsgd import (
            Units,
            check_rows_apart,
            next_batch,
            opacus_clipping_norm,
            trainer_of,
        )
        from dpsynth.models.outside.mechanisms import copied, rebuilt

        binning = self._columns().binning
        event: Any = self._take(STEPS)
        network = rebuilt(graph, layers)
        public = torch.from_numpy(self._public_rows(rows))[:, None]

        def loss(batch: Any, _: Any) -> Any:
            return network(batch[:, 0])[:, None]

        check_rows_apart(network, loss, public)
        trainer = trainer_of(
            network,
            self._plan,
            clipping_norm=opacus_clipping_norm(network, loss, public, QUANTILE),
            population=self._domain.population,
            learning_rate=rate,
            anchor_weight=0.0,
            entropy=self._entropy,
        )
        units = Units.of(self._cohort, binning)
        steps = event.steps if self._steps is None else min(self._steps, event.steps)
        for step in range(steps):
            batch, weights = next_batch(trainer, units)
            trainer.step(loss, batch, weights)
            self._progress("training", (step + 1) / steps)
        return {
            name: [
                p.detach().numpy().copy() for p in network.get_submodule(copied(place)).parameters()
            ]
            for place, name in enumerate(layers)
        }

    def _public_rows(self, rows: Ints | None) -> Ints:
        """Check rows that cost nothing, or draw columns on their own."""
        binning = self._columns().binning
        if rows is None:
            rng = self._entropy.generator()
            shares = [column.bin_shares / column.bin_shares.sum() for column in binning.columns]
            columns = [rng.choice(len(share), size=ROWS, p=share) for share in shares]
            return np.column_stack(columns).astype(np.int64)
        check_bins(rows, binning.sizes)
        if len(rows) < 2:
            raise InputError("a clipping norm needs at least 2 rows")
        return rows[:ROWS]


def check_bins(rows: npt.NDArray[Any], sizes: Sequence[int]) -> None:
    """Refuse what is not rows of bins ``[rows, columns]``.

    Raises:
        InputError: of another shape, not whole numbers, or out of range.
    """
    shaped = isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.shape[1] == len(sizes)
    if not shaped or rows.dtype.kind not in "iu":
        raise InputError("rows are whole numbers, [rows, columns of the domain]")
    if rows.size and ((rows < 0).any() or (rows >= np.array(sizes)).any()):
        raise InputError("rows hold a bin that its column does not have")


OWN = "outside."  # before the names of its arrays
UNITS, DRAWS, REHEARSED_STEPS = 40, 20, 2  # of a rehearsal
TRIES = 200  # draws of rows that are weighed, before one gives up


def adapted(spec: GeneratorSpec, plug_in: type[PlugIn]) -> type[OutsideGenerator]:
    """Return the generator that hands a plug-in its mechanisms, under its full name."""
    return type("Outside", (OutsideGenerator,), {"name": spec.name, "plug_in": plug_in})


class OutsideGenerator:
    """Learns by another package's class, which gets noisy answers and no row."""

    name: ClassVar[str] = ""
    plug_in: ClassVar[type[PlugIn]]

    def __init__(self, domain: Domain) -> None:
        """Build an unfitted generator from public facts."""
        self.domain = domain.with_visits()

    def shares(self, budget: PrivacyBudget) -> tuple[Share, ...]:
        """Name the events that the plug-in would spend on."""
        return shares_of(self.name, self.domain, budget)

    def rehearse(self, plan: PrivacyPlan) -> None:
        """Fit it on made-up rows, keep, restore and sample it, before anything is charged.

        Raises:
            InputError: it fails, asks for what is not in its plan, or leaves an event out.
        """
        try:
            rng = np.random.default_rng(0)
            features = [feature for feature in self.domain.features if feature.name[0] != "\t"]
            shape = (UNITS, self.domain.max_rows)
            codes = [rng.integers(0, feature.size, shape) for feature in features]
            mask = np.arange(shape[1]) < rng.integers(1, shape[1] + 1, UNITS)[:, None]
            cohort = Cohort((np.stack(codes, axis=-1) * mask[..., None]).astype(np.uint16), mask)
            trial = type(self)(self.domain)
            source = plan.opened(OsEntropy())
            desk = Desk(cohort, self.domain, plan, source, silent, steps=REHEARSED_STEPS)
            trial._fit(desk)
            if desk.unused:
                raise InputError(f"it spends on '{desk.unused[0]}', and does not use it")
            again = type(self).restore(self.domain, trial.config(), trial.arrays())
            again.sample(DRAWS, rng)
        except DpsynthError as error:
            text = str(error).removeprefix(f"generator '{self.name}' ")
            raise InputError(
                f"generator '{self.name}' failed its rehearsal on made-up rows: {text}; nothing "
                "was charged"
            ) from None

    def fit(
        self,
        cohort: Cohort,
        plan: PrivacyPlan | ObservedPlan,
        entropy: Entropy,
        progress: Progress = silent,
    ) -> Self:
        """Let the plug-in ask for the events of the plan; it gets no row.

        Raises:
            DpsynthError: it failed, or asked for what is not in its plan.
        """
        return self._fit(Desk(cohort, self.domain, plan, entropy, progress))

    def _fit(self, desk: Desk) -> Self:
        fitted = self._called("be built", lambda: self.plug_in(self.domain))
        serve(fitted.fit, desk.answers, self.name)
        self.fitted_, self.binning_ = fitted, desk.binning
        self.config(), self.arrays()
        return self

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = True) -> Codes:
        """Draw ``[rows, columns]`` codes: bins from the plug-in, codes within them by histogram.

        Where units have several rows, what is drawn is a row of a unit; draws are kept with the
        chance by which a row of so many weighs more.
        """
        factors = self.binning_.row_factors()
        if factors is None:
            return self.binning_.refine(self._drawn(rows, rng), rng, even=even)
        accepted: list[npt.NDArray[np.integer]] = []
        for _ in range(TRIES):
            bins = self._drawn(max(rows, 256), rng)
            chance = factors[bins[:, 0]] / factors.max()
            accepted.append(bins[rng.random(len(bins)) < chance])
            if sum(map(len, accepted)) >= rows:
                break
        enough = np.concatenate(accepted)[:rows]
        if len(enough) < rows:
            raise InputError(f"generator '{self.name}' draws too few units of several rows")
        return self.binning_.refine(enough, rng, even=even)

    def _drawn(self, rows: int, rng: np.random.Generator) -> npt.NDArray[np.integer]:
        bins = np.asarray(self._called("sample", lambda: self.fitted_.sample(rows, rng)))
        check_bins(bins, self.binning_.sizes)
        if len(bins) != rows:
            raise InputError(f"generator '{self.name}' drew {len(bins)} rows, not {rows}")
        return bins

    def config(self) -> dict[str, Any]:
        """Give what the plug-in says of itself, as plain JSON values."""
        config = self._called("describe itself", self.fitted_.config)
        try:
            plain = json.loads(json.dumps(config, allow_nan=False))
        except (TypeError, ValueError):
            plain = None
        if not isinstance(config, dict) or plain != config:
            raise InputError(f"generator '{self.name}' has a config that is not plain JSON")
        return {"plug_in": plain}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give the plug-in's arrays, and the columns' bins."""
        arrays = self._called("give its arrays", self.fitted_.arrays)
        numbers = isinstance(arrays, dict) and all(
            isinstance(name, str) and isinstance(array, np.ndarray) and array.dtype.kind in "biuf"
            for name, array in arrays.items()
        )
        if not numbers or sum(array.nbytes for array in arrays.values()) > OUTSIDE:
            raise InputError(
                f"generator '{self.name}' must keep arrays of numbers by name, of at most "
                f"{OUTSIDE // 2**20} MiB together"
            )
        return {f"{OWN}{name}": array for name, array in arrays.items()} | self.binning_.arrays()

    @classmethod
    def restore(
        cls, domain: Domain, config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Self:
        """Rebuild the bins and the plug-in."""
        fitted = cls(domain)
        fitted.binning_ = Binning.restore(fitted.domain, arrays)
        plug_in_arrays = {
            name.removeprefix(OWN): array.copy()
            for name, array in arrays.items()
            if name.startswith(OWN)
        }
        settings = config["plug_in"]
        fitted.fitted_ = fitted._called(
            "be restored", lambda: cls.plug_in.restore(fitted.domain, settings, plug_in_arrays)
        )
        return fitted

    def _called(self, task: str, work: Callable[[], Any]) -> Any:
        """Run code of the plug-in, far from any row; its error is named by kind alone."""
        try:
            return work()
        except Exception as error:
            raise InputError(
                f"generator '{self.name}' failed to {task} ({type(error).__name__})"
            ) from None
