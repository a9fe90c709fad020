"""Whether two columns are independent, from their noisy table.

Of a table O with margins r and c and total N, the differences X = O - r c' / N are linear in O to
first order: X = (I - p 1') O (I - q 1')', with p = r / N and q = c / N. If the columns are
independent, people give them the covariance N (diag(p) - p p') x (diag(q) - q q') (a Kronecker
product) and noise of variance s^2 in each cell gives s^2 (A A') x (B B'), with A and B the two
factors. `chi_square` compares X with the sum of both. Where a patient has several rows that share
one person, people vary less than this, so the test is cautious there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth._util.formatting import figure
from dpsynth.privacy import RowSums
from dpsynth.stats.comparisons.chi_square import CLEAR, Facts, tested, undecided
from dpsynth.stats.statistic import Answers, Events, sure
from dpsynth.stats.tables import Counts

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Independence(Counts):
    """The table of two columns, without rows that miss either, and the test of independence."""

    @property
    def adds_up(self) -> bool:
        """Never: its margins are of rows that have both columns, and other tables' are not."""
        return False

    def facts(self, answers: Answers, events: Events) -> Facts:
        """Test independence."""
        noisy = self.noisy(answers, events)
        return independent(noisy.counts, noisy.sigma)

    def expected(self, events: Events, z: float) -> str:
        """Say how far a count will be off."""
        event = events[self.name]
        assert isinstance(event, RowSums)
        off = figure(z * event.sigma / event.largest)
        off = f"{off} {self.counted} {sure(z)}"
        return f"{self.size:,} cells, each to within {off}, and a test that includes the noise"


def independent(counts: Floats, sd: float) -> Facts:
    """Test the independence of the two axes of a noisy table ``[rows, columns]``.

    >>> independent(np.array([[200.0, 100.0], [100.0, 200.0]]), 4.0)["p-value"]
    0.0
    >>> independent(np.array([[200.0, 100.0], [210.0, 100.0]]), 4.0)["p-value"] > 0.1
    True
    """
    total, (height, width) = counts.sum(), counts.shape
    if total <= max(CLEAR * sd * counts.size**0.5, 1.0):
        return undecided((height - 1) * (width - 1))
    people, noise, centred = [], [], []
    for margin in (counts.sum(axis=1), counts.sum(axis=0)):
        shares = np.maximum(margin, 0.0) / np.maximum(margin, 0.0).sum()
        centre = np.eye(len(shares)) - shares[:, None]
        centred.append(centre)
        people.append((np.diag(shares) - np.outer(shares, shares))[:-1, :-1])
        noise.append((centre @ centre.T)[:-1, :-1])
    differences = (centred[0] @ counts @ centred[1].T)[:-1, :-1].ravel()
    covariance = total * np.kron(*people) + sd**2 * np.kron(*noise)
    return tested(differences, covariance)
