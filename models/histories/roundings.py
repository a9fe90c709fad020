"""How often drawn points of histories are rounded, so that their grains are those counted.

Histories are drawn as codes next to each other, smoothly. Here the grains of drawn histories are
compared with those that were counted, from the finest; `dpsynth.encoding.history_codec` says what
becomes of a drawn point. Released counts and drawn rows are read, and no others: post-processing
(Dwork and Roth 2014, proposition 2.1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Histories, Roundings, rates_of
from dpsynth.models import Domain, Feature
from dpsynth.models.histories.domain import HistoryDomain
from dpsynth.models.histories.row_grains import Found, weights_of_rows
from dpsynth.models.histories.steps.table import MASS
from dpsynth.models.marginals.grains import UNITS, GrainCounts, cell_of, points_by_grain

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Weighed = tuple[npt.NDArray[np.uint16], Ints]  # codes of values by row, and the rows' weights


def roundings(found: Found, domain: HistoryDomain, drawn: Histories) -> Roundings | None:
    """Say how often drawn points are rounded, so that their grains are those that were counted.

    Args:
        found: counts of grains, as they were released.
        domain: public facts.
        drawn: histories that were drawn from what was learned.
    """
    if not found:
        return None
    tables = []
    for place, table in enumerate(domain.tables):
        rows = [
            (values.values, weights_of_rows([values.patients], len(drawn), MASS))
            for values in drawn.rows[place]
        ]
        if len(table.series) > 1:  # columns beside the tests are rounded alike in all of them
            together = (
                np.concatenate([codes for codes, _ in rows]),
                weights_of_rows([one.patients for one in drawn.rows[place]], len(drawn), MASS),
            )
        else:
            together = rows[0]
        tables.append(
            tuple(
                _rates(series.values, found.get(place, [None] * len(rows))[number], own, together)
                for number, (series, own) in enumerate(zip(table.series, rows, strict=True))
            )
        )
    ones = (drawn.baseline, np.ones(len(drawn), dtype=np.int64))
    patients = _rates(domain.baseline, found.get(-1, [None])[0], ones, ones)
    return Roundings(patients, tuple(tables))


def _rates(
    values: Sequence[Feature], counts: GrainCounts | None, first: Weighed, others: Weighed
) -> Floats:
    """Return the rates of each value of a series, ``[values, UNITS]``."""
    rates = np.zeros((len(values), UNITS))
    for place, feature in enumerate(values):
        if counts is None or not feature.units or not len(counts.counts[place]):
            continue
        domain = Domain((feature,), 1, 1)
        alone = GrainCounts((counts.counts[place],), counts.sigma, counts.mass)
        if feature.raised is not None:  # it lands on its grains when rows are decoded
            rates[place] = alone.weights(domain)[0]
            continue
        codes, weights = others if place else first
        cells = cell_of(feature)[codes[:, place]]
        own = np.bincount(cells, weights, minlength=feature.units + 1)[:-1]
        seen = alone.seen(domain, 0)
        rates[place, : len(own)] = rates_of(own, seen, points_by_grain(feature))
    return rates
