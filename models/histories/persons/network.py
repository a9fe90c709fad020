"""A network that draws columns of the person table, given the others: in the place of the mixture.

The mixture draws the baseline: its few columns are counted well. It draws a patient from one of its
components, and what a component says of the fate of a rare patient is mostly noise. So the network
draws what became of her, and adds up what every column before says of a column: when and how
follow-up ended, then the days of events, then what describes her series, and last how many rows
she has of each wide table. It learns rows of the mixture (distillation: Hinton, Vinyals and Dean
2015, arXiv 1503.02531), so it keeps the released pairs; private steps may train it further, and
then what two columns say together of her number of rows (`persons.crosses`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch

from dpsynth.models import Progress, silent
from dpsynth.models.dpsgd import arrays_of
from dpsynth.models.generators.autoregressive_network import Network
from dpsynth.models.histories.persons.crosses import Crosses
from dpsynth.models.histories.persons.table import (
    EVENTS,
    NUMBERS,
    ORDERS,
    SERIES,
    PersonTable,
)
from dpsynth.models.histories.steps.distilled import distilled, restored_network
from dpsynth.models.marginals import LEADERS, MergedBins, Products

Ints = npt.NDArray[np.int64]

STEPS, RATE = 3_000, 0.02  # on rows of the mixture
BLOCK = 4_096  # rows that are one-hot at a time
NAME, CROSSES, LAST = "person.network", "person.crosses", "person.last"  # of arrays in a run


@dataclass(frozen=True, eq=False)
class PersonNetwork:
    """Draws the last columns of the person table, one after the other.

    Attributes:
        order: places of the columns in the table, as the network takes them.
        products: the mixture of the table, its columns in that order.
        network: over binned columns in that order.
        last: what it draws last: `NUMBERS` or `SERIES`, or `EVENTS` in an earlier version.
        crosses: of the columns before the numbers of rows, if it has any.
    """

    order: tuple[int, ...]
    products: Products
    network: Network
    last: str = NUMBERS
    crosses: Crosses | None = None

    @classmethod
    def taught(
        cls,
        person: PersonTable,
        products: Products,
        rng: np.random.Generator,
        progress: Progress = silent,
        last: str = NUMBERS,
    ) -> Self:
        """Train a network on rows of the mixture: post-processing.

        Args:
            person: the table.
            products: the mixture of its rows.
            rng: of the rows and the first weights.
            progress: called after each step.
            last: what it draws last.
        """
        order, given = order_of(person, last)
        own = products.reordered(order)
        network = distilled(own, rng, given=given, steps=STEPS, rate=RATE, progress=progress)
        return cls(order, own, network, last)

    def draw(self, patients: int, rng: np.random.Generator, *, even: bool = True) -> Ints:
        """Draw binned rows ``[patients, columns]``, columns as in the table.

        With ``even``, they are spread more evenly than chance; see `Products.draw`.
        """
        given, leaders = self.network.shape.given, self.products.leaders(LEADERS) if even else None
        bins = self.products.draw(patients, rng, even=even)
        bins[:, given:] = self.network.draw_after(bins[:, :given], rng, leaders=leaders)
        if self.crosses is not None:
            self._draw_numbers(bins, self.crosses, rng, leaders)
        found = np.empty_like(bins)
        found[:, self.order] = bins
        return found

    def with_crosses(self, person: PersonTable, bins: Sequence[MergedBins]) -> Self:
        """Give it axes of the columns before the numbers of rows of wide tables, if it has these.

        The axes are those of patients with a row: without one, all columns of the first row say the
        same.

        Args:
            person: the table.
            bins: of its columns.
        """
        before = len(self.order) - len(person.numbers_of_wide)
        settled = self.last != NUMBERS or self.crosses is not None
        if settled or before < 2 or before == len(self.order):
            return self
        shares = [share.copy() for share in self.products.shares]
        for column in range(before, len(self.order)):
            none, *some = bins[self.order[column]].bin_of
            if none not in some:
                shares[column][none] = 0.0
        crosses = Crosses.of(self.network, before, shares)
        return replace(self, crosses=crosses) if crosses.products else self

    def _draw_numbers(
        self,
        bins: Ints,
        crosses: Crosses,
        rng: np.random.Generator,
        leaders: Sequence[Sequence[int]] | None,
    ) -> None:
        """Draw the numbers of rows again, in place: with what two columns say together."""
        known, drawn = bins[:, : crosses.before(self.network)], len(self.network.skip.bias)
        blocks = torch.split(torch.from_numpy(bins), BLOCK)
        pull = torch.cat([crosses.pull(self.network.one_hot(rows), drawn) for rows in blocks])
        bins[:, known.shape[1] :] = self.network.draw_after(known, rng, pull=pull, leaders=leaders)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give the weights, and what is drawn last, by name."""
        last = {LAST: np.array(ORDERS.index(self.last))}
        crosses = {} if self.crosses is None else arrays_of(self.crosses, CROSSES)
        return arrays_of(self.network, NAME) | last | crosses

    @classmethod
    def restore(
        cls,
        person: PersonTable,
        products: Products,
        arrays: Mapping[str, npt.NDArray[Any]],
        config: Mapping[str, Any],
    ) -> Self | None:
        """Rebuild it from a run's arrays; None where there are none.

        Args:
            person: the table.
            products: its mixture.
            arrays: of the run.
            config: of the run; earlier versions said there what is drawn last.
        """
        earlier = EVENTS if config.get("events_last", True) else SERIES
        last = ORDERS[int(arrays[LAST])] if LAST in arrays else earlier
        order, given = order_of(person, last)
        own = products.reordered(order)
        network = restored_network(own.sizes, given, arrays, NAME)
        if network is None:
            return None
        return cls(order, own, network, last, Crosses.restore(arrays, CROSSES))


def order_of(person: PersonTable, last: str = NUMBERS) -> tuple[tuple[int, ...], int]:
    """Return places of the columns, as a network takes them, and how many of them are given.

    First the baseline, but for when and how follow-up ended. All is drawn where there is nothing
    else. What describes a series is drawn in the order of the table, or all but the numbers of rows
    of wide tables first. Networks of earlier versions were given the end of follow-up too, or not.

    Args:
        person: the table.
        last: what is drawn last: `NUMBERS`, `SERIES` or `EVENTS`.
    """
    columns = range(len(person.features))
    events = columns[person.baseline : person.own]
    if last == EVENTS:
        order = (*columns[: person.baseline], *columns[person.own :], *events)
        return order, person.baseline if person.baseline < len(columns) else 0
    given = [j for j in columns[: person.baseline] if j != person.ended]
    ended = [person.ended] if person.ending is not None else []
    numbers = person.numbers_of_wide if last == NUMBERS else []
    series = [j for j in columns[person.own :] if j not in numbers]
    order = (*given, *ended, *events, *series, *numbers)
    return order, len(given) if len(given) < len(columns) else 0
