"""The levels of a group: categories, or bands of a number, by which figures are told apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Codec
from dpsynth.eval.core.features import Floats, numbers
from dpsynth.eval.core.paired import PairedTables
from dpsynth.eval.core.tables import TableView
from dpsynth.schema import Column, in_units

Ints = npt.NDArray[np.int64]

BANDS = 5  # of equal width between the declared bounds


@dataclass(frozen=True, eq=False)
class Levels:
    """How a column divides rows: made from the schema alone.

    Attributes:
        column: the group.
        place: where its codes stand.
        names: what each level is called: a declared label, or a band such as ``18 to 34``.
        cuts: where bands end, in the unit of `features.numbers`; empty for categories.
    """

    column: Column
    place: int
    names: tuple[str, ...]
    cuts: Floats

    @classmethod
    def of(cls, column: Column, codec: Codec) -> Levels:
        """Take categories, or cut what lies between the declared bounds into equal bands.

        Bands of whole numbers and times are named by their first and last value, of others by
        where they begin and what they end before.
        """
        place = codec.names.index(column.name)
        if column.is_categorical:
            labels = tuple(str(column.labels.get(level, level)) for level in column.levels)
            return cls(column, place, labels, np.zeros(0))
        assert column.minimum is not None and column.maximum is not None  # or no codec
        ends = column.minimum, column.maximum
        low, high = (float(in_units(end, column.kind)) for end in ends)
        if column.kind.has_decimals:
            edges = np.linspace(low, high, BANDS + 1)
            texts = [f"{edge:.6g}" for edge in edges]
            names = [f"{a} to under {b}" for a, b in pairwise(texts[:-1])]
            return cls(column, place, (*names, f"{texts[-2]} to {texts[-1]}"), edges[1:-1])
        shares = np.arange(BANDS + 1) / BANDS
        edges = np.unique(low + np.ceil(shares * (high - low + 1)))
        first, last = _shown(edges[:-1], column), _shown(edges[1:] - 1, column)
        names = [a if a == b else f"{a} to {b}" for a, b in zip(first, last, strict=True)]
        return cls(column, place, tuple(names), edges[1:-1])

    @property
    def title(self) -> str:
        """The group's name for people."""
        return self.column.title or self.column.name

    def of_rows(self, view: TableView) -> Ints:
        """Return the level of each row, -1 where the column is missing."""
        if self.column.is_categorical:
            codes = view.codes[:, self.place].astype(np.int64)
            return np.where(codes < len(self.names), codes, -1)
        values = numbers(view, self.column)
        return np.where(np.isnan(values), -1, np.searchsorted(self.cuts, values, side="right"))


def levels_of(codec: Codec, *roles: str) -> list[Levels]:
    """Return the levels of every modelled column that has one of the roles."""
    columns = [column for column in codec.schema.modelled if column.roles & set(roles)]
    return [Levels.of(column, codec) for column in columns]


def _shown(edges: Floats, column: Column) -> list[str]:
    """Write whole numbers and days as people read them."""
    kind = column.kind
    if kind.is_time and kind.write is not None:
        return [kind.write(edge)[:10] for edge in edges.tolist()]
    if kind.is_spelled:
        return [kind.text(edge) for edge in edges.tolist()]
    return [f"{edge:.0f}" for edge in edges]


OTHERS, MISSING = "all others", "missing"


def bin_label(sides: PairedTables, place: int, number: int) -> str:
    """Name a bin of a column: a category, or the span of the source's values."""
    column = sides.tables.schema.modelled[place]
    codes = np.flatnonzero(sides.bins.of_code[place] == number)
    if column.is_categorical:
        names = list(_names(column, codes))
        return names[0] if len(names) == 1 else OTHERS
    values = numbers(sides.source.view, column)[sides.source.bins[place] == number]
    values = values[~np.isnan(values)]
    if not len(values):
        return MISSING
    write = column.kind.write or "{:.6g}".format
    ends = [write(end) for end in (values.min(), values.max())]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _names(column: Column, codes: Ints) -> Iterator[str]:
    for code in codes:
        if code >= len(column.levels):
            yield MISSING
            continue
        level = column.levels[code]
        yield str(column.labels.get(level, level))
