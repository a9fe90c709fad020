"""A smooth line through a series of known noise, with its interval; post-processing.

**The model.** What the source has in period t is a random walk, with normal steps of variance v and
a beginning of which nothing is known, plus a scatter of variance w: people come by chance. The
scatter of one period has nothing to do with that of others in a series of counts; in a filtered
one, it lasts as the noise does, because stays last. The answer is that plus noise, of a known law
(the local level model of Harvey, Forecasting, Structural Time Series Models and the Kalman Filter,
1989). The line is the mean of what the source has, given the answers; without scatter it is the
penalised smoother, which minimises the squared distance to them plus the squares of all steps, in
their variances.

**How it is computed.** The cosines of the discrete cosine transform are the eigenvectors of a
random walk's penalty, with eigenvalues 2 - 2 cos(pi j / T). So each coefficient c_j of y has, by
itself, the signal's variance v / (2 - 2 cos(pi j / T)) + w n_j / n and the noise's n_j, with n
their mean. Its mean is c_j times the share of the signal, and its variance is the product of both
variances over their sum. c_0 is left as it is. The noise of a filtered series is nearly of this
form: n_j is its power at the frequency of the cosine.

**v and w are not known**, and are not guessed: means and variances are averaged over a grid of
both, even in their logarithms, with the weights that the series gives them (their marginal
likelihood). Beforehand, a scatter of less than half of what people who come one by one have is held
to be less likely, by a factor of 20: where noise hides it, it is there. The interval holds both
variances: that given v and w, and that of the means.

**What the interval says.** As one of Bayes, it holds the source's numbers with the confidence
stated on average over the periods of a series (Wahba, Bayesian Confidence Intervals for the
Cross-Validated Smoothing Spline, JRSS B 45, 1983). Where one period stands out from its neighbours,
it may miss just that one; the raw interval does not. docs/statistics.md says how often it holds.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_WALKS = 10.0 ** np.linspace(-8, 8, 41)  # v over the noise
_LESS = -3.0  # logarithm of how much likelier it is that people come by chance
_SCATTERS = (0.0, *(10.0 ** np.linspace(-1.5, 1.5, 7)))  # w over the noise
LEAST = 8
"""Periods of a series, below which there is nothing to smooth."""


def smoothed(series: Floats, power: Floats, z: float) -> tuple[Floats, Floats, Floats]:
    """Return the smooth line of a series ``[T]`` and its interval.

    Args:
        series: noisy numbers.
        power: variance of the noise at the frequency of each cosine, ``[T]``; that of each number
            where its noise is independent.
        z: how many standard deviations the interval reaches.

    Example:
        >>> series = np.array([19.0, 2, 8, 31, 10, -9, 12, 9])
        >>> line, lower, upper = smoothed(series, np.full(8, 100.0), 2)
        >>> bool((upper - lower < 36).all()), bool(line.std() < series.std() / 2)
        (True, True)
    """
    from scipy.fft import dct, idct

    size = len(series)
    coefficients = dct(series, norm="ortho")
    roughness = 2 - 2 * np.cos(np.pi * np.arange(1, size) / size)
    noise = power[1:]
    found, shares, likelihoods = [], [], []
    chance = max(float(series.mean()), 0.0)  # the variance of people who come one by one
    for walk, scatter in product(_WALKS, (*_SCATTERS, chance / noise.mean())):
        signal = noise.mean() * walk / roughness + noise * scatter
        whole = signal + noise
        prior = _LESS if noise.mean() * scatter < chance / 2 else 0.0
        likelihoods.append(prior - 0.5 * (np.log(whole) + coefficients[1:] ** 2 / whole).sum())
        share = signal / whole
        found.append(idct(np.append(coefficients[0], share * coefficients[1:]), norm="ortho"))
        shares.append(share)
    weights = np.exp(np.array(likelihoods) - max(likelihoods))
    weights /= weights.sum()
    lines = np.array(found)
    line: Floats = weights @ lines
    left = np.append(power[0], (weights @ np.array(shares)) * noise)
    variance = _of_each(left) + weights @ (lines - line) ** 2
    off = z * np.sqrt(variance)
    return line, line - off, line + off


def _of_each(variances: Floats) -> Floats:
    """Return the variance of each number from those of the coefficients of the cosines, ``[T]``."""
    size = len(variances)
    turned = variances * np.exp(1j * np.pi * np.arange(size) / size)
    turned[0] = 0
    found: Floats = (variances.sum() + size * np.fft.ifft(turned).real) / size
    return found
