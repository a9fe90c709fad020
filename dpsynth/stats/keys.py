"""Counts by codes that nobody declared: the keys that enough patients have, with their numbers.

A key is a cell of the columns of ``by``, of which some have codes that are in no list (``discover:
true`` in the schema) and others are cut as for any count. Rows without such a code are in no key.

**What is listed.** The keys whose noisy count reaches a threshold (`privacy.KeyCounts`). Which keys
were counted, in what order, and how many rows the table has, shows nowhere: on disk keys are in
the order of their texts, and in the table the largest noisy count is first.

**The interval** holds the true number of a listed key with the confidence that is stated *of those
that are listed*: a key gets into the list when noise lifts it, so that n +- z sd would be too high
near the threshold T. Of X = c + Z it is seen only that X = x, and that X >= T. The interval holds
every whole number c from 1 on with P(X >= x | X >= T) and P(X <= x | X >= T) both above alpha / 2;
the first grows with c and the second falls. Half a step is added, as counts are whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import figure
from dpsynth.encoding.code_search import NONE
from dpsynth.errors import InputError
from dpsynth.privacy import Entropy, Event, KeyCounts, Occurrences, Outlook, key_counts
from dpsynth.privacy.answers import NOWHERE
from dpsynth.privacy.events import UNDECIDED
from dpsynth.schema import Column, Schema
from dpsynth.stats.answer_request import Numbers
from dpsynth.stats.axes import MAX_CELLS, Axis
from dpsynth.stats.statistic import COLUMNS, Events, Ints, Rows, Statistic, sure

_WIDEST = 0.1  # delta of a threshold before a plan decides on it

Floats = npt.NDArray[np.float64]
Shared = tuple[str, float, tuple[Axis, ...], int, bool, bool]


@dataclass(frozen=True, eq=False)
class KeyTable(Statistic):
    """Counts of keys; ``axes`` are the columns whose cells are declared.

    Attributes:
        keys: the columns whose codes nobody declared.
        order: names of all columns of ``by``, as asked.
        population: the public number of patients.
        rows: public, of each patient on average.
    """

    keys: tuple[Column, ...]
    order: tuple[str, ...]
    population: int
    rows: float

    def __post_init__(self) -> None:
        """Refuse what could be charged for, and then neither held nor written."""
        if len(set(self.order)) < len(self.order):
            raise InputError("'by' names a column twice")
        for name in self.order:
            if name in COLUMNS:
                raise InputError(f"column '{name}' is called as a column of the result; rename it")
        if self.most > MAX_CELLS:
            raise InputError(
                f"it may list {self.most:,} keys; {MAX_CELLS:,} are the most: lower codes.most in "
                "the schema, or use fewer columns"
            )
        super().__post_init__()

    @classmethod
    def of(cls, shared: Shared, schema: Schema, keys: Sequence[Column], by: Sequence[Any]) -> Self:
        """Make it from what statistics share, and the entries of ``by``."""
        order = tuple(item if isinstance(item, str) else next(iter(item)) for item in by)
        rows = schema.rows.value / schema.population.value
        return cls(*shared, tuple(keys), order, schema.population.value, rows)

    @property
    def undeclared(self) -> tuple[str, ...]:
        """The columns whose codes it reads though nobody declared them."""
        return tuple(column.name for column in self.keys)

    @property
    def most(self) -> int:
        """How many keys are listed at most; of more, those with the largest noisy counts."""
        return prod(_most(column) for column in self.keys) * self.size

    @property
    def numbers(self) -> int:
        """How many noisy numbers its answers hold at most."""
        return self.most

    def events(self) -> tuple[tuple[Event, float], ...]:
        """Counts of keys; a plan decides on the delta of their threshold."""
        once = self.once and self.rows_per_unit > 1
        return ((KeyCounts(self.name, self.rows_per_unit, once, _WIDEST, UNDECIDED), 1.0),)

    def sizes(self) -> dict[str, list[int]]:
        """Counts, and the texts of each column: at most so many."""
        return {self.name: [self.most] * (1 + len(self.order))}

    def fits(self, answers: Numbers) -> bool:
        """Whether keys are such as may be listed, each once, in the order of their texts."""
        parts = answers[self.name]
        count = len(parts[0]) if parts else 0
        if len(parts) != 1 + len(self.order) or any(len(part) != count for part in parts):
            return False
        if count == 0:
            return True
        texts = [part.tolist() for part in parts[1:]]
        listed = list(zip(*texts, strict=True))
        return (
            parts[0].dtype.kind == "i"
            and all(part.dtype.kind == "U" for part in parts[1:])
            and count <= self.most
            and all(one < next_ for one, next_ in zip(listed, listed[1:], strict=False))
            and all(
                self._may_be(name, text)
                for name, column in zip(self.order, texts, strict=True)
                for text in set(column)
            )
        )

    def _may_be(self, name: str, text: str) -> bool:
        for column in self.keys:
            if column.name == name:
                assert column.codes is not None
                return column.codes.candidate(text) == text
        return any(axis.column == name and text in axis.labels for axis in self.axes)

    def answer(self, rows: Rows, events: Events, entropy: Entropy) -> dict[str, list[Ints]]:
        """Count the keys of rows, and list those that reach the threshold."""
        event, read = events[self.name], rows.undeclared
        assert isinstance(event, KeyCounts) and read is not None
        cells = self.cells(Rows(read.units, read.codes))
        places = [read.columns.index(name) for name in self.undeclared]
        whole = np.column_stack([cells, read.numbers[:, places]])
        known = (cells != NOWHERE) & (whole[:, 1:] != NONE).all(axis=1)
        keys, key_of = np.unique(whole[known], axis=0, return_inverse=True)
        added = Occurrences(read.units[known], key_of.ravel().astype(np.int64))
        listed = key_counts(added, event, entropy)
        texts = self._texts(keys[listed.codes], [read.texts[place] for place in places])
        best = np.lexsort([*texts[::-1], -listed.counts])[: self.most]
        order = best[np.lexsort([text[best] for text in texts[::-1]])]
        found: list[Any] = [listed.counts[order], *[text[order] for text in texts]]
        return {self.name: found}

    def _texts(self, keys: Ints, texts: Sequence[Sequence[str]]) -> list[npt.NDArray[np.str_]]:
        """Return what each column of ``by`` has in keys ``[keys, 1 + undeclared]``."""
        shape = np.unravel_index(keys[:, 0], self.shape) if self.axes else ()
        found = {
            axis.column: np.array(axis.labels, dtype=np.str_)[place]
            for axis, place in zip(self.axes, shape, strict=True)
        }
        for number, (column, names) in enumerate(zip(self.keys, texts, strict=True), 1):
            found[column.name] = np.array([names[key] for key in keys[:, number]], dtype=np.str_)
        return [found[name] for name in self.order]

    def table(self, answers: Numbers, events: Events, z: float) -> pd.DataFrame:
        """List the keys, the largest noisy count first."""
        event = events[self.name]
        assert isinstance(event, KeyCounts)
        counts, *texts = answers[self.name]
        if len(counts) and int(counts.min()) < event.threshold:
            raise ValueError("a key below the threshold is listed")
        lower, upper = given_listed(counts.astype(np.int64), event.threshold, event.sigma, z)
        found = pd.DataFrame(
            {name: part.astype(object) for name, part in zip(self.order, texts, strict=True)}
        )
        found["count"], found["lower"], found["upper"] = counts.astype(np.int64), lower, upper
        keys = ["count", *self.order]
        rising = [False, *[True] * len(self.order)]
        return found.sort_values(keys, ascending=rising, kind="stable").reset_index(drop=True)

    def expected(self, events: Events, z: float) -> str:
        """Say which keys are listed and how many missed, false ones among them, from public facts.

        Assumed of the last figure: so many keys occur as ``expected`` declares for the columns,
        times the declared cells, the i-th commonest in a share of the rows proportional to 1 / i.
        """
        event = events[self.name]
        assert isinstance(event, KeyCounts)
        outlook = Outlook(event)
        keys = prod(_expected(column) for column in self.keys) * self.size
        most, half = outlook.units_needed(0.95), outlook.units_needed(0.5)
        outcome = outlook.expected(keys, self.population, self.rows)
        return (
            f"keys of {half:,} {self.counted} are listed with a chance of 50 %, of {most:,} with "
            f"95 %, each to within {figure(z * event.sigma)} or so {sure(z)}; false keys: 0; a key "
            f"of one patient alone is listed with a chance of at most {figure(event.delta)}; of "
            f"{keys:,} keys about {outcome.found:,.0f} are listed, {outcome.missed:,.0f} missed, "
            "if the i-th commonest has a share of 1/i"
        )


def undeclared_in(
    schema: Schema, entry: Mapping[str, Any]
) -> tuple[tuple[Column, ...], dict[str, Any]]:
    """Return the columns in ``by`` whose codes nobody declared, and the entry without them."""
    by = entry.get("by", [])
    named = [item for item in by if isinstance(item, str)] if isinstance(by, list) else []
    keys = tuple(one for one in schema.modelled if one.discovers and one.name in named)
    others = [item for item in by if item not in [one.name for one in keys]] if keys else by
    return keys, {**entry, "by": others}


def given_listed(counts: Ints, threshold: int, sigma: float, z: float) -> tuple[Ints, Ints]:
    """Return intervals of true counts, given that the noisy ones reach the threshold.

    Args:
        counts: noisy, ``[keys]``, at least the threshold.
        threshold: least noisy count that is listed.
        sigma: scale of the noise.
        z: how many standard deviations an interval reaches to each side, far above the threshold.

    Example:
        >>> low, high = given_listed(np.array([30, 60]), 28, 5.0, 1.96)
        >>> low.tolist(), high.tolist()
        ([1, 50], [39, 70])
    """
    from scipy.special import log_ndtr, ndtr

    half = float(ndtr(-z))

    def beyond(least: Floats, true: Ints) -> Floats:
        """P(X >= least | X >= threshold): it grows with the true count."""
        top = log_ndtr(-(least - 0.5 - true) / sigma)
        return np.asarray(np.exp(top - log_ndtr(-(threshold - 0.5 - true) / sigma)))

    noisy = np.asarray(counts, dtype=np.float64)
    most = (noisy + 12 * sigma + 2).astype(np.int64)
    lower = _first(lambda true: beyond(noisy, true) > half, most)
    upper = _first(lambda true: beyond(noisy + 1, true) >= 1 - half, most) - 1
    return lower, np.maximum(upper, lower)


def _first(holds: Any, most: Ints) -> Ints:
    """Return the least whole number from 1 to ``most`` for which it holds, by bisection."""
    low, high = np.zeros_like(most), most.copy()
    while (high - low > 1).any():
        middle = (low + high) // 2
        found = holds(middle) & (middle > 0)
        high, low = np.where(found, middle, high), np.where(found, low, middle)
    return high


def _most(column: Column) -> int:
    assert column.discovery is not None
    return column.discovery.most


def _expected(column: Column) -> int:
    assert column.discovery is not None
    return column.discovery.expected
