"""Randomised response and unary encoding: what a person reports of her category.

A randomiser has privacy epsilon in the local model if no report is more than e^epsilon times as
likely from one category as from another. Write R for a rational number of at most e^epsilon.

**Randomised response** among k categories reports the own one with probability p = R / (R + k - 1)
and each other with q = 1 / (R + k - 1). A report v has probability p from v and q from any other
category, so two categories differ by p / q = R at most. Source: Kairouz, Oh, Viswanath (2014),
arXiv 1407.1338.

**Optimised unary encoding** reports a bit for each category, drawn independently: 1 with p = 1 / 2
for the own one and with q = 1 / (R + 1) for each other. Two categories u and v differ in two bits
alone. The ratio is largest where the bit of u is 1 and that of v is 0: p (1 - q) / (q (1 - p)),
which is (1 - q) / q = R. Source: Wang, Blocki, Li, Jha (USENIX Security 2017), section 4.2.

**Exactness.** R is e^epsilon rounded *down* to a multiple of 2^-24, from 60 decimal digits. All
probabilities are ratios of whole numbers, and each draw is one uniform whole number below the
denominator: no float rounds a probability, and the ratio R is kept exactly.

**The choice.** A category that nobody has is reported with probability q, so n reports estimate
its count with variance n q (1 - q) / (p - q)^2. The randomiser with the lower variance is used;
that is randomised response where k - 2 is at most 3 R. It follows from k and epsilon alone, which
are public.

Several columns: their reports are drawn independently, so the ratios multiply and the epsilons of
the columns add up to that of the person.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpsynth.errors import InputError
from dpsynth.privacy import Entropy

Ints = npt.NDArray[np.int64]

RESPONSE, UNARY = "randomised response", "unary encoding"
KINDS = (RESPONSE, UNARY)
MAX_CATEGORIES = 4096
MIN_EPSILON, MAX_EPSILON = 0.001, 20.0
_PARTS = 2**24  # of R; R + k - 1 parts fit into 64 bits
_DIGITS = Context(prec=60)
_BLOCK = 2**21  # draws at a time


@dataclass(frozen=True)
class Randomiser:
    """How one column is perturbed.

    Attributes:
        kind: `RESPONSE` or `UNARY`.
        size: how many categories there are, k.
        epsilon: what a report costs.
    """

    kind: str
    size: int
    epsilon: float

    def __post_init__(self) -> None:
        """Refuse what has no exact law here.

        Raises:
            InputError: too few or too many categories, or an epsilon out of range.
        """
        if self.kind not in KINDS:
            raise InputError(f"a randomiser is one of {', '.join(KINDS)}")
        if not 2 <= self.size <= MAX_CATEGORIES:
            raise InputError(
                f"a column that is perturbed has 2 to {MAX_CATEGORIES:,} categories, not "
                f"{self.size:,}"
            )
        if not MIN_EPSILON <= self.epsilon <= MAX_EPSILON:
            raise InputError(
                f"the epsilon of a column in the local model lies between {MIN_EPSILON:g} and "
                f"{MAX_EPSILON:g}"
            )

    @classmethod
    def chosen(cls, size: int, epsilon: float) -> Self:
        """Return the randomiser of the lower variance, by public facts.

        Raises:
            InputError: too few or too many categories, or an epsilon out of range.

        Example:
            >>> Randomiser.chosen(2, 1.0).kind, Randomiser.chosen(100, 1.0).kind
            ('randomised response', 'unary encoding')
        """
        return min((cls(kind, size, epsilon) for kind in KINDS), key=lambda one: one.variance)

    @cached_property
    def odds(self) -> int:
        """R in parts of 2^-24: never more than e^epsilon."""
        below = Decimal(repr(float(self.epsilon))).exp(_DIGITS)
        slack = 1 - Decimal(10) ** -50
        return math.floor(_DIGITS.multiply(_DIGITS.multiply(below, slack), _PARTS))

    @property
    def whole(self) -> int:
        """The denominator of q: a draw is a uniform whole number below it."""
        others = self.size - 1 if self.kind == RESPONSE else 1
        return self.odds + others * _PARTS

    @property
    def own(self) -> Fraction:
        """The probability p that a report speaks for the own category."""
        return Fraction(self.odds, self.whole) if self.kind == RESPONSE else Fraction(1, 2)

    @property
    def other(self) -> Fraction:
        """The probability q that a report speaks for a given other category."""
        return Fraction(_PARTS, self.whole)

    @property
    def variance(self) -> Fraction:
        """The variance that a report adds to the estimated count of a category nobody has."""
        return self.other * (1 - self.other) / (self.own - self.other) ** 2

    def reports(self, codes: npt.NDArray[np.integer[Any]], entropy: Entropy) -> Ints:
        """Perturb categories.

        Args:
            codes: the place of each person's category, ``[people]``.
            entropy: where the coins come from.

        Returns:
            The reported places ``[people]`` (randomised response), or bits ``[people, size]``
            (unary encoding).

        Raises:
            ValueError: a code is none of a category; no coin has been thrown then.
        """
        if codes.ndim != 1 or (len(codes) and not 0 <= codes.min() <= codes.max() < self.size):
            raise ValueError("a code is not that of a category")
        own: Ints = codes.astype(np.int64)
        if self.kind == UNARY:
            return self._bits(own, entropy)
        drawn = entropy.integers(0, self.whole, len(codes))
        others = (drawn - self.odds) // _PARTS  # among the categories but the own one
        return np.where(drawn < self.odds, own, others + (others >= own))

    def _bits(self, codes: Ints, entropy: Entropy) -> Ints:
        """Draw a bit for each category; the own one by a fair coin."""
        bits = np.empty((len(codes), self.size), dtype=np.int64)
        step = max(1, _BLOCK // self.size)
        for start in range(0, len(codes), step):
            part = codes[start : start + step]
            drawn = entropy.integers(0, self.whole, (len(part), self.size)) < _PARTS
            drawn[np.arange(len(part)), part] = entropy.integers(0, 2, len(part)) == 1
            bits[start : start + step] = drawn
        return bits

    def supports(self, reports: Ints) -> Ints:
        """Count the reports that speak for each category, ``[size]``."""
        if self.kind == UNARY:
            return np.asarray(reports.sum(axis=0, dtype=np.int64))
        return np.bincount(reports, minlength=self.size).astype(np.int64)
