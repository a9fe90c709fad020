"""Stays over a window: checked against the event, counted, filtered, and only then with noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth._util.short_repr import short_repr
from dpsynth.errors import InputError
from dpsynth.privacy.answers.filters import filter_weights, inverse_weights
from dpsynth.privacy.answers.stay_event import StaySums
from dpsynth.privacy.answers.sums import are_of_units
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.payments import gaussian_noise

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Stays:
    """Stays of units: the first and the last period that each covers, both included.

    Attributes:
        units: of each stay, ``[stays]``, integers from 0.
        groups: its group, ``[stays]``, integers from 0.
        first: its first period, ``[stays]``.
        last: its last period, ``[stays]``.
        like: how many units there are with just these stays, as of `Contributions`; None for one.
    """

    units: Ints
    groups: Ints
    first: Ints
    last: Ints
    like: Ints | None = None

    def __repr__(self) -> str:
        """Show no stay."""
        return short_repr(self, "stays of units")


def stay_sums(stays: Stays, groups: int, event: StaySums, entropy: Entropy) -> list[Ints]:
    """Count units in each period, filter the series of each group, and add noise to all numbers.

    Args:
        stays: at most ``event.stays_per_unit`` of each unit, of at most ``event.longest`` periods.
        groups: how many there are.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Returns:
        One int64 array, group by group, ``[groups * periods]``; `unfiltered` makes patients of it.

    Raises:
        InputError: stays are not what the event accounts for; no noise has been drawn then.

    Example:
        >>> from dpsynth.privacy.entropy import SeededEntropy
        >>> event = StaySums("beds", 5, longest=3, stays_per_unit=1, sigma=1e4)
        >>> stays = Stays(*np.array([[0, 1], [0, 0], [0, 1], [2, 1]]))
        >>> [noisy] = stay_sums(stays, 1, event, SeededEntropy(1))
        >>> (unfiltered(noisy, event).round() + 0).tolist()
        [[1.0, 2.0, 1.0, 0.0, 0.0]]
    """
    _check(stays, groups, event)
    counts = _present(stays, groups, event.periods)
    weights = filter_weights(event.periods, event.longest)
    used = weights[: int(np.flatnonzero(weights)[-1]) + 1]
    exact = np.concatenate([np.convolve(one, used)[: event.periods] for one in counts])
    (noise,) = gaussian_noise(event, entropy, [(event.sigma, exact.size)])
    return [exact + noise]


def unfiltered(noisy: Ints, event: StaySums) -> Floats:
    """Turn noisy numbers into units present, ``[groups, periods]``: post-processing."""
    weights = inverse_weights(event.periods, event.longest)
    series = noisy.astype(np.float64).reshape(-1, event.periods)
    return np.stack([np.convolve(one, weights)[: event.periods] for one in series])


def noise_of_periods(event: StaySums) -> Floats:
    """Return the standard deviation of the noise in each period, in units, ``[periods]``."""
    weights = inverse_weights(event.periods, event.longest)
    return np.asarray(event.sigma * np.sqrt(np.cumsum(weights**2)), dtype=np.float64)


def _present(stays: Stays, groups: int, periods: int) -> Ints:
    """Return how many units there are in each period, ``[groups, periods]``; private."""
    order = np.lexsort((stays.first, stays.groups, stays.units))
    group, first, last = stays.groups[order], stays.first[order], stays.last[order]
    pair = stays.units[order] * groups + group
    _, number = np.unique(pair, return_inverse=True)
    reach = np.maximum.accumulate(number * periods + last)  # of all that began before, or now
    begun = np.concatenate([[-1], reach[:-1]]) - number * periods
    first = np.maximum(first, begun + 1)  # what lies after the ends of earlier stays
    left = first <= last
    changes = np.zeros((groups, periods + 1), dtype=np.int64)
    each = 1 if stays.like is None else stays.like[order][left]
    np.add.at(changes, (group[left], first[left]), each)
    np.add.at(changes, (group[left], last[left] + 1), -each)
    return np.cumsum(changes, axis=1)[:, :periods]


def _check(stays: Stays, groups: int, event: StaySums) -> None:
    name = f"event '{event.name}'"
    if not event.decided:
        raise InputError(f"{name}: its noise is not decided; calibrate a plan first")
    arrays = (stays.units, stays.groups, stays.first, stays.last)
    if any(one.dtype != np.int64 or one.shape != stays.units.shape for one in arrays):
        raise InputError(f"{name}: units, groups and periods are whole numbers, one of each stay")
    if stays.units.ndim != 1 or groups < 1:
        raise InputError(f"{name}: stays are a list, and there is a group at least")
    if not len(stays.units):
        return
    if stays.like is not None and not are_of_units(stays.like, stays.units):
        raise InputError(f"{name}: the units that one stands for are a whole number of each unit")
    if min(stays.units.min(), stays.groups.min(), stays.first.min()) < 0:
        raise InputError(f"{name}: units, groups and periods are numbers from 0")
    if stays.groups.max() >= groups or stays.last.max() >= event.periods:
        raise InputError(f"{name}: a stay has a group or a period outside the window")
    lengths = stays.last - stays.first + 1
    if lengths.min() < 1 or lengths.max() > event.longest:
        raise InputError(f"{name} accounts for stays of 1 to {event.longest} periods; cut them")
    if int(np.unique(stays.units, return_counts=True)[1].max()) > event.stays_per_unit:
        raise InputError(
            f"{name} accounts for {event.stays_per_unit} stays of each unit; a unit has more"
        )
