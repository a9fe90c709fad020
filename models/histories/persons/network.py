"""A network that draws columns of the person table, given the others: in the place of the mixture.

The mixture draws the baseline, to which when and how follow-up ended belongs: its few columns are
counted well. The network draws what describes the patient's series, and last the days of events,
which follow from all columns before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpsynth.models.generators.autoregressive_network import Network
from dpsynth.models.generators.network_weights import arrays_of
from dpsynth.models.histories.persons.table import PersonTable
from dpsynth.models.histories.steps.distilled import distilled, restored_network
from dpsynth.models.marginals import LEADERS, Products

Ints = npt.NDArray[np.int64]

NAME = "person.network"  # of its arrays in a run


@dataclass(frozen=True, eq=False)
class PersonNetwork:
    """Draws the last columns of the person table.

    Attributes:
        order: places of the columns in the table, as the network takes them.
        products: the mixture of the table, its columns in that order.
        network: over binned columns in that order.
    """

    order: tuple[int, ...]
    products: Products
    network: Network

    @classmethod
    def taught(
        cls, person: PersonTable, products: Products, rng: np.random.Generator, *, masked: int
    ) -> Self:
        """Train a network on rows of the mixture: post-processing.

        Args:
            person: the table.
            products: the mixture of its rows.
            rng: of the rows and the first weights.
            masked: width of the hidden layer.
        """
        order = order_of(person)
        own = products.reordered(order)
        return cls(order, own, distilled(own, rng, masked=masked, given=baseline_of(person)))

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
        cls, person: PersonTable, products: Products, arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Self | None:
        """Rebuild it from a run's arrays; None where there are none."""
        order = order_of(person)
        own = products.reordered(order)
        network = restored_network(own.sizes, baseline_of(person), arrays, NAME)
        return None if network is None else cls(order, own, network)


def order_of(person: PersonTable) -> tuple[int, ...]:
    """Return places of the columns: baseline, what describes series, and last the events."""
    columns = range(len(person.features))
    events = columns[person.baseline : person.own]
    return (*columns[: person.baseline], *columns[person.own :], *events)


def baseline_of(person: PersonTable) -> int:
    """Count the columns that are given: the baseline, with when and how follow-up ended.

    None where there is nothing else: then a network draws the baseline too.
    """
    return person.baseline if person.baseline < len(person.features) else 0
