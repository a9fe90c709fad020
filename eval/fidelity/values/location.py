"""Mean and reach of each column of numbers: what bins of equal mass cannot show.

A distance of decile bins sees that a tenth of the rows lies above a cut, and not how far. A column
of which the upper tail is lost keeps nearly all of its bins and loses its mean. So two figures are
computed from the values themselves:

- the mean's error, in standard deviations of the source. Where a few extreme values make the
  standard deviation, the 90 % range over 3.29 stands for it; they are equal of a normal
  distribution. This is the standardised difference of Austin (Statistics in Medicine 28, 2009).
- the reach: how far the mean of the lowest, or highest, twentieth of the values lies from the
  source's median, at the end that differs more, as the logarithm to base 2 of the quotient. 1 is
  twice or half as far. One twentieth of the source's whole reach is added to both, so that a short
  side does not count more than the whole. The mean of a tail (expected shortfall: Acerbi and
  Tasche, J. Banking and Finance 26, 2002) varies less from sample to sample than a percentile.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import (
    JackknifeEstimate,
    Measure,
    PairedTable,
    PairedTables,
    PartResult,
    Variants,
    plain,
)
from dpsynth.eval.fidelity.values.numeric_values import NumericColumn, numeric_columns

Floats = npt.NDArray[np.float64]

FEW = 100  # values in every table, below which a column is left out
MEAN, DEVIATION, MEDIAN, P01, P05, P95, P99, LOWEST, HIGHEST = range(9)  # of a table's statistics
SHARES = (0.5, 0.01, 0.05, 0.95, 0.99)  # of MEDIAN to P99
OUTER = 0.05  # of the values, at each end: LOWEST and HIGHEST are their means
NORMAL = 3.2897  # standard deviations between percentiles 5 and 95 of a normal distribution
SLACK = 0.05  # of the reach, added to each side
CEILING = 1e6  # of a mean's error; a finite number, whatever a column holds
OF_MEAN = (
    "Difference of this column's means, in standard deviations of the source; of values that are "
    "present. 0.1 is small; from 0.25 an average of the table misleads."
)
OF_REACH = (
    "How far the mean of the lowest or highest twentieth of the values lies from the source's "
    "median, in doublings: 1 is twice or half as far as in the source, at the end that differs "
    "more. A high value means that a tail of this column is lost or exaggerated."
)
WORST_MEAN = (
    "The same difference in the column where it is farthest beyond its reference. A high value "
    "means that averages of this column mislead, even where its shares look right."
)
WORST_REACH = (
    "The same in the column where it is farthest beyond its reference. A high value means that "
    "this column's high or low values are lost or exaggerated."
)


def location(sides: PairedTables) -> PartResult:
    """Compare mean and reach of each numeric column; intervals by jackknife over units.

    A column with fewer than 100 values in some table is left out.
    """
    means: dict[str, JackknifeEstimate] = {}
    reaches: dict[str, JackknifeEstimate] = {}
    details: list[dict[str, Any]] = []
    titles: dict[str, str] = {}
    for column in numeric_columns(sides):
        counts = [int((~np.isnan(values)).sum()) for values in column.values]
        if min(counts) < FEW:
            continue
        moments = [
            _statistics(side, values)
            for side, values in zip(sides.every, column.values, strict=True)
        ]
        variants = sides.variants(moments)
        titles[column.name] = column.title
        mean = JackknifeEstimate.of(partial(_shift, step=column.step), variants)
        reach = JackknifeEstimate.of(partial(_reach, step=column.step), variants)
        if mean is None or reach is None:
            continue
        means[column.name], reaches[column.name] = mean, reach
        details.append(_detail(column, variants, mean, reach, sides.n))
    if not details:
        note = f"no numeric column has {FEW} values in each table, so no mean was compared"
        return PartResult((), {"location": []}, (note,))
    measures = [
        *_measures("mean", "Mean", means, OF_MEAN, WORST_MEAN, titles, sides.n),
        *_measures("reach", "Reach of the values", reaches, OF_REACH, WORST_REACH, titles, sides.n),
    ]
    return PartResult(tuple(measures), {"location": details})


def _measures(
    key: str,
    title: str,
    figures: dict[str, JackknifeEstimate],
    meaning: str,
    of_worst: str,
    titles: dict[str, str],
    n: int,
) -> list[Measure]:
    """Return the figure of the column that is clearly worst, then that of each."""
    estimates = {name: figure.estimate(n, maximum=CEILING) for name, figure in figures.items()}

    def beyond(name: str) -> float:
        one = estimates[name]
        references = [x for x in (one.reference, one.chance) if x is not None]
        return (one.value if one.low is None else one.low) - max(references, default=0.0)

    worst = max(estimates, key=beyond)
    return [
        Measure(f"{key}_worst", f"{title}, worst column", estimates[worst], 0.0, of_worst),
        *(
            Measure(f"{key}:{name}", f"{title} of {titles[name]}", one, 0.0, meaning)
            for name, one in estimates.items()
        ),
    ]


def _statistics(side: PairedTable, values: Floats) -> Floats:
    """Return mean, deviation and percentiles ``[variants, 9]``, whole and without each group."""
    known = np.flatnonzero(~np.isnan(values))
    known = known[np.argsort(values[known], kind="stable")]
    ordered, seats = values[known], side.seats[known]
    rows = [_of(ordered)]
    rows += [_of(ordered[seats != group]) for group in range(side.groups)]
    return np.stack(rows)


def _of(ordered: Floats) -> Floats:
    if not len(ordered):
        return np.full(9, np.nan)
    places = np.ceil(np.array(SHARES) * len(ordered)).astype(int) - 1
    outer = max(1, round(OUTER * len(ordered)))
    ends = ordered[:outer].mean(), ordered[-outer:].mean()
    return np.array([ordered.mean(), ordered.std(), *ordered[np.maximum(places, 0)], *ends])


def _shift(source: Floats, other: Floats, step: float) -> Floats:
    """Return the difference of means in standard deviations of the source, robustly."""
    deviation, middle = source[..., DEVIATION], (source[..., P95] - source[..., P05]) / NORMAL
    scale = np.where(middle > 0, np.minimum(deviation, middle), deviation)
    away = np.abs(other[..., MEAN] - source[..., MEAN])
    return np.minimum(away / np.maximum(scale, step), CEILING)


def _reach(source: Floats, other: Floats, step: float) -> Floats:
    """Return the larger difference of the two ends' reach, in doublings."""
    slack = np.maximum(step, SLACK * (source[..., HIGHEST] - source[..., LOWEST]))
    ends = []
    for end, sign in ((LOWEST, -1), (HIGHEST, 1)):
        apart = [
            np.maximum(sign * (moments[..., end] - source[..., MEDIAN]), 0.0) + slack
            for moments in (other, source)
        ]
        ends.append(np.abs(np.log2(apart[0] / apart[1])))
    return np.asarray(np.maximum(*ends))


def _detail(
    column: NumericColumn,
    variants: Variants,
    mean: JackknifeEstimate,
    reach: JackknifeEstimate,
    n: int,
) -> dict[str, Any]:
    def told(found: Floats | None) -> dict[str, Any] | None:
        if found is None:
            return None
        places = {"mean": MEAN, "deviation": DEVIATION, "median": MEDIAN, "p01": P01, "p99": P99}
        places |= {"lowest": LOWEST, "highest": HIGHEST}
        return {name: plain(found[0][place]) for name, place in places.items()}

    return {
        "column": column.name,
        "title": column.title,
        "unit": column.unit or None,
        "type": column.kind,
        "step": column.step,
        "source": told(variants.source),
        "synthetic": told(variants.synthetic),
        "holdout": told(variants.holdout),
        "mean": mean.estimate(n, maximum=CEILING).to_dict(),
        "reach": reach.estimate(n, maximum=CEILING).to_dict(),
    }
