"""Histories drawn step by step: each patient's rows of a series, from the first one on.

All patients take their next step at once, and draws are spread over them more evenly than chance. A
gap is drawn among those after which the day still lies
within follow-up; where not even the shortest fits, the row is on the day of the one before.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import SeriesRows
from dpsynth.models.histories.beginnings import Beginnings
from dpsynth.models.histories.conditional import MIN_SHARE, draw_given, refined_after
from dpsynth.models.histories.steps.model import StepModel
from dpsynth.models.histories.steps.table import Known
from dpsynth.models.marginals import LEADERS, places_at

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def draw_series(
    model: StepModel, start: Beginnings, rng: np.random.Generator, *, even: bool = True
) -> SeriesRows:
    """Draw all rows of a series.

    Args:
        model: of its steps.
        start: the first rows.
        rng: of the draws.
        even: spread each step of all patients more evenly than chance; else patients are
            independent of each other.
    """
    walk = _Walk(model, start, even)
    parts = [walk.rows(np.flatnonzero(start.counts > 0))]
    index = 1
    while True:
        who = np.flatnonzero(start.counts > index)
        if not len(who):
            break
        walk.step(who, index, rng)
        parts.append(walk.rows(who))
        index += 1
    patients, days, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(patients, kind="stable")  # within a patient, rows are in order already
    return SeriesRows(patients[order], days[order], values[order].astype(np.uint16))


class _Walk:
    """Where every patient is in one series."""

    def __init__(self, model: StepModel, start: Beginnings, even: bool) -> None:
        self.model, self.start, self.even = model, start, even
        self.days, self.codes = start.days.copy(), start.values.copy()
        self.gaps = np.full(len(start.days), -1)
        cells = np.array([value.cells for value in model.table.series.values])
        has = self.codes < cells
        self.cells, self.sums = cells, np.where(has, self.codes, 0).astype(np.float64)
        self.numbers = has.astype(np.int64)
        self.last = np.where(has, self.codes, np.nan).astype(np.float64)

    def rows(self, who: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the present rows of some patients."""
        return who, self.days[who], self.codes[who]

    def step(self, who: Ints, index: int, rng: np.random.Generator) -> None:
        """Draw the next row of some patients."""
        table, start = self.model.table, self.start
        room = np.maximum(start.lasts[who] - self.days[who], 0)
        left = start.counts[who] - index
        known = Known(
            baseline=start.baseline[who],
            counts=start.counts[who],
            index=np.full(len(who), index),
            days=self.days[who],
            ends=start.ends[who],
            paces=room / left,
            gaps=self.gaps[who],
            before=self.codes[who],
            levels=(self.last[who] + self.sums[who] / np.maximum(self.numbers[who], 1)) / 2,
        )
        columns = table.known_codes(known).T
        given = np.column_stack(
            [bins.coarsen(codes) for bins, codes in zip(self.model.bins, columns, strict=False)]
        ).astype(np.int64)
        drawn = list(range(table.drawn, len(table.features)))
        weights = self._gap_weights(known.paces, left) if table.table.timed else None
        likelier = None if weights is None else weights @ self._in_bin
        if self.model.network is not None:
            leaders = self.model.products.leaders(LEADERS) if self.even else None
            bins = self.model.network.draw_after(given, rng, likelier, leaders=leaders)
        else:
            products = self.model.products
            bins = draw_given(products, given, drawn, rng, likelier, even=self.even)
        if weights is not None:
            codes = places_at(weights * self._in_bin.T[bins[:, 0]], rng.random(len(who)))
            gaps = self.model.factors.draw(codes, known.paces, table.table.gaps, rng)
            gaps = np.where(left == 1, room, np.minimum(gaps, room))
            gaps = np.minimum(gaps, table.table.longest)
            self.days[who] += gaps
            self.gaps[who] = gaps
        codes = self._refined(bins[:, int(table.table.timed) :], known, rng)
        self._take(who, table.values_of(known, codes, rng))

    def _refined(self, bins: Ints, known: Known, rng: np.random.Generator) -> Ints:
        """Draw codes of what is drawn of the values, within their bins."""
        model = self.model
        columns = model.bins[len(model.bins) - bins.shape[1] :]
        parts = zip(columns, model.table.series.values, model.alike, strict=True)
        return np.column_stack(
            [
                refined_after(
                    column, bins[:, place], known.before[:, place], value.cells, alike, rng
                )
                for place, (column, value, alike) in enumerate(parts)
            ]
        )

    @cached_property
    def _in_bin(self) -> Floats:
        """Which codes of a gap each bin holds: 1 or 0, ``[codes, bins]``."""
        bins = self.model.bins[self.model.table.drawn]
        return np.eye(bins.count)[bins.bin_of]

    @cached_property
    def _within(self) -> Floats:
        """Share of each code of a gap in its bin, ``[codes]``."""
        bins = self.model.bins[self.model.table.drawn]
        shares = bins.shares + MIN_SHARE
        return np.asarray(shares / (shares @ self._in_bin)[bins.bin_of])

    def _gap_weights(self, paces: Floats, left: Ints) -> Floats:
        """Weigh the codes of a gap within their bins, ``[rows, codes]``.

        Only those count that fit before the patient's last row; her last gap is what is left.
        """
        gaps = self.model.table.table.gaps
        weights = np.zeros((len(left), gaps.cells + 1))
        weights[:, :-1] = gaps.allowed(left) * self.model.factors.of_codes(paces, gaps)
        weights[left == 1] = 0.0
        weights[left == 1, -1] = 1.0
        return np.asarray(weights * self._within)

    def _take(self, who: Ints, codes: Ints) -> None:
        self.codes[who] = codes
        has = codes < self.cells
        self.sums[who] += np.where(has, codes, 0)
        self.numbers[who] += has
        self.last[who] = np.where(has, codes, self.last[who])
