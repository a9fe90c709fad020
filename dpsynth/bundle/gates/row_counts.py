"""How many rows synthetic patients have in a table, and how many days lie between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.bundle.gates.histogram_bins import Bin

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_BARS = 30  # of rows per patient
GAPS = (0, 1, 8, 31, 62, 92, 183, 275, 366, 549, 732, 1462)  # days, where their ranges begin


@dataclass(frozen=True)
class RowCounts:
    """How many rows patients have in a table, or how many days lie between their rows.

    Attributes:
        table: its name.
        days: whether it counts the days from each row to the patient's next one; else patients by
            their number of rows.
        whole: how many patients or steps there are.
        bins: how many of them each range has.
    """

    table: str
    days: bool
    whole: int
    bins: tuple[Bin, ...]


def row_counts(
    table: str, owners: Ints, days: Floats | None, kinds: Ints | None, patients: int
) -> Iterator[RowCounts]:
    """Count patients by their number of rows, and steps from row to row by their days.

    Args:
        table: its name.
        owners: the place of each row's patient; rows are by patient, and then in order.
        days: of each row; None without a time.
        kinds: the test of each row, within which steps are counted; None without.
        patients: how many there are.
    """
    counts = np.bincount(owners, minlength=patients)
    most = int(counts.max(initial=0))
    width = -(-(most + 1) // MAX_BARS)
    starts = range(0, most + 1, width)
    labels = [_range(first, min(first + width - 1, most)) for first in starts]
    yield RowCounts(table, False, patients, _bins(counts // width, labels))
    if days is None:
        return
    own = np.zeros(len(owners), dtype=np.int64) if kinds is None else kinds
    order = np.lexsort((own, owners))  # stable: rows of a test stay in order of time
    alike = (np.diff(owners[order]) == 0) & (np.diff(own[order]) == 0)
    gaps = np.diff(days[order])[alike]
    labels = [_range(low, high - 1) for low, high in zip(GAPS, GAPS[1:], strict=False)]
    labels.append(f"{GAPS[-1]:,} or more")
    if len(gaps):
        parts = np.searchsorted(GAPS, gaps, side="right") - 1
        yield RowCounts(table, True, len(gaps), _bins(parts, labels))


def _range(first: int, last: int) -> str:
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def _bins(places: Ints, labels: Sequence[str]) -> tuple[Bin, ...]:
    counts = np.bincount(places, minlength=len(labels)).tolist()
    return tuple(Bin(label, count) for label, count in zip(labels, counts, strict=True))
