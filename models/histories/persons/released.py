"""What the steps take over of the table of patients, as it was released: post-processing.

A step depends on a few columns of the baseline, in coarse bins; and values begin at the first row,
whose shares the table of patients has released already.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.models.histories.domain import Series
from dpsynth.models.histories.persons.table import Hidden, PersonTable
from dpsynth.models.histories.steps.lines import cuts_of
from dpsynth.models.histories.steps.table import Coarse
from dpsynth.models.marginals import Binning, Products

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

BINS, CATEGORIES = 8, 12  # of a condition of steps; of one without order


@dataclass(frozen=True)
class ReleasedPersons:
    """The table of patients after it was counted.

    Attributes:
        person: the table.
        binning: of its columns, as released.
        products: the mixture that was fitted to it.
    """

    person: PersonTable
    binning: Binning
    products: Products

    def conditions(self, hidden: Hidden, most: int) -> list[Coarse]:
        """Choose the baseline columns with which a series' rows go together most.

        Args:
            hidden: places of the series' columns.
            most: how many are chosen.
        """
        places = [hidden.count, *hidden.values]
        strength = self.products.dependence[: self.person.baseline, places].sum(axis=1)
        best = sorted(range(len(strength)), key=lambda j: -strength[j])
        return [self._coarse(j) for j in sorted(best[:most])]

    def cuts(self, series: Series, hidden: Hidden) -> list[Ints]:
        """Return where groups of each value begin: of the first rows."""
        columns = [self.binning.columns[place] for place in hidden.values]
        return [
            cuts_of(column.shares[: value.cells])
            for column, value in zip(columns, series.values, strict=True)
        ]

    def firsts(self, series: Series, hidden: Hidden) -> list[Floats]:
        """Return the shares of the codes of each value in first rows."""
        columns = [self.binning.columns[place] for place in hidden.values]
        pairs = zip(columns, series.values, strict=True)
        return [column.shares[: value.size] for column, value in pairs]

    def _coarse(self, column: int) -> Coarse:
        """Cut a column of the table into a few bins of about equal shares."""
        merged = self.binning.columns[column]
        if merged.count <= (BINS if self.person.features[column].cells else CATEGORIES):
            return Coarse(column, merged.bin_of.astype(np.int64))
        shares = merged.bin_shares
        part = np.minimum(((np.cumsum(shares) - shares / 2) * BINS).astype(np.int64), BINS - 1)
        part = np.unique(part, return_inverse=True)[1]
        return Coarse(column, part[merged.bin_of])
