"""How columns of one row go together: what steps take over of first rows, free of charge.

A patient with rows has a first one, and few have many steps, so noise hides less of what two
columns of a first row say of each other. They say much the same in a later one, whatever came
before: weights between columns of a row, learned from exact first rows and exact steps, have a
correlation of .9. So a part of what the network of patients has learned is where the weights of the
steps start, and what was released of steps moves them from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.models.histories.persons import Hidden, PersonNetwork
from dpsynth.models.histories.steps.model import StepModel
from dpsynth.models.marginals import MergedBins

Floats = npt.NDArray[np.float64]

TAKEN = 0.6  # of the weights: what came before tells some of the same
RARE = 1e-9  # added to the share of a code, so that each bin has some


@dataclass(frozen=True, eq=False)
class FirstRows:
    """First rows of patients, as a network draws them.

    Attributes:
        persons: the network, as it stands by then; None where there is none.
        bins: of the columns of the person table.
    """

    persons: PersonNetwork | None
    bins: Sequence[MergedBins]

    def weights(self, model: StepModel, hidden: Hidden) -> Floats:
        """Return about what the weights between columns of a step's own row are, by its bins.

        They are without their means over the bins of either column, which biases hold.

        Args:
            model: of the steps of a series, which has a network.
            hidden: places of its first row in the person table.

        Returns:
            ``[codes drawn, D]``; zero for other columns, and for values that are drawn as changes.
        """
        offsets = model.products.offsets.tolist()
        given = offsets[model.table.drawn]
        found = np.zeros((offsets[-1] - given, offsets[-1]))
        if self.persons is None:
            return found
        first = self.persons.network
        own, start = first.skip.effective_weight().detach().double().numpy(), first.before
        places = [self.persons.order.index(column) for column in hidden.values]
        steps = range(len(model.bins) - len(places), len(model.bins))
        alike = [j for j, line in enumerate(model.table.lines) if line is None]
        parts = {j: _parts(model.bins[steps[j]], self.bins[hidden.values[j]]) for j in alike}
        for later in alike:
            rows = slice(*(at - start for at in first.offsets[places[later] :][:2]))
            drawn = slice(*(at - given for at in offsets[steps[later] :][:2]))
            for before in (j for j in alike if j < later):
                block = TAKEN * own[rows, slice(*first.offsets[places[before] :][:2])]
                block = parts[later] @ block @ parts[before].T
                block = block - (block @ model.bins[steps[before]].bin_shares)[:, None]
                block = block - model.bins[steps[later]].bin_shares @ block
                found[drawn, slice(*offsets[steps[before] :][:2])] = block
        return found


def _parts(step: MergedBins, first: MergedBins) -> Floats:
    """Return which part of a step's bin is in each bin of a first row, ``[step, first]``."""
    codes = min(len(step.bin_of), len(first.bin_of))
    found = np.zeros((step.count, first.count))
    np.add.at(found, (step.bin_of[:codes], first.bin_of[:codes]), step.shares[:codes] + RARE)
    return np.asarray(found / found.sum(axis=1, keepdims=True))
