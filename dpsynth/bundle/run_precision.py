"""What a run says of its own precision: released counts, and noise of a known scale.

Post-processing: the run's arrays and its certificate, and never a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dpsynth.bundle.format.precision import (
    CELLS,
    CLEAR,
    COLUMN,
    COUNTS,
    EVERY,
    FIT,
    GROUP,
    NO,
    PAIR,
    READABLE,
    TREND,
    Precision,
    PrecisionLine,
    error_of,
    rounded,
)
from dpsynth.certificate import Certificate
from dpsynth.encoding import Codec
from dpsynth.models import Domain
from dpsynth.models.marginals import MeasuredPairs
from dpsynth.models.marginals.measured_pairs import MEASURED, UNITS, MeasuredPair
from dpsynth.models.presets import ONE_WAY
from dpsynth.privacy.pair_statistics import PRODUCTS
from dpsynth.synthesis import Run, goodness_of_fit

Floats = npt.NDArray[np.float64]

MAX_LISTED = 5_000  # pairs; of more, those without a measurement share one line
MAX_GROUPS = 100  # categories of a column that are listed


def precision_of(run: Run, certificate: Certificate) -> Precision | None:
    """Say how precisely a run has measured columns, groups and pairs.

    Args:
        run: whose released counts are read.
        certificate: of the run; its events have the scale of the noise.

    Returns:
        The lines; None if the run keeps no counts of columns, as that of another package.
    """
    events = {event.name: event for event in certificate.events}
    error, shares = error_of(events.get(ONE_WAY)), run.arrays.get("shares")
    codec = Codec(run.schema)
    whole = Domain.of(codec.schema, codec).with_visits().ordered(run.config.get("order", ()))
    if error is None or shares is None or UNITS not in run.arrays:
        return None
    domain = whole
    if len(shares) != sum(whole.sizes):  # a model that does not count the rows of a unit
        domain = replace(whole, features=whole.features[whole.hidden :])
    if len(shares) != sum(domain.sizes):
        return None
    of_features = np.split(np.asarray(shares, dtype=np.float64), np.cumsum(domain.sizes)[:-1])
    of_columns = [of_features[place] for place in domain.drawn]
    known = MeasuredPairs.restore(run.arrays) if MEASURED in run.arrays else None
    people = float(run.arrays[UNITS][0])
    lines: list[PrecisionLine] = []
    if (fit := goodness_of_fit(run)) is not None:
        furthest = rounded(fit.furthest)
        lines.append(PrecisionLine(FIT, cells=fit.cells, missed=fit.off, times_noise=furthest))
    columns = codec.schema.modelled
    counts = [people * one / max(float(one.sum()), 1e-12) for one in of_columns]
    lines += [
        _line_of_column(column.name, one, error)
        for column, one in zip(columns, counts, strict=True)
    ]
    for column, one in zip(columns, counts, strict=True):
        if column.is_categorical and len(column.levels) <= MAX_GROUPS:
            lines += [
                _group(column.name, level, float(count), error)
                for level, count in zip(column.levels, one, strict=False)
            ]
    names = list(codec.names)
    trend = PRODUCTS in events
    lines += _pairs(names, _measured(known, domain), trend=trend)
    return Precision(tuple(lines))


def _line_of_column(name: str, counts: Floats, error: float) -> PrecisionLine:
    """Say how far a typical code of a column stands above the noise: the root mean square."""
    typical = float(np.sqrt(np.mean(counts**2))) / error if error else 0.0
    return PrecisionLine(
        COLUMN,
        name,
        measured=COUNTS,
        cells=len(counts),
        standard_error=error,
        times_noise=rounded(typical),
        stands_out=_word(typical >= CLEAR),
        readable_from=math.ceil(READABLE * error),
    )


def _group(column: str, level: str, count: float, error: float) -> PrecisionLine:
    times = count / error if error else 0.0
    return PrecisionLine(
        GROUP,
        column,
        group=level,
        measured=COUNTS,
        cells=1,
        standard_error=error,
        people=rounded(count),
        times_noise=rounded(times),
        stands_out=_word(times >= CLEAR),
        readable_from=math.ceil(READABLE * error),
    )


def _measured(known: MeasuredPairs | None, domain: Domain) -> dict[tuple[int, int], MeasuredPair]:
    """Return the pairs of published columns that were measured, by their places in the table."""
    column = {feature: place for place, feature in enumerate(domain.drawn)}
    return {
        (min(places), max(places)): pair
        for pair in (() if known is None else known.pairs)
        if len(places := [column[one] for one in pair.places if one in column]) == 2
    }


def _pairs(
    names: list[str],
    measured: dict[tuple[int, int], MeasuredPair],
    *,
    trend: bool,
) -> Iterator[PrecisionLine]:
    """List the pairs, those that stand out most first, and what was measured of the others."""
    lines = []
    for (i, j), pair in measured.items():
        error = rounded(pair.sd)
        times = math.sqrt(max(0.0, pair.apart / pair.cells - 1))
        clear = pair.apart - pair.cells > CLEAR * math.sqrt(2 * pair.cells)
        lines.append(
            PrecisionLine(
                PAIR,
                names[i],
                names[j],
                measured=CELLS,
                cells=pair.cells,
                standard_error=error,
                times_noise=rounded(times),
                stands_out=_word(clear),
                readable_from=math.ceil(READABLE * error),
            )
        )
    yield from sorted(lines, key=lambda line: -(line.times_noise or 0.0))
    word = TREND if trend else NO
    every = len(names) * (len(names) - 1) // 2
    if every > MAX_LISTED:
        if every > len(measured):
            yield PrecisionLine(PAIR, EVERY, EVERY, measured=word)
        return
    for i, j in combinations(range(len(names)), 2):
        if (i, j) not in measured:
            yield PrecisionLine(PAIR, names[i], names[j], measured=word)


def _word(answer: bool) -> str:
    return "yes" if answer else "no"
