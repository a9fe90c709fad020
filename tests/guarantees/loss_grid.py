"""Privacy loss on a grid, written without dp_accounting: brackets for what a list of events costs.

Losses are rounded to multiples of a step, all down or all up, and added by convolution, for adding
and for removing a unit apart. Rounded down, the law of a *real* pair of neighbours gives an epsilon
that no correct claim may be below. Rounded up, the law of a dominating pair gives one that holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.signal import fftconvolve
from scipy.stats import norm

from dpsynth.privacy import ChosenHistograms, Event, JointHistograms, PoissonSgd
from dpsynth.privacy.events import SMOOTHING

Floats = npt.NDArray[np.float64]
Law = Callable[[Floats], Floats]
TAIL = 1e-15
REACH = 9.0  # standard deviations; beyond them lie 1e-19


@dataclass(frozen=True)
class Losses:
    """A law of losses on multiples of a step: masses from ``first`` steps on, and at infinity."""

    step: float
    first: int
    mass: Floats
    never: float
    up: bool

    def plus(self, other: Losses) -> Losses:
        mass = np.maximum(fftconvolve(self.mass, other.mass), 0)
        never = self.never + other.never
        return Losses(self.step, self.first + other.first, mass, never, self.up).trimmed()

    def times(self, count: int) -> Losses:
        half = self if count == 1 else self.times(count // 2)
        if count == 1:
            return self
        whole = half.plus(half)
        return whole.plus(self) if count % 2 else whole

    def trimmed(self) -> Losses:
        """Cut both tails, to the safe side: up for a law that is rounded up, else down."""
        before = np.cumsum(self.mass)
        low = int(np.searchsorted(before, TAIL))
        high = max(int(np.searchsorted(before, before[-1] - TAIL)) + 1, low + 1)
        mass = self.mass[low:high].copy()
        under, over = self.mass[:low].sum(), self.mass[high:].sum()
        if self.up:
            mass[0] += under
            return Losses(self.step, self.first + low, mass, self.never + over, True)
        mass[-1] += over
        return Losses(self.step, self.first + low, mass, self.never, False)

    def delta(self, epsilon: float) -> float:
        losses = (self.first + np.arange(len(self.mass))) * self.step
        gain = -np.expm1(np.minimum(epsilon - losses, 0))
        return float(self.mass @ gain) + self.never

    def epsilon(self, delta: float) -> float:
        if self.delta(0) <= delta:
            return 0.0
        top = (self.first + len(self.mass)) * self.step
        return float(brentq(lambda eps: self.delta(eps) - delta, 0, top, xtol=1e-9))


def continuous(below: Law, least: float, most: float, step: float, *, up: bool) -> Losses:
    """Losses with the distribution function ``below``, which reach from least to most."""
    first, last = math.floor(least / step), math.ceil(most / step)
    edges = below(np.arange(first, last + 1) * step)
    never = 1 - edges[-1] if up else 0.0
    mass = np.diff(edges)
    if up:
        mass[0] += edges[0]
    return Losses(step, first + 1 if up else first, mass, float(never), up)


def points(losses: Floats, mass: Floats, step: float, *, up: bool) -> Losses:
    """Losses at single points."""
    near = losses / step
    at = (np.ceil(near) if up else np.floor(near)).astype(np.int64)
    first = int(at.min())
    return Losses(step, first, np.bincount(at - first, weights=mass), 0.0, up)


def sampled_gaussian(rate: float, noise: float, step: float, *, add: bool, up: bool) -> Losses:
    """One step of DP-SGD: (1 - q) N(0, s^2) + q N(1, s^2) against N(0, s^2), or the reverse."""
    variance = noise**2

    def loss(x: float) -> float:  # of removing the unit; increasing
        return math.log1p(rate * math.expm1((x - 0.5) / variance))

    def place(losses: Floats) -> Floats:  # the inverse; -inf below the least loss
        inner = np.maximum(1 + np.expm1(losses) / rate, 0)
        with np.errstate(divide="ignore"):
            return 0.5 + variance * np.log(inner)

    def below(losses: Floats) -> Floats:
        x = place(-losses if add else losses)
        if add:
            return norm.sf(x / noise)
        return rate * norm.cdf((x - 1) / noise) + (1 - rate) * norm.cdf(x / noise)

    least, most = loss(-REACH * noise), loss(1 + REACH * noise)
    if add:
        least, most = -loss(REACH * noise), -loss(-REACH * noise)
    return continuous(below, least, most, step, up=up)


def gaussian(mu: float, step: float, *, up: bool) -> Losses:
    def below(losses: Floats) -> Floats:
        cumulative: Floats = norm.cdf((losses - mu**2 / 2) / mu)
        return cumulative

    middle, reach = mu**2 / 2, REACH * mu
    return continuous(below, middle - reach, middle + reach, step, up=up)


def discrete_gaussian(sigma: float, shift: int, step: float, *, up: bool) -> Losses:
    """Integer noise, moved by a whole number or not; its own mirror image."""
    noise = np.arange(-math.ceil(REACH * sigma), math.ceil(REACH * sigma) + 1, dtype=np.float64)
    mass = np.exp(-(noise**2) / (2 * sigma**2))
    return points((shift**2 + 2 * shift * noise) / (2 * sigma**2), mass / mass.sum(), step, up=up)


def of_event(event: Event, step: float, *, add: bool, up: bool) -> Losses:
    """Losses of an event: below, of a unit of identical rows; above, of the dominating pair."""
    if isinstance(event, PoissonSgd):
        rate, noise = event.sampling_rate, event.noise_multiplier
        if rate == 1:
            return gaussian(math.sqrt(event.steps) / noise, step, up=up)
        return sampled_gaussian(rate, noise, step, add=add, up=up).times(event.steps)
    if isinstance(event, ChosenHistograms):
        if up:
            return gaussian(1 / event.noise_multiplier, step, up=True)
        return discrete_gaussian(event.sigma_for(1.0), event.mass, step, up=False)
    if up and event.mass > 1:
        smooth = math.sqrt(event.sigma**2 - SMOOTHING**2)
        return gaussian(event.mass * math.sqrt(event.histograms) / smooth, step, up=True)
    one = discrete_gaussian(event.sigma, event.mass, step, up=up)
    return one.times(event.histograms)


def bracket(events: Sequence[Event], delta: float, *, near: float) -> tuple[float, float]:
    """Epsilon that no correct claim is below, and one that holds; ``near`` sets the grid alone."""
    sums = [
        event.steps
        if isinstance(event, PoissonSgd)
        else (event.histograms if isinstance(event, JointHistograms) else 1)
        for event in events
    ]
    step = 0.006 * max(near, 0.05) / sum(sums)
    ends = []
    for up in (False, True):
        each = []
        for add in (False, True):
            parts = [of_event(event, step, add=add, up=up) for event in events]
            whole = parts[0]
            for part in parts[1:]:
                whole = whole.plus(part)
            each.append(whole.epsilon(delta))
        ends.append(max(each))
    return ends[0], ends[1]
