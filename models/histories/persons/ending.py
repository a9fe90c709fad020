"""When and how follow-up ended, as one column of the person table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.models import Feature

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

WHOLE = 64  # a block has a multiple of so many codes, so that no group of codes lies in two
LEAST = 0.01  # share of patients whose follow-up ended in one way, below which they count less


@dataclass(frozen=True)
class Ending:
    """The end of follow-up and how it ended, as one column: a block of codes for each status.

    Pairs with it are three-way tables: who died when, by age. Two columns of their own would make
    an early death as likely as an early last contact at any age.

    >>> ending = Ending(Feature("days", 11, 10, (1,) * 10), Feature("died", 2, 0))
    >>> joint = ending.joined(np.array([3, 3, 10]), np.array([0, 1, 1]))
    >>> joint.tolist(), [part.tolist() for part in ending.parted(joint)]
    ([3, 67, 129], [[3, 3, 10], [0, 1, 1]])
    """

    end: Feature
    status: Feature

    @property
    def block(self) -> int:
        """Codes of a block of ordered codes: the last ones stand for no day."""
        return -(-self.end.cells // WHOLE) * WHOLE

    @property
    def loose(self) -> int:
        """Codes of the end without an order."""
        return self.end.size - self.end.cells

    @property
    def feature(self) -> Feature:
        """The column."""
        points = self.end.points or (1,) * self.end.cells
        points = (*points, *(1,) * (self.block - self.end.cells)) * self.status.size
        cells = self.block * self.status.size
        size = cells + self.loose * self.status.size
        starts = tuple(range(self.block, cells, self.block))
        name = f"{self.end.name} and {self.status.name}"
        return Feature(name, size, cells, points, landmarks=starts)

    def joined(self, ends: Ints, status: Ints) -> Ints:
        """Return the codes of pairs."""
        ordered = status * self.block + ends
        behind = self.block * self.status.size + status * self.loose + ends - self.end.cells
        return np.where(ends < self.end.cells, ordered, behind)

    def parted(self, joint: Ints) -> tuple[Ints, Ints]:
        """Return codes of the end and of the status; the inverse of ``joined``."""
        cells = self.block * self.status.size
        behind = joint - cells
        loose = max(self.loose, 1)
        ordered = np.minimum(joint % self.block, self.end.cells - 1)
        ends = np.where(behind < 0, ordered, self.end.cells + behind % loose)
        return ends, np.where(behind < 0, joint // self.block, behind // loose)

    def importance(self, shares: Floats) -> Floats:
        """Say how much a patient with each ordered code counts when the column is cut into bins.

        All whose follow-up ended in one way count as much as all of another: few die, and it
        matters when.

        Args:
            shares: of the codes, as released.
        """
        blocks = shares[: self.feature.cells].reshape(-1, self.block)
        return np.repeat(1.0 / np.maximum(blocks.sum(axis=1), LEAST), self.block)
