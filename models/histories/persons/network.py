"""A network that draws columns of the person table, given the others: in the place of the mixture.

The mixture draws the baseline: its few columns are counted well. It draws a patient from one of its
components, and what a component says of the fate of a rare patient is mostly noise. So the network
draws what became of her, and adds up what every column before says of a column: when and how
follow-up ended, then the days of events, then what describes her series. It learns rows of the
mixture (distillation: Hinton, Vinyals and Dean 2015, arXiv 1503.02531), so it keeps the released
pairs; private steps may train it further.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpsynth.models import Progress, silent
from dpsynth.models.generators.autoregressive_network import Network
from dpsynth.models.generators.network_weights import arrays_of
from dpsynth.models.histories.persons.table import PersonTable
from dpsynth.models.histories.steps.distilled import distilled, restored_network
from dpsynth.models.marginals import LEADERS, Products

Ints = npt.NDArray[np.int64]

NAME = "person.network"  # of its arrays in a run
STEPS, RATE = 3_000, 0.02  # on rows of the mixture


@dataclass(frozen=True, eq=False)
class PersonNetwork:
    """Draws the last columns of the person table, one after the other.

    Attributes:
        order: places of the columns in the table, as the network takes them.
        products: the mixture of the table, its columns in that order.
        network: over binned columns in that order.
        events_last: whether it is of an earlier version, which was given the end of follow-up, and
            drew events last.
    """

    order: tuple[int, ...]
    products: Products
    network: Network
    events_last: bool = False

    @classmethod
    def taught(
        cls,
        person: PersonTable,
        products: Products,
        rng: np.random.Generator,
        progress: Progress = silent,
    ) -> Self:
        """Train a network on rows of the mixture: post-processing.

        Args:
            person: the table.
            products: the mixture of its rows.
            rng: of the rows and the first weights.
            progress: called after each step.
        """
        order, given = order_of(person)
        own = products.reordered(order)
        network = distilled(
            own, rng, masked=0, given=given, steps=STEPS, rate=RATE, progress=progress
        )
        return cls(order, own, network)

    def draw(self, patients: int, rng: np.random.Generator, *, even: bool = True) -> Ints:
        """Draw binned rows ``[patients, columns]``, columns as in the table.

        With ``even``, they are spread more evenly than chance; see `Products.draw`.
        """
        given, leaders = self.network.shape.given, self.products.leaders(LEADERS) if even else None
        bins = self.products.draw(patients, rng, even=even)
        bins[:, given:] = self.network.draw_after(bins[:, :given], rng, leaders=leaders)
        found = np.empty_like(bins)
        found[:, self.order] = bins
        return found

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give the weights, by name."""
        return arrays_of(self.network, NAME)

    @classmethod
    def restore(
        cls,
        person: PersonTable,
        products: Products,
        arrays: Mapping[str, npt.NDArray[Any]],
        *,
        events_last: bool,
    ) -> Self | None:
        """Rebuild it from a run's arrays; None where there are none.

        Args:
            person: the table.
            products: its mixture.
            arrays: of the run.
            events_last: see the class.
        """
        order, given = earlier_order(person) if events_last else order_of(person)
        own = products.reordered(order)
        network = restored_network(own.sizes, given, arrays, NAME)
        return None if network is None else cls(order, own, network, events_last)


def order_of(person: PersonTable) -> tuple[tuple[int, ...], int]:
    """Return places of the columns, as a network takes them, and how many of them are given.

    First the baseline, but for when and how follow-up ended. All is drawn where there is nothing
    else.
    """
    columns = range(len(person.features))
    given = [j for j in columns[: person.baseline] if j != person.ended]
    ended = [person.ended] if person.ending is not None else []
    order = (*given, *ended, *columns[person.baseline :])
    return order, len(given) if len(given) < len(columns) else 0


def earlier_order(person: PersonTable) -> tuple[tuple[int, ...], int]:
    """Return the order of a network of an earlier version, and how many columns it was given.

    The baseline was given, unless there was nothing else; then came what describes series, and last
    the events.
    """
    columns = range(len(person.features))
    events = columns[person.baseline : person.own]
    order = (*columns[: person.baseline], *columns[person.own :], *events)
    return order, person.baseline if person.baseline < len(columns) else 0
