"""Discovery: which codes and keys are published, and what to expect beforehand.

Partition selection: which codes are published, out of those that units have.

Inputs are checked before any noise is drawn. Exact counts do not leave this module.

Counts by keys that nobody declared: what units add is checked, then noise is drawn.

Exact counts, and keys that are not listed, do not leave this module.

What discovery will find, said before any data is opened: from the event and public facts.

**Assumed**, and said beside the figures: so many codes occur, the i-th commonest in a share of the
cells proportional to 1 / i (Zipf's law), and units have the same number of rows, none of them with
the same code twice. A real table differs, and only the figures depend on it, never the guarantee.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth._util.short_repr import short_repr
from dpsynth.errors import InputError
from dpsynth.privacy.discovery_events import MASS, CodeDiscovery, KeyCounts, weight
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


Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Expected:
    """What is expected of one column, as numbers of codes and as a share of its cells.

    Attributes:
        found: codes that are found.
        missed: codes that occur and are not found.
        cells: share of the cells whose code is not found.
    """

    found: float
    missed: float
    cells: float


@dataclass(frozen=True)
class Outlook:
    """How likely codes, or keys, are to be found.

    Attributes:
        event: of the plan, with its noise.

    Example:
        >>> event = CodeDiscovery("codes", 1, 1, delta=1e-7, noise_multiplier=5.0)
        >>> outlook = Outlook(event)
        >>> outlook.units_needed(0.5), outlook.units_needed(0.95)
        (27, 36)
    """

    event: CodeDiscovery | KeyCounts

    @property
    def _whole(self) -> int:
        """What a unit counts that has one code."""
        return MASS if isinstance(self.event, CodeDiscovery) else 1

    @property
    def threshold(self) -> float:
        """The threshold in whole units, each with this code alone."""
        return self.event.threshold / self._whole

    @property
    def spread(self) -> float:
        """Standard deviation of the noise on a number of units."""
        return self.event.sigma / self._whole

    def found(self, units: Floats, codes_each: float = 1.0) -> Floats:
        """Return the probability that a code is found which so many units have.

        Args:
            units: with the code.
            codes_each: different codes of each of them, over all columns.
        """
        from scipy.special import ndtr

        known = np.asarray(units, dtype=np.float64)
        shared = math.sqrt(codes_each) if isinstance(self.event, CodeDiscovery) else 1.0
        above = known / shared - self.threshold + 0.5 / self._whole  # numbers are whole
        return np.where(known > 0, ndtr(above / self.spread), 0.0)

    def units_needed(self, chance: float, codes_each: int = 1) -> int:
        """Return how many units must have a code so that it is found with this probability."""
        from scipy.special import ndtri

        count = self.event.threshold + float(ndtri(chance)) * self.event.sigma
        whole = weight(codes_each) if isinstance(self.event, CodeDiscovery) else 1
        return max(1, math.ceil(count / whole))

    def expected(
        self, codes: int, units: int, rows_per_unit: float, codes_each: float | None = None
    ) -> Expected:
        """Return what is found and missed of a column, by the assumptions of the module.

        Args:
            codes: that occur in the column.
            units: of the population.
            rows_per_unit: on average, in the table of the column.
            codes_each: different codes of each unit over all columns; if None, as many as its rows
                times the columns.
        """
        shares = 1 / np.arange(1, codes + 1)
        shares /= shares.sum()
        rows = min(rows_per_unit, self.event.rows_per_unit)
        if isinstance(self.event, KeyCounts) and not self.event.once:
            having = units * rows * shares
        else:
            having = units * -np.expm1(rows * np.log1p(-np.minimum(shares, 1 - 1e-12)))
        columns = self.event.columns if isinstance(self.event, CodeDiscovery) else 1
        each = rows * columns if codes_each is None else codes_each
        chances = self.found(having, max(1.0, each))
        found = float(chances.sum())
        return Expected(found, codes - found, float(shares @ (1 - chances)))
