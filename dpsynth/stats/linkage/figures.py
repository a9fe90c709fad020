"""Precision, recall and F1 by threshold, from noisy numbers of pairs: post-processing alone.

**Numbers.** From a threshold on, M pairs are matches and N are none; M_0 is that of the lowest
threshold. Numbers cannot rise with the threshold, so the noisy ones are replaced by the nearest
(least squares) that do not rise, and that are not negative.

**Figures.** Precision is M / (M + N), recall M / M_0, F1 is 2 M / (M + N + M_0): each a ratio of
two sums of the noisy numbers n, (u n) / (v n).

**Intervals** are those of Fieller (JRSS B 16, 1954): all shares s for which (u - s v) n is as near
0 as its noise permits. At the extract's own ratio that is noise alone, with the variance
sum (u_i - s v_i)^2 sigma_i^2, however small the numbers are. Where the lower sum may be 0, the
interval is all from 0 to 1. They are made from the numbers as they were drawn; where the figure
that does not rise lies outside of its interval, the interval is widened to it, so they hold at
least as often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.privacy import Event, LinkCounts
from dpsynth.stats.linkage.request import MATCHES, OTHERS, UNREVIEWED, LinkageRequest
from dpsynth.stats.results import normal_quantile

Floats = npt.NDArray[np.float64]
Numbers = Mapping[str, npt.NDArray[np.int64]]
RATIOS = ("precision", "recall", "F1")
_DIGITS = 4  # of a ratio


def tables_of(
    request: LinkageRequest, numbers: Numbers, events: Mapping[str, Event]
) -> dict[str, pd.DataFrame]:
    """Make the tables of linkage from its noisy numbers.

    Args:
        request: what was asked.
        numbers: noisy, by class: ``[thresholds]``.
        events: that paid for them, by class.

    Returns:
        ``thresholds``: what is accepted from each threshold on, and how good that is; ``bands``:
        the pairs of each class between two thresholds. Each figure has its interval.
    """
    z = normal_quantile(request.confidence)
    sigma = {name: _sigma(events[name]) for name in request.classes}
    raw = {name: np.asarray(numbers[name], np.float64) for name in request.classes}
    smooth = {name: falling(values) for name, values in raw.items()}
    found: dict[str, Sequence[object]] = {"threshold": request.thresholds}
    sd = float(np.sqrt(sum(one**2 for one in sigma.values())))
    total = sum(raw.values(), np.zeros(len(request.thresholds)))
    found |= _counted("accepted", sum(smooth.values(), np.zeros(len(total))), total, sd, z)
    for name in request.classes:
        found |= _counted(name, smooth[name], raw[name], sigma[name], z)
    for place, name in enumerate(RATIOS):
        cells = [
            _ratio(_weights(place, t, len(total)), smooth, raw, sigma, z) for t in range(len(total))
        ]
        middle, low, high = zip(*cells, strict=True)
        found |= {name: middle, f"{name}: lower": low, f"{name}: upper": high}
    return {
        "thresholds": pd.DataFrame(found),
        "bands": _bands(request, raw, smooth, sigma, z),
    }


def falling(values: Floats) -> Floats:
    """Return the nearest numbers that do not rise, at least 0.

    >>> falling(np.array([10.0, 4.0, 6.0, -2.0])).tolist()
    [10.0, 5.0, 5.0, 0.0]
    """
    from sklearn.isotonic import isotonic_regression

    nearest = np.asarray(isotonic_regression(values, increasing=False), np.float64)
    return np.maximum(nearest, 0.0)


def fieller_of(
    top: Floats, bottom: Floats, numbers: Floats, sigmas: Floats, z: float
) -> tuple[float, float]:
    """Return the interval of a ratio of two sums of the same noisy numbers, within 0 and 1.

    Args:
        top: weights of the upper sum, ``[numbers]``.
        bottom: those of the lower one.
        numbers: noisy.
        sigmas: sd of the noise of each.
        z: standard deviations to each side.

    >>> ends = fieller_of(np.array([1.0, 0]), np.ones(2), np.array([90.0, 10]), np.full(2, 3.0), 2)
    >>> [round(end, 2) for end in ends]
    [0.85, 0.96]
    """
    spread = (z * sigmas) ** 2
    over, under = float(top @ numbers), float(bottom @ numbers)
    a = under**2 - float(bottom**2 @ spread)
    b = over * under - float((top * bottom) @ spread)
    c = over**2 - float(top**2 @ spread)
    if a <= 0:
        return 0.0, 1.0
    root = float(np.sqrt(max(b**2 - a * c, 0.0)))
    low, high = np.clip([(b - root) / a, (b + root) / a], 0.0, 1.0).tolist()
    return low, high


def _sigma(event: Event) -> float:
    assert isinstance(event, LinkCounts)
    return event.sigma


def _weights(figure: int, t: int, count: int) -> tuple[Floats, Floats]:
    """Return the weights of both sums of a figure, over all matches and then all other pairs."""
    top, bottom = np.zeros(2 * count), np.zeros(2 * count)
    top[t] += 2 if RATIOS[figure] == "F1" else 1
    if RATIOS[figure] != "recall":
        bottom[[t, count + t]] += 1
    if RATIOS[figure] != "precision":
        bottom[0] += 1
    return top, bottom


def _ratio(
    weights: tuple[Floats, Floats],
    smooth: Mapping[str, Floats],
    raw: Mapping[str, Floats],
    sigma: Mapping[str, float],
    z: float,
) -> tuple[float | None, float, float]:
    """Return a ratio with its interval; None where nothing is below the line."""
    top, bottom = weights
    values = np.concatenate([smooth[MATCHES], smooth[OTHERS]])
    noisy = np.concatenate([raw[MATCHES], raw[OTHERS]])
    half = len(values) // 2
    sigmas = np.repeat([sigma[MATCHES], sigma[OTHERS]], half)
    low, high = fieller_of(top, bottom, noisy, sigmas, z)
    under = float(bottom @ values)
    if under <= 0:
        return None, 0.0, 1.0
    ratio = min(float(top @ values) / under, 1.0)
    ends = min(low, ratio), max(high, ratio)
    return round(ratio, _DIGITS), _down(ends[0]), -_down(-ends[1])


def _down(value: float) -> float:
    """Round a share down; an upper end is rounded up, as the negative of this."""
    scaled = np.floor(value * 10**_DIGITS + 1e-9)
    return float(round(scaled / 10**_DIGITS, _DIGITS)) + 0.0


def _counted(
    name: str, values: Floats, raw: Floats, sd: float, z: float
) -> dict[str, Sequence[object]]:
    """Return columns of whole numbers with their intervals, from 0."""
    reach = float(np.ceil(z * sd))
    middle = np.rint(values)
    low = np.minimum(np.maximum(raw - reach, 0), middle)
    high = np.maximum(np.maximum(raw + reach, 0), middle)
    columns = zip((name, f"{name}: lower", f"{name}: upper"), (middle, low, high), strict=True)
    return {label: column.astype(np.int64).tolist() for label, column in columns}


def _bands(
    request: LinkageRequest,
    raw: Mapping[str, Floats],
    smooth: Mapping[str, Floats],
    sigma: Mapping[str, float],
    z: float,
) -> pd.DataFrame:
    """List the pairs between two thresholds, by class: differences of what was counted."""
    ends = [*(f"{one:g}" for one in request.thresholds[1:]), ""]
    frames = []
    for name in request.classes:
        drawn, nearest = (-np.diff(one[name], append=0.0) for one in (raw, smooth))
        sds = sigma[name] * np.sqrt([2.0] * (len(ends) - 1) + [1.0])
        rows = [
            _counted("pairs", nearest[[t]], drawn[[t]], float(sds[t]), z) for t in range(len(ends))
        ]
        columns = {label: [cell for row in rows for cell in row[label]] for label in rows[0]}
        places = {"from": [f"{one:g}" for one in request.thresholds], "below": ends}
        frames.append(pd.DataFrame(places | {"review": _REVIEW[name]} | columns))
    return pd.concat(frames, ignore_index=True)


_REVIEW = {MATCHES: "match", OTHERS: "no match", UNREVIEWED: "not reviewed"}
