"""Partition selection: which codes are published, out of those that units have.

Inputs are checked before any noise is drawn. Exact counts do not leave this module.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth._util.short_repr import short_repr
from dpsynth.errors import InputError
from dpsynth.privacy.discovery.event import CodeDiscovery, weight
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.payments import gaussian_noise

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Occurrences:
    """Which codes units have. The same pair may occur several times, and counts once.

    Attributes:
        units: of each occurrence, integers from 0.
        codes: of each occurrence, integers from 0; codes of different columns differ.
    """

    units: Ints
    codes: Ints

    def __repr__(self) -> str:
        """Show no code."""
        return short_repr(self, "codes of units")


@dataclass(frozen=True, eq=False)
class Selected:
    """Codes that may be published.

    Attributes:
        codes: in ascending order.
        counts: of each, with noise, in parts of a unit; at least the threshold.
    """

    codes: Ints
    counts: Ints


def select_codes(occurrences: Occurrences, event: CodeDiscovery, entropy: Entropy) -> Selected:
    """Find the codes whose noisy number of units reaches the event's threshold.

    Args:
        occurrences: of each unit, at most ``event.most_codes`` different codes.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Raises:
        InputError: the occurrences are not what the event accounts for; no noise has been drawn.

    Example:
        >>> from dpsynth.privacy import OsEntropy, PaidEntropy
        >>> many = Occurrences(np.arange(501), np.array([7] * 500 + [8]))
        >>> event = CodeDiscovery("codes", 1, 1, delta=1e-6, noise_multiplier=4.0)
        >>> source = PaidEntropy([event], OsEntropy())
        >>> select_codes(many, event, source).codes  # the code of a single unit is not found
        array([7])
    """
    if not event.decided:
        raise InputError(f"event '{event.name}': its noise is not decided; calibrate a plan first")
    arrays = occurrences.units, occurrences.codes
    whole = all(array.ndim == 1 and array.dtype.kind in "iu" for array in arrays)
    if not whole or len(arrays[0]) != len(arrays[1]):
        raise InputError("units and codes are whole numbers, one of each for an occurrence")
    if not len(arrays[0]):
        gaussian_noise(event, entropy, [])
        return Selected(np.empty(0, np.int64), np.empty(0, np.int64))
    if min(array.min() for array in arrays) < 0:
        raise InputError("units and codes are whole numbers from 0")
    pairs = np.unique(np.stack(arrays, axis=1).astype(np.int64), axis=0)
    _, of_pair, own = np.unique(pairs[:, 0], return_inverse=True, return_counts=True)
    if int(own.max()) > event.most_codes:
        raise InputError(
            f"event '{event.name}' accounts for {event.most_codes} different codes of a unit, and"
            " a unit has more"
        )
    weights = np.array([0, *map(weight, range(1, event.most_codes + 1))], dtype=np.int64)
    codes, of_code = np.unique(pairs[:, 1], return_inverse=True)
    counts = np.zeros(len(codes), dtype=np.int64)
    np.add.at(counts, of_code.ravel(), weights[own[of_pair.ravel()]])
    (noise,) = gaussian_noise(event, entropy, [(event.sigma, len(codes))])
    counts += noise
    kept = counts >= event.threshold
    return Selected(codes[kept], counts[kept])
