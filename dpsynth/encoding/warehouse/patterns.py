"""Units that are alike, counted where they lie: the rows of one of them, and how many there are.

Statistics of units need to know which rows belong together, but not to whom. Two units with the
same coded rows are one pattern, so what comes over the connection are patterns and numbers, of the
asked columns alone, and no finer than they are asked. They are exact and private, as counts are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth._util.short_repr import short_repr
from dpsynth.errors import InputError

Ints = npt.NDArray[np.int64]
Classes = Mapping[int, npt.NDArray[np.integer]]
"""By the place of each column that is read: of each of its codes, the class that is told apart."""


@dataclass(frozen=True, eq=False, repr=False)
class UnitPatterns:
    """Rows of patterns of units.

    Attributes:
        patterns: the pattern of each row, ``[rows]``, numbered from 0.
        codes: of the columns that were asked, ``[rows, columns]``, in the order of their places.
        like: how many units the pattern of the row stands for, ``[rows]``.
    """

    patterns: Ints
    codes: Ints
    like: Ints

    def __repr__(self) -> str:
        """Show no row."""
        return short_repr(self, "patterns of units")


def first_of_class(classes: npt.NDArray[np.integer]) -> Ints:
    """Return the first code of each code's class, ``[codes]``.

    >>> first_of_class(np.array([5, 5, 2, 5])).tolist()
    [0, 0, 2, 0]
    """
    _, first, place = np.unique(classes, return_index=True, return_inverse=True)
    return np.asarray(first[place], dtype=np.int64)


def parsed_patterns(
    answer: Sequence[Sequence[object]], columns: int, rows_per_unit: int
) -> UnitPatterns:
    """Read patterns as a warehouse writes them: ``3,1;4,0`` is two rows of two columns.

    Args:
        answer: each pattern, and its number.
        columns: how many codes a row has.
        rows_per_unit: how many rows a unit has at most.

    Raises:
        InputError: a pattern has more rows.

    >>> found = parsed_patterns([("3,1;4,0", 7), ("2,2", 1)], 2, 2)
    >>> found.patterns.tolist(), found.codes.tolist(), found.like.tolist()
    ([0, 0, 1], [[3, 1], [4, 0], [2, 2]], [7, 7, 1])
    """
    rows = [str(pattern).split(";") for pattern, _ in answer]
    lengths = np.array([len(of_unit) for of_unit in rows], dtype=np.int64)
    if lengths.max(initial=0) > rows_per_unit:
        raise InputError("a unit has more rows than its cap; read the table again")
    text = ",".join(",".join(of_unit) for of_unit in rows) if columns else ""
    codes = np.array(text.split(",") if text else [], dtype=np.int64)
    return UnitPatterns(
        np.repeat(np.arange(len(rows), dtype=np.int64), lengths),
        codes.reshape(int(lengths.sum()), columns),
        np.repeat(np.array([number for _, number in answer], dtype=np.int64), lengths),
    )
