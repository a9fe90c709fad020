"""Comparisons of groups and of columns, and a test of several differences at once.

The difference of two groups' means: in the extract, and among people like those in it.

**What is asked.** What `Means` asks of both groups, and the sum of the squares of the values,
counted as they are there: from 0 to `FINE`. Each patient counts the same, shared by her rows.

**Of the extract.** The interval of each mean is Fieller's, from the noise alone. That of the
difference follows from both by Zou and Donner (Construction of Confidence Limits about Effect
Measures, Statistics in Medicine 27, 2008): with means m and limits l and u of groups 1 and 2, it
begins at m1 - m2 - sqrt((m1 - l1)^2 + (u2 - m2)^2).

**Of people.** The same, where S - m N has the further variance N v of who is in the extract, with
v = Q / N - m^2 the variance of values. Where a patient has several rows, v is too large, never too
small: the square of her mean is at most the mean of her squares. So the test is cautious there.

Whether two columns are independent, from their noisy table.

Of a table O with margins r and c and total N, the differences X = O - r c' / N are linear in O to
first order: X = (I - p 1') O (I - q 1')', with p = r / N and q = c / N. If the columns are
independent, people give them the covariance N (diag(p) - p p') x (diag(q) - q q') (a Kronecker
product) and noise of variance s^2 in each cell gives s^2 (A A') x (B B'), with A and B the two
factors. `chi_square` compares X with the sum of both. Where a patient has several rows that share
one person, people vary less than this, so the test is cautious there.

A test of several differences at once: they are all 0, or they are not.

Differences that add up to 0, with covariance V under the null hypothesis (of people and of noise),
are compared with it: x' V^-1 x over all of them but the last, which follows from the others. It has
a chi-square law with as many degrees of freedom, as far as the differences are normal (Gaboardi,
Lim, Rogers, Vadhan, Differentially Private Chi-Squared Hypothesis Testing, ICML 2016). No numbers
are drawn: whoever has the answers gets the same figures.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import erfc

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import chdtrc

from dpsynth._util.formatting import figure
from dpsynth.privacy import Entropy, Event, RowSums, row_sums
from dpsynth.stats.answer_request import Numbers
from dpsynth.stats.counts import Counts, counting
from dpsynth.stats.means import Means, fieller
from dpsynth.stats.statistic import FINE, Events, Ints, Rows, sure

Floats = npt.NDArray[np.float64]

_MEANS, _SQUARES = 0.8, 0.2  # of the budget: squares enter the variance alone


@dataclass(frozen=True, eq=False)
class Differences(Means):
    """The mean of one group less that of another; the only axis has these two cells."""

    @property
    def squares(self) -> str:
        """The name of the event of squares."""
        return f"{self.name}: squares"

    def events(self) -> tuple[tuple[Event, float], ...]:
        """The events of means, and one of squares."""
        means = tuple((event, part * _MEANS) for event, part in super().events())
        squares = replace(counting(self.squares, self), largest=FINE)
        return *means, (squares, _SQUARES)

    def sizes(self) -> dict[str, list[int]]:
        """A number, a sum and a sum of squares for each group."""
        return super().sizes() | {self.squares: [self.size]}

    def answer(self, rows: Rows, events: Events, entropy: Entropy) -> dict[str, list[Ints]]:
        """Count rows, and add values and their squares up."""
        found = super().answer(rows, events, entropy)
        _, added = self.added(rows, ((self.values - self.middle) / self.half) ** 2)
        event = events[self.squares]
        assert isinstance(event, RowSums)
        return found | {self.squares: row_sums(added, [self.size], event, entropy)}

    def table(self, answers: Numbers, events: Events, z: float) -> pd.DataFrame:
        """Give the difference with both intervals and the test's p-value, in one row."""
        whole = FINE if self.per_unit else 1
        n, sd_n = _taken(answers, events, self.names()[0], whole)
        s, sd_s = _taken(answers, events, self.names()[1], FINE)
        q, _ = _taken(answers, events, self.squares, FINE)
        extract, people, p = compared(n, s, q, (sd_n, sd_s), z)
        first, second = self.axes[0].labels
        values = [self.half * value for value in (*extract, *people[1:])]
        return pd.DataFrame(
            [[f"{first} less {second}", *values, p]],
            columns=[
                self.axes[0].column,
                "difference",
                "lower",
                "upper",
                "people: lower",
                "people: upper",
                "p-value",
            ],
        )

    def expected(self, events: Events, z: float) -> str:
        """Say how far the difference of groups of a thousand will be off."""
        total = events[self.names()[1]]
        assert isinstance(total, RowSums)
        off = z * total.sigma / FINE * self.half / 1000 * 2**0.5
        return f"a difference of groups of 1,000 to within {figure(off)}{self.units} {sure(z)}"


def compared(
    n: Floats, s: Floats, q: Floats, sds: tuple[float, float], z: float
) -> tuple[tuple[float, float, float], tuple[float, float, float], float]:
    """Compare two groups by noisy numbers, sums and sums of squares, ``[2]`` each.

    Args:
        n: rows of both groups.
        s: sums of their values, which lie within -1 and 1.
        q: sums of the squares.
        sds: standard deviation of the noise in numbers, and in sums.
        z: how many standard deviations intervals reach.

    Returns:
        The difference with its interval of the noise, the same of people, and the p-value.

    Example:
        >>> n, s, q = np.array([[500.0, 500.0], [150.0, 50.0], [120.0, 120.0]])
        >>> extract, people, p = compared(n, s, q, (3.0, 3.0), 1.96)
        >>> [round(value, 2) for value in (*extract, *people, p)]
        [0.2, 0.18, 0.22, 0.2, 0.14, 0.26, 0.0]
    """
    sd_n, sd_s = sds
    some = np.maximum(n, 1.0)
    variance = np.clip(q / some - np.clip(s / some, -1, 1) ** 2, 0.0, 1.0)
    spread = np.sqrt(sd_s**2 + some * variance)
    extract = _difference(fieller(s, n, sd_s, sd_n, z))
    people = _difference(fieller(s, n, spread, sd_n, z))
    if not (n > np.maximum(CLEAR * sd_n, 1.0)).all():
        return extract, people, 1.0
    se = np.sqrt(((spread**2 + (s / n * sd_n) ** 2) / n**2).sum())
    return extract, people, round(erfc(abs(s[0] / n[0] - s[1] / n[1]) / se / 2**0.5), 4)


def _taken(answers: Numbers, events: Events, name: str, whole: int) -> tuple[Floats, float]:
    """Return an answer in units of a whole, and the standard deviation of its noise."""
    event = events[name]
    assert isinstance(event, RowSums)
    return np.asarray(answers[name][0], dtype=np.float64) / whole, event.sigma / whole


def _difference(means: tuple[Floats, Floats, Floats]) -> tuple[float, float, float]:
    """Return the difference of two means with its interval."""
    (m1, m2), (l1, l2), (u1, u2) = means
    apart = m1 - m2
    return (
        float(apart),
        float(apart - np.hypot(m1 - l1, u2 - m2)),
        float(apart + np.hypot(u1 - m1, m2 - l2)),
    )


@dataclass(frozen=True, eq=False)
class Independence(Counts):
    """The table of two columns, without rows that miss either, and the test of independence."""

    @property
    def adds_up(self) -> bool:
        """Never: its margins are of rows that have both columns, and other tables' are not."""
        return False

    def facts(self, answers: Numbers, events: Events) -> Facts:
        """Test independence."""
        noisy = self.noisy(answers, events)
        return independent(noisy.counts, noisy.sigma)

    def expected(self, events: Events, z: float) -> str:
        """Say how far a count will be off."""
        event = events[self.name]
        assert isinstance(event, RowSums)
        off = figure(z * event.sigma / event.largest)
        off = f"{off} {self.counted} {sure(z)}"
        return f"{self.size:,} cells, each to within {off}, and a test that includes the noise"


def independent(counts: Floats, sd: float) -> Facts:
    """Test the independence of the two axes of a noisy table ``[rows, columns]``.

    >>> independent(np.array([[200.0, 100.0], [100.0, 200.0]]), 4.0)["p-value"]
    0.0
    >>> independent(np.array([[200.0, 100.0], [210.0, 100.0]]), 4.0)["p-value"] > 0.1
    True
    """
    total, (height, width) = counts.sum(), counts.shape
    if total <= max(CLEAR * sd * counts.size**0.5, 1.0):
        return undecided((height - 1) * (width - 1))
    people, noise, centred = [], [], []
    for margin in (counts.sum(axis=1), counts.sum(axis=0)):
        shares = np.maximum(margin, 0.0) / np.maximum(margin, 0.0).sum()
        centre = np.eye(len(shares)) - shares[:, None]
        centred.append(centre)
        people.append((np.diag(shares) - np.outer(shares, shares))[:-1, :-1])
        noise.append((centre @ centre.T)[:-1, :-1])
    differences = (centred[0] @ counts @ centred[1].T)[:-1, :-1].ravel()
    covariance = total * np.kron(*people) + sd**2 * np.kron(*noise)
    return tested(differences, covariance)


Facts = dict[str, float]
CLEAR = 3.0
"""A number that is divided by must be this many standard deviations of its noise above 0."""


def tested(differences: Floats, covariance: Floats) -> Facts:
    """Compare differences ``[n]`` with their covariance ``[n, n]``, both without the last.

    >>> tested(np.array([2.0]), np.array([[1.0]]))
    {'chi-square': 4.0, 'degrees of freedom': 1, 'p-value': 0.0455}
    """
    statistic = float(differences @ np.linalg.solve(covariance, differences))
    degrees = len(differences)
    return {
        "chi-square": round(statistic, 3),
        "degrees of freedom": degrees,
        "p-value": round(float(chdtrc(degrees, max(statistic, 0.0))), 4),
    }


def undecided(degrees: int) -> Facts:
    """Return the facts of a test that noise leaves nothing to: it finds no difference."""
    return {"chi-square": 0.0, "degrees of freedom": degrees, "p-value": 1.0}
