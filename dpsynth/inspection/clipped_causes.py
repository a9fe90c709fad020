"""Why cells lie outside the bounds: a code for a missing value, or another unit.

Another unit is claimed only if the cells are far from the bound and, converted, lie where the valid
cells are. A long tail begins at the bound, so it is not taken for a unit.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from dpsynth.inspection import hints
from dpsynth.inspection.conversions import conversions_to
from dpsynth.inspection.findings import Cause
from dpsynth.inspection.known_words import MISSING_DATES, MISSING_NUMBERS
from dpsynth.inspection.suspects import Suspects
from dpsynth.schema import in_units
from dpsynth.tables import array_of, is_close, read_texts

MIN_CODES = 3  # cells with the same code
MIN_CODE_SHARE = 0.5  # of the cells beyond the same bound
MIN_CONVERTED = 5  # cells
MIN_CONVERTED_SHARE = 0.8  # of the cells beyond the same bound
FAR = 1.5  # a cell is far from a bound if it is beyond it by this factor
MAX_NEAR = 0.1  # share of the cells beyond a bound that may be near to it
ALIKE = 0.95  # conversions that explain so much of what the best one explains are named too
MARGIN = 0.25  # of the distance between the percentiles
MAX_NAMED = 3
MIN_VALID = 20  # valid cells that show where values lie; with fewer, the bounds count

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def clipped_causes(suspects: Suspects, texts: Counter[str]) -> tuple[Cause, ...]:
    """Explain cells below the minimum, and cells above the maximum."""
    column = suspects.column
    if column.minimum is None or column.maximum is None:
        return ()
    low, high = float(in_units(column.minimum)), float(in_units(column.maximum))
    words = list(texts)
    counts = np.array([texts[word] for word in words])
    values = read_texts(array_of(words), column, suspects.decimal)
    codes = _codes(suspects)
    causes = []
    for side, name in ((values < low, "below the minimum"), (values > high, "above the maximum")):
        coded = side & _is_code(values, codes, counts, side)
        if coded.any():
            causes.append(
                Cause(
                    "missing-code",
                    int(counts[coded].sum()),
                    f"{name} are a code that often stands for a missing value",
                    hints.CODE,
                    {words[place]: "" for place in np.flatnonzero(coded)},
                )
            )
        if column.kind.is_number and column.kind.is_quantity:
            causes += _converted(suspects, words, values, counts, side & ~coded, (low, high), name)
    return tuple(sorted(causes, key=lambda cause: -cause.cells))


def _codes(suspects: Suspects) -> Floats:
    """Return the codes of missing values in the column's unit."""
    if suspects.column.kind.is_number:
        return np.array(sorted(MISSING_NUMBERS))
    read = suspects.column.kind.read
    assert read is not None  # of dates and times
    return np.array([read(text, None) for text in MISSING_DATES])


def _is_code(values: Floats, codes: Floats, counts: npt.NDArray[np.int64], side: Bools) -> Bools:
    """Tell which values are the one code that most of the cells beyond a bound hold."""
    none = np.zeros(len(values), dtype=bool)
    cells = counts[side].sum()
    best = none
    for code in codes:
        coded = side & is_close(values, np.float64(code))
        if counts[coded].sum() > counts[best].sum():
            best = coded
    count = counts[best].sum()
    return best if count >= max(MIN_CODES, MIN_CODE_SHARE * cells) else none


def _converted(
    suspects: Suspects,
    words: list[str],
    values: Floats,
    counts: npt.NDArray[np.int64],
    side: Bools,
    bounds: tuple[float, float],
    name: str,
) -> list[Cause]:
    """Try other units for the cells beyond a bound; at most one is named."""
    cells = int(counts[side].sum())
    if cells < MIN_CONVERTED or counts[side & _near(values, bounds)].sum() > MAX_NEAR * cells:
        return []
    low, high = _usual(suspects.valid, bounds)
    fits = {}
    for one in conversions_to(suspects.column.ucum):
        converted = values * one.factor + one.offset
        fit = side & (low <= converted) & (converted <= high)
        if counts[fit].sum() >= MIN_CONVERTED_SHARE * cells:
            fits[one] = fit
    most = max((int(counts[fit].sum()) for fit in fits.values()), default=0)
    best = [one for one, fit in fits.items() if counts[fit].sum() >= ALIKE * most]
    if not best:
        return []
    fit = fits[best[0]]
    words_of = " or ".join(f"{one} ({one.example})" for one in best[:MAX_NAMED])
    return [
        Cause(
            "unit",
            int(counts[fit].sum()),
            f"{name} would fit after {words_of}",
            hints.UNIT,
            {words[place]: "" for place in np.flatnonzero(fit)},
        )
    ]


def _near(values: Floats, bounds: tuple[float, float]) -> Bools:
    """Tell which values beyond a bound are near to it, by ratio."""
    low, high = bounds
    with np.errstate(invalid="ignore", divide="ignore"):
        below = (values < low) & ((values <= 0) | (low <= 0) | (values * FAR >= low))
        above = (values > high) & ((high <= 0) | (values <= high * FAR))
    return np.asarray(below | above)


def _usual(valid: Floats, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return where valid cells lie: about between their 1st and 99th percentile, or the bounds."""
    if len(valid) < MIN_VALID:
        return bounds
    low, high = np.quantile(valid, [0.01, 0.99]).tolist()
    margin = MARGIN * (high - low)
    return max(bounds[0], low - margin), min(bounds[1], high + margin)
