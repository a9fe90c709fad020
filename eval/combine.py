"""One estimate from several synthetic tables, with a standard error that holds.

An analyst computes an estimate q_i and its usual variance v_i on each of m replicates (see
`dpsynth.synthesis.replicates`). The rules of Raghunathan, Reiter and Rubin (Multiple Imputation for
Statistical Disclosure Limitation, J. Official Statistics 19, 2003) combine them: the estimate is
the mean of the q_i, and its variance

    T = (1 + 1/m) b - v,    b: variance of the q_i around their mean,   v: mean of the v_i.

Why, where replicates come from a parametric bootstrap of a private fit. Let Q be the truth, g what
the fitted generator says of it, and g_i what its i-th refit says. The fit, with its sample of
patients and its noise of privacy, errs by g - Q, of variance V. A refit repeats both on patients
drawn from the generator, so g_i - g has about the same variance V; drawing rows adds v to that.
Hence Var(q_i | g) = V + v, which b estimates, and the mean of the q_i errs about Q by

    (g - Q) + (mean q_i - g),    of variance   V + (V + v)/m = (1 + 1/m)(V + v) - v,

which T estimates. Its law is close to Student's t with (m - 1)(1 - v / ((1 + 1/m) b))^2 degrees of
freedom. T is a difference and may come out at zero or below; then it is v times n_syn / n, about
the variance of a real table without noise (Reiter, Satisfying Disclosure Restrictions With
Synthetic Data Sets, J. Official Statistics 18, 2002), here with m - 1 degrees.

**Bias.** Fits also err on one side: an association comes out too weak, say by B. Refits do so once
more, so that the mean of the q_i errs by up to 2 B. Where q_0, v_0 of a table of the run itself are
at hand, mean q_i - q_0 estimates B, and 2 q_0 - mean q_i is the estimate freed of it (the
bootstrap's correction of bias: Efron and Tibshirani, An Introduction to the Bootstrap, 1993,
section 10.6). With q_0 = g + e, Var(e) = v_0, it errs by (g - Q - B) + 2 e - (mean q_i - g - B), of
variance T + 4 v_0.

Not covered: the part of the bias that refits do not show, since a generator can repeat exactly what
it has made up itself; and v_i have to suit independent rows. docs/inference.md measures both ways.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.eval.core.estimate import LEVEL


@dataclass(frozen=True)
class Combined:
    """An estimate from m tables.

    Attributes:
        value: the mean over the tables, or the corrected estimate.
        standard_error: of the value, about the truth; covers the fit, its noise and the drawing.
        low: lower end of the interval of 95 %.
        high: upper end.
        df: degrees of freedom of the interval's t distribution; at least 1, however small T is.
        m: how many tables.
        adjusted: whether the rule gave no positive variance, and the least possible one stands in.
    """

    value: float
    standard_error: float
    low: float
    high: float
    df: float
    m: int
    adjusted: bool

    def to_dict(self) -> dict[str, Any]:
        """Give the fields as JSON types."""
        return dict(vars(self))


def combine(
    estimates: Sequence[float] | NDArray[np.float64],
    variances: Sequence[float] | NDArray[np.float64],
    *,
    original: tuple[float, float] | None = None,
    ratio: float = 1.0,
) -> Combined:
    """Combine the estimates of one quantity from m replicates.

    Args:
        estimates: q_i, one a table; on the scale on which they are nearly normal (a log odds ratio,
            not an odds ratio).
        variances: v_i, the squared standard errors that the analysis of each table gives.
        original: q_0 and v_0, the same of a table drawn from the run itself: corrects the bias that
            refits show. The more rows it has, the narrower the interval.
        ratio: rows of a replicate over rows of the source, both public; used only where the rule
            gives no positive variance.

    Raises:
        InputError: fewer than two estimates, not as many variances, numbers that are not finite,
            or variances that are not above 0.
    """
    q, v = _numbers(estimates, "estimates"), _numbers(variances, "variances")
    m = len(q)
    if m < 2 or len(v) != m:
        raise InputError("combine needs at least 2 estimates, and as many variances as estimates")
    if (v <= 0).any() or not (math.isfinite(ratio) and ratio > 0):
        raise InputError("variances and ratio must be above 0")
    within, between = float(v.mean()), (1 + 1 / m) * float(q.var(ddof=1))
    adjusted = between <= within
    total = ratio * within if adjusted else between - within
    value = float(q.mean())
    if original is not None:
        first, drawing = _pair(original)
        value, total = 2 * first - value, total + 4 * drawing
    df = m - 1.0 if adjusted else max(1.0, (m - 1) * (total / between) ** 2)
    error = math.sqrt(total)
    half = _quantile(df) * error
    return Combined(value, error, value - half, value + half, df, m, adjusted)


def _quantile(df: float) -> float:
    """Return the half-width of a t interval of 95 %, in standard errors."""
    from scipy.special import stdtrit

    return float(stdtrit(df, (1 + LEVEL) / 2))


def _pair(original: Sequence[float]) -> tuple[float, float]:
    numbers = _numbers(original, "original")
    if len(numbers) != 2 or numbers[1] < 0:
        raise InputError("original is an estimate and its variance, which is not below 0")
    return float(numbers[0]), float(numbers[1])


def _numbers(values: Sequence[float] | NDArray[np.float64], name: str) -> NDArray[np.float64]:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers") from None
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise InputError(f"{name} must be a list of finite numbers")
    return numbers
