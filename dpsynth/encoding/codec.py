"""The codec: bounded, declared columns to integer codes and back; missing is a code of its own.

It is built from the schema alone and never fitted, so that widths, sizes and ranges are the same
whatever a table holds. A numeric column of m cells has codes 0 .. m - 1; a categorical one its
categories in declared order, then ``other`` where that can occur; a nullable column ends with the
code of missing. Every cell has a code: values outside the bounds are clipped, bad cells and unknown
categories follow the column's ``on_bad`` and ``on_unknown``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import counted
from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.code_sets import SetCoder
from dpsynth.encoding.code_values import code_parents
from dpsynth.encoding.column_codecs import (
    REFUSED,
    Coder,
    NumericCoder,
    StatusCoder,
    Units,
    agreed,
    coder_of,
    status_coders,
)
from dpsynth.encoding.conformity import departures
from dpsynth.encoding.grain import GrainedCoder, Raised, grains_of
from dpsynth.encoding.relations import (
    OwnRows,
    computed,
    emptied,
    own_rows,
    published,
    related,
    strained,
)
from dpsynth.errors import InputError, Problem, RefusedCellError, TableError
from dpsynth.schema import Column, Lattice, Schema, coded_schema, in_order, lattice_of
from dpsynth.tables import units_beside

Codes = npt.NDArray[np.uint16]
Follow = Callable[[NumericCoder, npt.NDArray[Any]], NumericCoder]


class Codec:
    """Encodes and decodes the modelled columns of a schema.

    Attributes:
        published: the schema of the table.
        schema: the same, with columns as they are coded (see `dpsynth.schema.coded`): a gap in
            place of the date of an interval, a column for each place of several codes, no derived
            columns.
        names: the coded columns, in the schema's order.
        sizes: how many codes each of them has.
        cells: how many of those, the first ones, are ordered; 0 for a categorical column.
        points: how many lattice points each of the ordered codes stands for.
        parents: the group of each code of a column of listed codes, counted from 0; empty for any
            other column.
        undeclared: codes that stand for no declared value: an added ``other``, and missing.
        nullable: whether a column's last code is that of missing.
        grains: the round units of a number and which points have which; None for other columns.
    """

    def __init__(self, schema: Schema) -> None:
        """Derive the codes from public facts.

        Raises:
            SchemaError: a column's bounds and step do not make a lattice.
        """
        self.published = schema
        self.schema = coded_schema(schema)
        self._columns = self.schema.modelled
        self.names = tuple(column.name for column in self._columns)
        self._coders: tuple[Coder, ...] = tuple(
            coder_of(column, schema.dialect.decimal) for column in self.schema.modelled
        )
        self._statuses = status_coders(schema, dict(zip(self.names, self._coders, strict=True)))
        self.sizes = tuple(coder.size for coder in self._coders)
        self.points = tuple(
            tuple(coder.grid.points.tolist()) if isinstance(coder, NumericCoder) else ()
            for coder in self._coders
        )
        self.cells = tuple(len(points) for points in self.points)
        self.parents = tuple(map(code_parents, self.schema.modelled))
        self.nullable = tuple(column.nullable for column in self._columns)
        self.undeclared = tuple(
            tuple(range(coder.size - column.nullable - column.has_other, coder.size))
            for column, coder in zip(self._columns, self._coders, strict=True)
        )
        gaps = {column.name for column in schema.modelled if column.interval is not None}
        floors = {column.name for column in schema.modelled if column.floor is not None}
        self.grains = tuple(
            grains_of(column, coder, gap=column.name in gaps | floors)
            for column, coder in zip(self.schema.modelled, self._coders, strict=True)
        )
        self._heaps: dict[str, npt.NDArray[np.float64]] = {}

    @cached_property
    def raised(self) -> tuple[Raised | None, ...]:
        """How codes say the grain of a column that is a gap above others; None for the rest."""
        columns = [column for column in self.published.modelled if column.floor is not None]
        found = {column.name: Raised.of(column, self.published) for column in columns}
        return tuple(map(found.get, self.names))

    @property
    def coders(self) -> tuple[Coder, ...]:
        """What codes each column."""
        return self._coders

    @property
    def statuses(self) -> Mapping[str, StatusCoder]:
        """What codes each status column from the cells of its column, by its name."""
        return self._statuses

    def __repr__(self) -> str:
        """Name the schema."""
        return short_repr(self, f"schema {self.published.name}", counted(len(self.names), "column"))

    def following_grains(
        self, weights: npt.NDArray[np.floating] | None, follow: Follow = GrainedCoder.following
    ) -> Codec:
        """Return a codec that draws points by the grains that a fit has found.

        Args:
            weights: of the units of each column, ``[columns, units]``; None if none were found.
            follow: makes the coder of a column with grains, from its own coder and weights.
        """
        if weights is None:
            return self
        found = Codec(self.published)
        found._coders = tuple(
            coder
            if grains is None or not isinstance(coder, NumericCoder)
            else follow(coder, own[: len(grains.units)])
            for coder, grains, own in zip(self._coders, self.grains, weights, strict=True)
        )
        parts = zip(self.names, self.raised, weights, strict=True)
        found._heaps = {name: own[: one.units] for name, one, own in parts if one is not None}
        return found

    def lattice(self, name: str) -> Lattice | None:
        """Return the lattice of a numeric column, None for a categorical one.

        Raises:
            InputError: the column is not modelled.
        """
        if name not in self.names:
            raise InputError(f"schema {self.schema.name} models no column {name!r}")
        coder = self._coders[self.names.index(name)]
        return coder.lattice if isinstance(coder, NumericCoder) else None

    def encode(self, frame: pd.DataFrame) -> Codes:
        """Return the codes ``[rows, columns]`` of a frame of text or typed cells.

        Columns that the schema does not model are not looked at.

        Raises:
            TableError: a modelled column is not in the frame.
            RefusedCellError: a cell broke a column that opts in to ``refuse``; the message holds
                neither the cell nor how many there are.
        """
        self._check(frame)
        own = own_rows(frame, self.published)
        cells = related(frame, self.published, own)
        codes = np.empty((len(frame), len(self.names)), dtype=np.uint16)
        for place in range(len(self.names)):
            coder, column, units = self._part(frame, cells, place)
            codes[:, place] = _taken(self._left(coder.encode(column, units), place, own), column)
        return codes

    def accepted(self, frame: pd.DataFrame) -> tuple[Codes, npt.NDArray[np.bool_]]:
        """Return codes as `encode` does, and which rows hold no cell that its column refuses.

        Raises:
            TableError: a modelled column is not in the frame.
        """
        self._check(frame)
        own = own_rows(frame, self.published)
        cells = related(frame, self.published, own)
        codes = np.empty((len(frame), len(self.names)), dtype=np.uint16)
        accepted = np.ones(len(frame), dtype=bool)
        for place in range(len(self.names)):
            coder, column, units = self._part(frame, cells, place)
            encoded = self._left(coder.encode(column, units), place, own)
            accepted &= encoded != REFUSED
            codes[:, place] = np.where(encoded == REFUSED, 0, encoded)
        return codes, accepted

    def read(self, frame: pd.DataFrame) -> tuple[Codes, pd.DataFrame]:
        """Return codes as `encode` does, and the same cells bounded, in their declared types.

        Unlike ``decode`` of the codes, numbers keep the resolution of their lattice, and columns
        are those of ``self.schema``: of an interval the gap, in whole units.

        Raises:
            TableError, RefusedCellError: as `encode`.
        """
        self._check(frame)
        own = own_rows(frame, self.published)
        cells = related(frame, self.published, own)
        codes = np.empty((len(frame), len(self.names)), dtype=np.uint16)
        columns = {}
        for place, name in enumerate(self.names):
            coder, column, units = self._part(frame, cells, place)
            encoded, columns[name] = coder.read(column, units)
            codes[:, place] = _taken(self._left(encoded, place, own), column)
            if name in own.absent:
                columns[name] = emptied(columns[name], own.absent[name])
        return codes, pd.DataFrame(columns, index=pd.RangeIndex(len(frame)))

    def decode(
        self,
        codes: npt.NDArray[np.integer],
        rng: np.random.Generator,
        beside: Mapping[Any, pd.Series[Any]] | None = None,
    ) -> pd.DataFrame:
        """Return a frame of typed cells for codes ``[rows, columns]``.

        A numeric code becomes a lattice point drawn uniformly among its own; a cell and its status
        agree (see `agreed`). Types: integer and
        year are int64 (Int64 if nullable), number float64, boolean bool (boolean if nullable),
        string object (None where missing), date and datetime datetime64[s].

        Args:
            codes: of the coded columns.
            rng: draws each cell among those that its code stands for.
            beside: as of `published`.

        Raises:
            ValueError: the codes have another width, or one of them is no code of its column.
        """
        if codes.ndim != 2 or codes.shape[1] != len(self.names):
            raise ValueError(f"codes must be [rows, {len(self.names)}], not {codes.shape}")
        if (codes < 0).any() or (codes >= np.array(self.sizes)).any():
            raise ValueError("a code is not below the size of its column")
        columns = {
            name: coder.decode(codes[:, place], rng)
            for place, (name, coder) in enumerate(zip(self.names, self._coders, strict=True))
        }
        if self._statuses:
            columns = agreed(columns, self.schema)
        frame = pd.DataFrame(columns, index=pd.RangeIndex(len(codes)))
        return published(frame, self.published, rng, beside, self._heaps)

    def bounded(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the cells of a table as published, in their declared types, bounded one by one.

        Derived columns are computed. Unlike in `read`, the date of an interval is a date. Rules are
        about these cells.
        """
        decimal = self.published.dialect.decimal
        columns = {}
        for column in self.published.modelled:
            status = self._statuses.get(column.name)
            if status is not None and column.name not in frame.columns:  # of a private table
                source = status.column
                columns[column.name] = status.read(frame[source.name], units_beside(frame, source))[
                    1
                ]
            elif column.several is not None:
                columns[column.name] = SetCoder(column, decimal).bounded(frame[column.name])
            elif column.is_read:
                units = units_beside(frame, column)
                columns[column.name] = coder_of(column, decimal).read(frame[column.name], units)[1]
        by_name = {column.name: column for column in self.published.modelled}
        for name in in_order(self.published.modelled):
            if by_name[name].is_computed:
                columns[name] = computed(columns, by_name[name], by_name)
        return pd.DataFrame(columns, index=pd.RangeIndex(len(frame)))

    def _part(
        self, frame: pd.DataFrame, cells: Mapping[Any, pd.Series[Any]], place: int
    ) -> tuple[Coder | StatusCoder, pd.Series[Any], Units]:
        """Return what codes a column of a frame, the cells to code, and their units."""
        name, coder = self.names[place], self._coders[place]
        if name in self._statuses and name not in frame.columns:  # as in every private table
            status = self._statuses[name]
            column = status.column
            return status, frame[column.name], units_beside(frame, column)
        return coder, cells[name], units_beside(frame, self._columns[place])

    def _left(
        self, encoded: npt.NDArray[np.int32], place: int, own: OwnRows
    ) -> npt.NDArray[np.int32]:
        """Return codes with that of missing where the row leaves the column empty."""
        absent = own.absent.get(self.names[place])
        return encoded if absent is None else np.where(absent, self.sizes[place] - 1, encoded)

    def _check(self, frame: pd.DataFrame) -> None:
        """Refuse a frame without the modelled columns, or with two of a name."""
        names = [column.name for column in self.published.modelled if column.is_read]
        absent = [
            name for name in names if name not in frame.columns and name not in self._statuses
        ]
        if absent:
            raise TableError(f"the table lacks columns of the schema: {', '.join(absent)}")
        doubled = set(frame.columns[frame.columns.duplicated()]) & set(names)
        if doubled:
            raise TableError(f"the table has two columns called {', '.join(sorted(doubled))}")

    def conforms(self, frame: pd.DataFrame) -> list[Problem]:
        """List how a synthetic table departs from the schema; empty if every cell is valid.

        Cells may be typed, or the text of a CSV file as dpsynth writes it. Each problem names a
        column, a rule and how many cells break it, never a cell.
        """
        columns = self.published.modelled
        problems = departures(frame, columns, {c.name: published_lattice(c) for c in columns})
        return problems or strained(frame, self.published)


def published_lattice(column: Column) -> Lattice | None:
    """Return the lattice of a numeric column of the table, None for a categorical one."""
    return None if column.is_categorical else lattice_of(column)


def _taken(encoded: npt.NDArray[np.int32], cells: pd.Series[Any]) -> npt.NDArray[np.int32]:
    """Refuse cells that their column refuses."""
    if len(encoded) and encoded.min() == REFUSED:
        raise RefusedCellError(
            f"column '{cells.name}' declares `refuse`, and a cell is not what it declares; "
            "correct the table, or send such cells to missing, a bound or a category by on_bad "
            "and on_unknown"
        )
    return encoded
