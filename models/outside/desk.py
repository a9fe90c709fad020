"""The side that holds the rows: it runs each event of the plan once, and hands out the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Cohort
from dpsynth.errors import BudgetError, InputError
from dpsynth.models import Domain, Progress
from dpsynth.models.marginals import (
    Binning,
    Counted,
    cohort_with_visits,
    count_columns,
    pair_noise,
)
from dpsynth.models.outside.mechanisms import Columns
from dpsynth.models.presets import ONE_WAY, PAIRS, STEPS
from dpsynth.privacy import ChosenHistograms, Event, ObservedPlan, PrivacyPlan, chosen_histograms
from dpsynth.privacy.quality_budget import QUALITY

if TYPE_CHECKING:
    from torch import fx, nn

    from dpsynth.privacy import Entropy

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
        from dpsynth.models.outside.graphs import copied, rebuilt

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
