"""Each column on its own: its distribution in every table, their distance, and undeclared levels.

Undeclared levels are `other`, and missing cells in a full column, where no real row has them. A
declared level without a row in the source is left alone: it may be real and rare.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.eval.core import (
    JackknifeEstimate,
    Measure,
    PairedTable,
    PairedTables,
    PartResult,
    Tables,
    TableView,
    Variants,
    absolute,
    numbers,
    plain,
)
from dpsynth.eval.fidelity.relations import half_l1
from dpsynth.schema import Column, Lattice, unit_of
from dpsynth.schema.column import OTHER

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_BINS = 30
TAIL = 0.001  # share of all values at each side that may share an outer bin
CLOCK_WIDTHS = (60, 300, 600, 900, 1_800, 3_600, 7_200, 10_800)  # seconds
OTHERS = "all others"
TVD1 = (
    "Mean over columns of the total variation distance between the two tables' distributions: half "
    "the sum of absolute differences of shares, 0 if equal, 1 if nothing is in common. Wide "
    "numeric columns are cut at the source's deciles; missing is a value."
)
OF_COLUMN = "Total variation distance of this column alone; missing is a value."


def margins(sides: PairedTables) -> PartResult:
    """Compare columns one by one; intervals by jackknife over units."""
    tables = sides.tables
    figures = [
        JackknifeEstimate.of(half_l1, sides.joint([j])) for j in range(len(tables.codec.names))
    ]
    known = [figure for figure in figures if figure is not None]
    assert len(known) == len(figures)  # every table has rows
    estimate = JackknifeEstimate.mean(known).estimate(sides.n)
    measures = [Measure("tvd1", "Distance of single columns", estimate, 0.0, TVD1)]
    columns = []
    for j, (column, figure) in enumerate(zip(tables.schema.modelled, known, strict=True)):
        distance = figure.estimate(sides.n)
        title = f"Distance of column {column.name}"
        measures.append(Measure(f"tvd1:{column.name}", title, distance, 0.0, OF_COLUMN))
        columns.append({**distribution(tables, j), "tvd": distance.to_dict()})
    return PartResult(tuple(measures), {"columns": columns})


def distribution(tables: Tables, place: int) -> dict[str, Any]:
    """Return the shares of at most 30 bins of a modelled column, by table, in JSON types.

    Shares are of the rows that have a value, None where none has one. A numeric column has bins of
    equal width that reach over all but a thousandth of the values at each side, and an outer bin
    for the others; of more than 30 categories, the 29 commonest of the source are shown.
    """
    column = tables.schema.modelled[place]
    lattice = tables.codec.lattice(column.name)
    views = {"source": tables.source, "synthetic": tables.synthetic, "holdout": tables.holdout}
    missing = {k: None if v is None else gaps(v, tables, place) for k, v in views.items()}
    cells = {
        name: None if view is None or gap is None else _cells(view, column, lattice, place)[~gap]
        for (name, view), gap in zip(views.items(), missing.values(), strict=True)
    }
    known = [part for part in cells.values() if part is not None]
    if lattice is None:
        assert cells["source"] is not None
        order, labels = _categories(cells["source"], column)
        binned = [None if part is None else order[part] for part in cells.values()]
    else:
        edges, labels = spans(np.concatenate(known), lattice, column)
        binned = [
            None if part is None else np.searchsorted(edges, part, side="right")
            for part in cells.values()
        ]
    shares = {
        name: None if part is None else _shares(part, len(labels))
        for name, part in zip(views, binned, strict=True)
    }
    return {
        "name": column.name,
        "title": column.title,
        "type": column.type,
        "unit": unit_of(column) or None,
        "kind": "category" if lattice is None else "numeric",
        "bins": labels,
        **shares,
        "missing": {k: None if gap is None else plain(gap.mean()) for k, gap in missing.items()},
    }


def _cells(view: TableView, column: Column, lattice: Lattice | None, place: int) -> Ints:
    """Return categories by code, numbers by position on their lattice (of what is missing, 0)."""
    if lattice is None:
        return view.codes[:, place].astype(np.int64)
    return lattice.positions(np.nan_to_num(numbers(view, column)))


def _shares(bins: Ints, count: int) -> list[float] | None:
    if not len(bins):
        return None
    shares: list[float] = plain(np.bincount(bins, minlength=count) / len(bins))
    return shares


def _categories(source: Ints, column: Column) -> tuple[Ints, list[str]]:
    """Return the bin of each category, and the bins' labels: declared order, or the commonest."""
    labels = [str(column.labels.get(level, level)) for level in column.levels]
    count = len(labels)
    if count <= MAX_BINS:
        return np.arange(count), labels
    commonest = np.argsort(-np.bincount(source, minlength=count), kind="stable")[: MAX_BINS - 1]
    order = np.full(count, MAX_BINS - 1)
    order[commonest] = np.arange(MAX_BINS - 1)
    return order, [*(labels[k] for k in commonest), OTHERS]


def spans(positions: Ints, lattice: Lattice, column: Column) -> tuple[Ints, list[str]]:
    """Cut positions into bins of a round width; return the inner edges and the bins' labels."""
    if not len(positions):
        return np.zeros(0, dtype=np.int64), [_text(lattice, column, 0, lattice.points - 1)]
    ends = np.quantile(positions, (TAIL, 1 - TAIL), method="inverted_cdf")
    low, high = (int(end) for end in ends)
    first, last = int(positions.min()), int(positions.max())
    clock = column.kind.is_elapsed
    bins = MAX_BINS - int(first < low) - int(last > high)
    width, start = _width(low, high, lattice, bins, clock=clock)
    starts = list(range(start, high + 1, width))
    end = starts[-1] + width
    below, above = first < start, last >= end
    cuts = [*starts[0 if below else 1 :], *([end] if above else [])]
    begins = [*([0] if below else []), *starts, *([end] if above else [])]
    lasts = [*(cut - 1 for cut in cuts), min(end, lattice.points) - 1]
    labels = [
        _text(lattice, column, max(begin, 0), final)
        for begin, final in zip(begins, lasts, strict=True)
    ]
    if below:
        labels[0] = f"up to {_point(lattice, column, cuts[0] - 1)}"
    if above:
        labels[-1] = f"from {_point(lattice, column, end)}"
    return np.array(cuts, dtype=np.int64), labels


def _width(low: int, high: int, lattice: Lattice, maximum: int, *, clock: bool) -> tuple[int, int]:
    """Return the least round width, in positions, of at most so many bins, and where they start."""
    for width in _widths(lattice, clock=clock):
        ticks = width * lattice.stride
        start = (lattice.first + low * lattice.stride) // ticks * ticks
        place = -(-(start - lattice.first) // lattice.stride)
        if (high - place) // width + 1 <= maximum:
            return width, place
    raise AssertionError("widths grow without end")


def _widths(lattice: Lattice, *, clock: bool) -> Iterator[int]:
    """Yield round widths, in positions: parts of an hour for times of day, then 1, 2, 5, 10, ..."""
    if clock:
        yield from (part // lattice.stride for part in CLOCK_WIDTHS if part % lattice.stride == 0)
    for power in count():
        yield from (factor * 10**power for factor in (1, 2, 5))


def _text(lattice: Lattice, column: Column, first: int, last: int) -> str:
    """Name the lattice points from one position to another."""
    ends = [_point(lattice, column, position) for position in sorted({first, last})]
    return " to ".join(ends)


def _point(lattice: Lattice, column: Column, position: int) -> str:
    tick = lattice.first + position * lattice.stride
    kind = column.kind
    if kind.is_time and kind.write is not None:
        return kind.write(tick).replace("T", " ")
    if kind.is_spelled:
        return kind.text(tick)
    return f"{tick / 10**lattice.decimals:.{lattice.decimals}f}"


TITLE = "Values beyond the source's range"
MEAN = (
    "Mean over numeric columns of the share of values below the lowest or above the highest "
    "populated cell of the source. A high value means that noise in empty cells became rows."
)
WORST = (
    "The same share in the column where it is largest. A high value means that this column has "
    "values that no real row has, such as stays of 60 days where nobody stays 14."
)


def outside(sides: PairedTables) -> PartResult:
    """Measure the share of present values beyond the source's outermost populated cells.

    A cell is what a fit counts: one value, or a span of values in a column of many. Intervals are
    by jackknife over the units of the synthetic table; the source's range is held fixed.
    """
    codec = sides.tables.codec
    figures: list[JackknifeEstimate] = []
    details: list[dict[str, Any]] = []
    for place, (column, cells) in enumerate(
        zip(sides.tables.schema.modelled, codec.cells, strict=True)
    ):
        codes = sides.source.view.codes[:, place]
        populated = codes[codes < cells]
        if not len(populated):  # categories, or a column without a value
            continue
        low, high = int(populated.min()), int(populated.max())
        ends = partial(_beyond, place=place, cells=cells)
        shares = sides.each(partial(ends, low=low, high=high))
        figure = JackknifeEstimate.of(absolute, shares)
        if figure is None:  # the synthetic column has no value
            continue
        figures.append(figure)
        parts = {"below": (low, cells), "above": (0, high)}
        entry: dict[str, Any] = {"column": column.name, "title": column.title or column.name}
        for part, (first, last) in parts.items():
            entry[part] = plain(ends(sides.synthetic, low=first, high=last)[0])
        entry["synthetic"] = plain(shares.synthetic[0])
        entry["holdout"] = None if shares.holdout is None else plain(shares.holdout[0])
        details.append(entry)
    if not figures:
        note = "no numeric column has values, so none can be beyond the source's range"
        return PartResult((), {"outside": details}, (note,))
    mean = JackknifeEstimate.mean(figures).estimate(sides.n)
    worst = max(figures, key=lambda figure: figure.value).estimate(sides.n)
    measures = (
        Measure("outside", TITLE, mean, 0.0, MEAN),
        Measure("outside_worst", f"{TITLE}, worst column", worst, 0.0, WORST),
    )
    return PartResult(measures, {"outside": details})


def _beyond(side: PairedTable, *, place: int, cells: int, low: int, high: int) -> Floats:
    codes = side.view.codes[:, place].astype(np.int64)
    present = codes < cells
    return side.shares(present & ((codes < low) | (codes > high)), present)


Bools = npt.NDArray[np.bool_]

MAX_PATTERNS = 12
UNSEEN = (
    "Share of rows whose pattern of missing cells no real row has. A high value beside a holdout's "
    "means that columns which are missing together are taken apart."
)
MISSING = (
    "Mean over columns that may be empty of the absolute difference of the share of missing cells. "
    "A high value means that values are missing more or less often than in the source."
)
PATTERNS = (
    "Total variation distance between the tables' distributions of which columns are missing "
    "together in a row. A high value beside good shares means that gaps are spread as if by chance."
)


def missingness(sides: PairedTables) -> PartResult:
    """Compare missing shares and joint patterns; intervals by jackknife over units."""
    tables = sides.tables
    places = _nullable(tables)
    if not places:
        return PartResult((), {"missing_patterns": []}, ("no column may be missing",))
    figures = [JackknifeEstimate.of(absolute, _missing_shares(sides, place)) for place in places]
    mean = JackknifeEstimate.mean([figure for figure in figures if figure is not None])
    keys, rows = _patterns([side.view for side in sides.every], tables, places)
    joint = JackknifeEstimate.of(half_l1, sides.histograms(keys, len(rows)))
    assert joint is not None  # every row has a pattern
    known = np.bincount(keys[0], minlength=len(rows)) > 0
    apart = [side.shares(~known[part]) for side, part in zip(sides.every, keys, strict=True)]
    unseen = JackknifeEstimate.of(absolute, sides.variants(apart))
    assert unseen is not None
    title = "Rows with a pattern of missing cells that no real row has"
    measures = (
        Measure("missing", "Difference of missing shares", mean.estimate(sides.n), 0.0, MISSING),
        Measure("patterns", "Distance of patterns", joint.estimate(sides.n), 0.0, PATTERNS),
        Measure("patterns_unseen", title, unseen.estimate(sides.n), 0.0, UNSEEN),
    )
    return PartResult(measures, {"missing_patterns": _commonest(tables, places)})


def gaps(view: TableView, tables: Tables, place: int) -> Bools:
    """Tell which cells of the modelled column at a place are missing."""
    if not tables.schema.modelled[place].nullable:
        return np.zeros(view.rows, dtype=bool)
    return np.asarray(view.codes[:, place] == tables.codec.sizes[place] - 1)


def _missing_shares(sides: PairedTables, place: int) -> Variants:
    """Return the share of rows without a value in a column."""
    return sides.each(lambda side: side.shares(gaps(side.view, sides.tables, place)))


def _nullable(tables: Tables) -> list[int]:
    return [j for j, column in enumerate(tables.schema.modelled) if column.nullable]


def _patterns(views: list[TableView], tables: Tables, places: list[int]) -> tuple[list[Ints], Ints]:
    """Number the patterns that occur; return that of each row, and a row of each pattern."""
    keys = np.zeros(sum(view.rows for view in views), dtype=np.int64)
    for j in places:
        keys = keys * 2 + np.concatenate([gaps(view, tables, j) for view in views])
        keys = pd.factorize(keys)[0].astype(np.int64)
    _, rows = np.unique(keys, return_index=True)
    ends = np.cumsum([view.rows for view in views])
    return np.split(keys, ends[:-1]), rows


def _commonest(tables: Tables, places: list[int]) -> list[dict[str, Any]]:
    """List the commonest patterns of the source with their shares of all rows."""
    views = [tables.source, tables.synthetic]
    views += [] if tables.holdout is None else [tables.holdout]
    keys, rows = _patterns(views, tables, places)
    missing = np.stack(
        [np.concatenate([gaps(view, tables, j) for view in views])[rows] for j in places], axis=1
    )
    shares = [np.bincount(key, minlength=len(rows)) / len(key) for key in keys]
    order = np.argsort(-shares[0], kind="stable")[:MAX_PATTERNS]
    names = [tables.codec.names[j] for j in places]
    return [
        {
            "columns": [name for name, gap in zip(names, missing[k], strict=True) if gap],
            "source": plain(shares[0][k]),
            "synthetic": plain(shares[1][k]),
            "holdout": plain(shares[2][k]) if len(shares) > 2 else None,
        }
        for k in order
    ]


UNDECLARED_TITLE = "Cells with an undeclared level"
UNDECLARED = (
    "Mean over columns of the share of cells that are `other` where every real row has a declared "
    "level, or missing where no real cell is. A value above 0 means levels made from noise alone."
)


def undeclared_levels(sides: PairedTables) -> PartResult:
    """Measure the share of cells with an undeclared level that the source does not have.

    Intervals are by jackknife over the units of the synthetic table.
    """
    figures, details = list[JackknifeEstimate](), list[dict[str, Any]]()
    for place, column in enumerate(sides.tables.schema.modelled):
        codes = _undeclared(column, sides.tables.codec.sizes[place])
        source = sides.source.view.codes[:, place]
        absent = [code for code in codes if not (source == code).any()]
        shares = sides.each(partial(_undeclared_shares, place=place, codes=absent))
        figure = JackknifeEstimate.of(absolute, shares)
        assert figure is not None  # of rows that exist
        figures.append(figure)
        if figure.value > 0:
            holdout = None if shares.holdout is None else plain(shares.holdout[0])
            entry = {"column": column.name, "synthetic": plain(figure.value), "holdout": holdout}
            details.append(entry)
    details.sort(key=lambda entry: -entry["synthetic"])
    mean = JackknifeEstimate.mean(figures).estimate(sides.n)
    measure = Measure("levels", UNDECLARED_TITLE, mean, 0.0, UNDECLARED)
    return PartResult((measure,), {"undeclared_levels": details})


def _undeclared_shares(side: PairedTable, *, place: int, codes: list[int]) -> Floats:
    """Return the share of rows with one of some codes of a column ``[variants]``."""
    return side.shares(np.isin(side.view.codes[:, place], codes))


def _undeclared(column: Column, size: int) -> list[int]:
    """Return the codes of `other` and of missing cells, if the column can have them."""
    codes = [size - 1] if column.nullable else []
    if column.is_categorical and column.has_other:
        codes.append(column.levels.index(OTHER))
    return codes
