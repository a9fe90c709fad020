"""The tables of an evaluation, all read in the same way: source, synthetic, holdout."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import counted
from dpsynth._util.short_repr import short_repr
from dpsynth.encoding import Codec, read_any_table
from dpsynth.encoding.any_table import AUTO
from dpsynth.errors import InputError, TableError
from dpsynth.schema import Schema, is_related
from dpsynth.tables import Keys, Source, Table, as_written, open_synthetic, open_table
from dpsynth.tables.unit_keys import NO_KEY

Codes = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.int64]

OWN = 2**40  # rows without a key that are units of their own are numbered from here


@dataclass(frozen=True, eq=False)
class TableView:
    """One table as the schema sees it.

    Attributes:
        frame: the coded columns in their declared types, bounded, with a fresh index; an interval
            is its gap, a whole number (see `dpsynth.schema.relations.coded`).
        codes: the same cells as codes ``[rows, columns]``; see `dpsynth.encoding.codec.Codec`.
        units: the number of the privacy unit of each row ``[rows]``.
        published: the same rows with the columns of the published table: rules are about these,
            and derived columns are among them; None where they are those of ``frame``.
    """

    frame: pd.DataFrame
    codes: Codes
    units: Ints
    published: pd.DataFrame | None = None

    def __repr__(self) -> str:
        """Show no cell: the rows may be real."""
        return short_repr(self, counted(self.codes.shape[1], "column"))

    @property
    def cells(self) -> pd.DataFrame:
        """The columns of the published table."""
        return self.frame if self.published is None else self.published

    @property
    def rows(self) -> int:
        """How many."""
        return len(self.codes)

    def take(self, rows: Ints) -> TableView:
        """Return some rows, in the given order; one may be taken several times."""
        frame = self.frame.iloc[rows].reset_index(drop=True)
        published = self.published
        if published is not None:
            published = published.iloc[rows].reset_index(drop=True)
        return TableView(frame, self.codes[rows], self.units[rows], published)

    def sample(self, rows: int, rng: np.random.Generator) -> TableView:
        """Return so many rows drawn without replacement, or all of them where there are fewer."""
        if rows >= self.rows:
            return self
        return self.take(np.sort(rng.choice(self.rows, size=rows, replace=False)))

    def bootstrap(self, rows: int, rng: np.random.Generator) -> TableView:
        """Return about so many rows of whole units drawn with replacement: a table by chance.

        The last unit is cut, so that there are exactly ``rows`` rows; of no rows there are none.
        """
        if rows == 0 or self.rows == 0:
            return self.take(np.zeros(0, dtype=np.int64))
        order = np.argsort(self.units, kind="stable")
        _, starts, counts = np.unique(self.units[order], return_index=True, return_counts=True)
        picked: list[Ints] = []
        have = 0
        while have < rows:
            units = rng.integers(len(starts), size=max(1, rows * len(starts) // self.rows))
            of_draw = np.repeat(starts[units], counts[units])
            ends = np.cumsum(counts[units])
            within = np.arange(ends[-1]) - np.repeat(ends - counts[units], counts[units])
            picked.append(order[of_draw + within])
            have += len(picked[-1])
        return self.take(np.concatenate(picked)[:rows])


@dataclass(frozen=True, eq=False)
class Tables:
    """What an evaluation compares.

    Attributes:
        schema: the public facts, with columns as they are coded; those of the published table are
            in ``codec.published``.
        codec: the schema's codes.
        source: the real rows that the generator learned from.
        synthetic: the rows that are to be judged.
        holdout: real rows of other people; None if there are none.
        departures: how the synthetic table's cells break the schema, before they were bounded.
        notes: how the synthetic table was read, where that is not certain.
    """

    schema: Schema
    codec: Codec
    source: TableView
    synthetic: TableView
    holdout: TableView | None
    departures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Show no cell."""
        return short_repr(self, f"schema {self.codec.published.name}")

    @classmethod
    def read(
        cls,
        schema: Schema,
        source: Source,
        synthetic: Source,
        holdout: Source | None = None,
        *,
        form: str = AUTO,
    ) -> Tables:
        """Read files (CSV, Parquet) or DataFrames.

        Source and holdout have the columns of the schema, the privacy unit's included; the
        synthetic table may be any tool's, with the modelled columns, written as the source is or as
        dpsynth writes tables (``form``: one of `dpsynth.encoding.any_table.FORMS`). Cells outside
        the schema are bounded as a fit bounds them.

        Raises:
            TableError: a table is damaged, empty, or lacks columns.
            InputError: a unit of the holdout is in the source.
        """
        return RealTables.read(schema, source, holdout).beside(synthetic, form=form)

    @property
    def size(self) -> int:
        """Rows of the comparisons that need equal tables: the fewest of synthetic and holdout."""
        rows = self.synthetic.rows
        return rows if self.holdout is None else min(rows, self.holdout.rows)


@dataclass(frozen=True, eq=False)
class RealTables:
    """Source and holdout, read once, for one synthetic table or for several in turn.

    Attributes:
        codec: the schema's codes.
        source: the real rows that the generator learned from.
        holdout: real rows of other people; None if there are none.
    """

    codec: Codec
    source: TableView
    holdout: TableView | None

    def __repr__(self) -> str:
        """Show no cell."""
        return short_repr(self, f"schema {self.codec.published.name}")

    @classmethod
    def read(cls, schema: Schema, source: Source, holdout: Source | None = None) -> RealTables:
        """Read files or DataFrames of private rows.

        Raises:
            TableError: a table is damaged, empty, or lacks columns.
            InputError: a unit of the holdout is in the source.
        """
        codec, keys = Codec(schema), Keys(schema)
        real, apart = _view(open_table(source, schema), codec, keys), None
        if holdout is not None:
            apart = _view(open_table(holdout, schema), codec, keys, 2 * OWN)
            if schema.unit.column is not None and np.isin(apart.units, real.units).any():
                raise shared_people()
        return cls(codec, real, apart)

    def beside(self, synthetic: Source, *, form: str = AUTO) -> Tables:
        """Read a synthetic table, and put it beside the real ones.

        Args:
            synthetic: the table.
            form: how it is written; see `dpsynth.encoding.any_table`.

        Raises:
            TableError: the table is damaged, empty, or lacks columns.
        """
        codec, schema = self.codec, self.codec.published
        read = read_any_table(synthetic, schema, form)
        cells = read.cells
        view = _view(open_synthetic(cells, schema), Codec(as_written(schema)), None)
        broken = tuple(str(problem) for problem in codec.conforms(cells))
        return Tables(codec.schema, codec, self.source, view, self.holdout, broken, read.notes)


def _view(table: Table, codec: Codec, keys: Keys | None, first_own: int = OWN) -> TableView:
    """Read a table; without keys each row is a unit of its own.

    A row without a key is its own unit, with a number from ``first_own``, where the schema says so;
    else it is left out, as a fit leaves it out.
    """
    frames, codes, units = [], [], []
    published: list[pd.DataFrame] = []
    apart = is_related(codec.published)
    for chunk in table.chunks():
        chunk_codes, typed = codec.read(chunk)
        codes.append(chunk_codes)
        frames.append(typed)
        if apart:
            published.append(codec.bounded(chunk))
        if keys is not None:
            units.append(keys.units(chunk))
    rows = sum(map(len, codes))
    numbers = np.arange(rows) if keys is None else np.concatenate(units)
    if codec.schema.unit.missing_key == "own":
        keyless = np.flatnonzero(numbers == NO_KEY)
        numbers[keyless] = first_own + np.arange(len(keyless))
    keyed = np.flatnonzero(numbers != NO_KEY)
    if not len(keyed):
        raise TableError("no row has a key; correct the table or the schema's unit")
    view = TableView(
        pd.concat(frames, ignore_index=True),
        np.concatenate(codes),
        numbers,
        pd.concat(published, ignore_index=True) if apart else None,
    )
    return view if len(keyed) == rows else view.take(keyed)


def shared_people() -> InputError:
    """Say that source and holdout are not of different people."""
    return InputError(
        "source and holdout share units: people in the holdout must not be in the source; split "
        "the table by `dpsynth split`"
    )


def described(view: TableView) -> dict[str, int]:
    """Say how large a table is."""
    return {"rows": view.rows, "units": len(np.unique(view.units))}


def groups(units: Ints, count: int, rng: np.random.Generator) -> Ints:
    """Deal units at random into ``count`` groups of equal size; return each row's group."""
    _, unit_of_row = np.unique(units, return_inverse=True)
    seats = rng.permutation(int(unit_of_row.max()) + 1) % count
    return np.asarray(seats[unit_of_row], dtype=np.int64)
