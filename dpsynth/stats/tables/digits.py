"""How many digits of a figure mean something: those of which its noise leaves two."""

from __future__ import annotations

import numpy as np
import pandas as pd

_INTERVALS = (
    ("difference", "lower", "upper"),
    ("variance", "lower", "upper"),
    ("mean", "lower", "upper"),
    ("sd", "sd: lower", "sd: upper"),
)
_ALSO = {"difference": ("people: lower", "people: upper")}
_MOST = 12
_WEIGHT = "own weight"
_ROUNDING = 1e-6  # of a last digit: what is a rounding error away from it counts as it


def meaningful(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose figures have as many decimals as their noise leaves meaningful.

    The narrowest interval of a column has two digits in half of its width. Ends are rounded
    outwards, so intervals hold as often as before. Counts have few digits already.

    >>> table = pd.DataFrame({"mean": [120.739644], "lower": [118.0871], "upper": [123.0483]})
    >>> meaningful(table).iloc[0].tolist()
    [120.7, 118.0, 123.1]
    """
    found, taken = table.copy(), False
    for name, low, high in _INTERVALS:
        if name not in table or not pd.api.types.is_float_dtype(table[name].dtype):
            continue
        if low == "lower" and taken:  # a figure beside another, without an interval of its own
            continue
        taken |= low == "lower"
        places = _decimals((table[high] - table[low]).to_numpy(np.float64) / 2)
        found[name] = table[name].round(places)
        for label in (low, *_ALSO.get(name, ())[:1]):
            found[label] = _down(table[label], places)
        for label in (high, *_ALSO.get(name, ())[1:]):
            found[label] = -_down(-table[label], places)
        if name == "sd" and "mean" in table:
            found["mean"] = table["mean"].round(places + 1)
    if _WEIGHT in table:
        found[_WEIGHT] = table[_WEIGHT].round(3)
    return found


def _decimals(halves: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int:
    """Return the decimals that show two digits of the least of these."""
    known = halves[np.isfinite(halves) & (halves > 0)]
    if not len(known):
        return 3
    return int(np.clip(1 - np.floor(np.log10(known.min())), 0, _MOST))


def _down(values: pd.Series[float], places: int) -> pd.Series[float]:
    """Round down to so many decimals; no zero is negative."""
    whole = (values * 10.0**places + _ROUNDING) // 1.0
    return (whole / 10.0**places).round(places) + 0.0
