"""Exact sums of what fits have spent: the same numbers in whatever order they are added up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpsynth.privacy import Spend, Total

Divergence = tuple[Fraction, int]
"""What adds up at one order: finite divergences, and how many were infinite."""


@dataclass(frozen=True)
class Sums:
    """What some spendings cost together.

    Attributes:
        fits: how many fits they are of.
        epsilon: the sum, of decimals as they are written.
        delta: likewise.
        divergences: for each order that a cap needs, the sum of Renyi divergences.
    """

    fits: int = 0
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    divergences: Mapping[int, Divergence] = field(default_factory=dict)

    @classmethod
    def of(cls, spend: Spend, orders: tuple[int, ...], *, fits: int) -> Sums:
        """Return the sums of one spending."""
        by_order = {order: spend.divergence(order) for order in orders}
        return cls(
            fits,
            *spend.exact,
            {
                order: (Fraction(0), 1) if math.isinf(value) else (Fraction(value), 0)
                for order, value in by_order.items()
            },
        )

    def __add__(self, other: Sums) -> Sums:
        """Add two sums over the same orders; an empty one has none."""
        if not self.fits and not self.epsilon:
            return other
        if not other.fits and not other.epsilon:
            return self
        return Sums(
            self.fits + other.fits,
            self.epsilon + other.epsilon,
            self.delta + other.delta,
            {
                order: (value + other.divergences[order][0], many + other.divergences[order][1])
                for order, (value, many) in self.divergences.items()
            },
        )

    @property
    def total(self) -> Total:
        """The same as rules of a policy take it."""
        return Total.of(
            self.epsilon,
            self.delta,
            {o: math.inf if many else value for o, (value, many) in self.divergences.items()},
        )

    def to_list(self) -> list[Any]:
        """Give the sums in JSON types, exactly."""
        orders = {str(o): [_binary(value), many] for o, (value, many) in self.divergences.items()}
        return [self.fits, str(self.epsilon), str(self.delta), orders]

    @classmethod
    def from_list(cls, values: list[Any]) -> Sums:
        """Read what ``to_list`` gave."""
        fits, epsilon, delta, orders = values
        by_order = {int(order): (_fraction(value), many) for order, (value, many) in orders.items()}
        return cls(fits, Fraction(epsilon), Fraction(delta), by_order)


def _binary(value: Fraction) -> str:
    """Write a sum of floats as hexadecimal digits over a power of two, which is short and exact.

    >>> _binary(Fraction(0.375)), _fraction("3p3")
    ('3p3', Fraction(3, 8))
    """
    return f"{value.numerator:x}p{value.denominator.bit_length() - 1}"


def _fraction(text: str) -> Fraction:
    digits, _, power = text.partition("p")
    return Fraction(int(digits, 16), 1 << int(power))


NOTHING = Sums()
