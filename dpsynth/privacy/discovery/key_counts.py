"""Counts by keys that nobody declared: what units add is checked, then noise is drawn.

Exact counts, and keys that are not listed, do not leave this module.
"""

from __future__ import annotations

import numpy as np

from dpsynth.errors import InputError
from dpsynth.privacy.discovery.key_event import KeyCounts
from dpsynth.privacy.discovery.selection import Occurrences, Selected
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.payments import gaussian_noise


def key_counts(rows: Occurrences, event: KeyCounts, entropy: Entropy) -> Selected:
    """List the keys whose noisy count reaches the event's threshold, with this count.

    Args:
        rows: the unit and the key of each row that has one, both whole numbers from 0; of each
            unit, at most ``event.rows_per_unit``.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Returns:
        The keys in ascending order, and their counts. How keys are numbered has not been paid for:
        whoever publishes them puts them in an order that does not depend on it.

    Raises:
        InputError: the rows are not what the event accounts for; no noise has been drawn.

    Example:
        >>> from dpsynth.privacy import OsEntropy, PaidEntropy
        >>> many = Occurrences(np.arange(501), np.array([7] * 500 + [8]))
        >>> event = KeyCounts("keys", 1, once=True, delta=1e-6, sigma=4.0)
        >>> source = PaidEntropy([event], OsEntropy())
        >>> key_counts(many, event, source).codes  # the key of a single unit is not listed
        array([7])
    """
    if not event.decided:
        raise InputError(f"event '{event.name}': its noise is not decided; calibrate a plan first")
    arrays = rows.units, rows.codes
    whole = all(array.ndim == 1 and array.dtype.kind in "iu" for array in arrays)
    if not whole or len(arrays[0]) != len(arrays[1]):
        raise InputError(f"event '{event.name}': units and keys are whole numbers, one of each")
    if not len(arrays[0]):
        gaussian_noise(event, entropy, [])
        return Selected(np.empty(0, np.int64), np.empty(0, np.int64))
    if min(array.min() for array in arrays) < 0:
        raise InputError(f"event '{event.name}': units and keys are whole numbers from 0")
    if int(np.unique(rows.units, return_counts=True)[1].max()) > event.rows_per_unit:
        raise InputError(
            f"event '{event.name}' accounts for {event.rows_per_unit} rows of each unit; a unit "
            "has more"
        )
    pairs = np.stack(arrays, axis=1).astype(np.int64)
    if event.once:
        pairs = np.unique(pairs, axis=0)
    keys, counts = np.unique(pairs[:, 1], return_counts=True)
    (noise,) = gaussian_noise(event, entropy, [(event.sigma, len(keys))])
    noisy = counts.astype(np.int64) + noise
    listed = noisy >= event.threshold
    return Selected(keys[listed], noisy[listed])
