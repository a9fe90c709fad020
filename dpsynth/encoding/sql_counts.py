"""Counts of columns and pairs of columns, and other cells for their codes, by GROUP BY.

Counts are exact and private: they come over the connection to a mechanism, which adds noise once.
A single column is counted by its codes, and these are recoded here. For pairs, the recoded cells
are first written into a temporary table of their own, so that what comes over the connection is no
finer than the table that is counted. Weights are exact whole numbers: rows are counted by how many
rows their unit has, and each such count is multiplied here.

At most ``max_rows`` rows of each unit, chosen once, as a temporary table of codes.

This is where one unit's influence is bounded when rows stay in their warehouse, as `cohort` bounds
it elsewhere. Each row draws a random number; of a unit's rows those with the least are kept. They
are kept once: all counts are of one temporary table, which holds the codes of each row and how many
rows its unit has, and no key. Were the rows drawn anew for each query, a unit could enter one
histogram with some rows and the next with others; each count would be bounded, but they would be
of no table, and pairs would not fit their columns.

**Sensitivity.** A row's codes are a function of its own cells. Which rows of a unit are kept, and
how many they are, depends on the unit's own rows and on fresh random numbers. So a unit that comes
or goes changes its own rows of the temporary table and no others, at most ``max_rows`` of them,
which is what the events of a plan account for. Rows without a key are left out, or are a unit each;
they are never one unit together.

**Assumption.** The warehouse's ``random()`` draws independent numbers. They decide which rows of a
unit count, and pay for nothing: the noise comes from the source of the fit.

Units that are alike, counted where they lie: the rows of one of them, and how many there are.

Statistics of units need to know which rows belong together, but not to whom. Two units with the
same coded rows are one pattern, so what comes over the connection are patterns and numbers, of the
asked columns alone, and no finer than they are asked. They are exact and private, as counts are.

How the rows of a table in a warehouse form units, and which of them repeat another one.

Keys are compared as `dpsynth.tables.unit_keys` compares them, and stay where they are: what comes
over the connection are numbers.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import ibis
import numpy as np
import numpy.typing as npt

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.codec import Codec
from dpsynth.encoding.cohort import Cells, Lookup, UnitRows
from dpsynth.encoding.sql import (
    KEY,
    Relation,
    Stages,
    by_bisection,
    code_name,
    coded,
    key_in_sql,
    key_of,
    quoted,
    require_expressible,
)
from dpsynth.errors import InputError, NoRowsError, RefusedCellError, TableError
from dpsynth.privacy import ChosenHistograms, JointHistograms
from dpsynth.schema import PrivacyUnit, Schema
from dpsynth.schema.column import REFUSE
from dpsynth.tables import Session, WarehouseTable
from dpsynth.tables.warehouse import Stored, text_in_sql, trimmed

Ints = npt.NDArray[np.int64]

ROWS, UNIT = "unit_rows", "unit"


@dataclass(frozen=True, eq=False)
class _Cell:
    """What the cells of a column are: a column of the temporary table, and a cell for each code.

    Attributes:
        name: of the column.
        cells: of each of its codes.
    """

    name: str
    cells: Ints


@dataclass(frozen=True, eq=False)
class WarehouseRows:
    """Coded rows in a temporary table of a warehouse; a `dpsynth.encoding.RowSource`.

    Attributes:
        rows_per_unit: how many rows a unit has at most.
    """

    rows_per_unit: int
    _session: Session
    _dialect: str
    _table: str
    _cells: tuple[_Cell, ...]

    def __repr__(self) -> str:
        """Show no code: the rows may be real."""
        return short_repr(self, "coded rows in a warehouse")

    @classmethod
    def of(
        cls, session: Session, dialect: str, table: str, most: int, sizes: Sequence[int]
    ) -> WarehouseRows:
        """Take a temporary table with columns ``c0``, ``c1``, ... of codes below these sizes."""
        cells = tuple(_Cell(f"c{place}", np.arange(size)) for place, size in enumerate(sizes))
        return cls(most, session, dialect, table, cells)

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return len(self._cells)

    def recoded(self, cells: Sequence[Cells]) -> WarehouseRows:
        """Return the same rows with other columns; nothing is asked of the warehouse yet.

        Raises:
            InputError: cells follow from several columns.
        """
        return replace(self, _cells=tuple(map(self._recoded, cells)))

    def _recoded(self, cells: Cells) -> _Cell:
        if isinstance(cells, UnitRows):  # a unit has at least one row, whose cell is 0
            return _Cell(ROWS, np.arange(-1, self.rows_per_unit))
        if not isinstance(cells, Lookup):
            raise InputError(
                "a column above others is counted by codes of several columns, which dpsynth does "
                "not do in a warehouse; leave out --in-warehouse"
            )
        own = self._cells[cells.column]
        if cells.cells is None:
            return own
        if own.cells.max() >= len(cells.cells):
            raise InputError("a column has a code outside its cells; encode it with its schema")
        known = np.maximum(own.cells, 0)
        return _Cell(own.name, np.where(own.cells < 0, -1, cells.cells[known].astype(np.int64)))

    def counts(
        self,
        histograms: Sequence[tuple[int, ...]],
        sizes: Sequence[int],
        event: JointHistograms | ChosenHistograms,
    ) -> list[Ints]:
        """Count histograms, as `dpsynth.privacy.mechanisms.exact_counts` does.

        Args:
            histograms: of each, its column, or its columns.
            sizes: number of cells of each column.
            event: whose unit mass says what a row counts.

        Returns:
            One int64 array for each histogram, the last column's cells innermost. They are private
            until noise is added.

        Raises:
            InputError: a row has a cell outside of its column, or its unit too many rows.
            TableError: the warehouse refuses.
        """
        table, names = self._grouped(histograms)
        found = []
        for columns in histograms:
            size = int(np.prod([sizes[column] for column in columns]))
            found.append(
                self._count(columns, [names[c] for c in columns], table, sizes, size, event)
            )
        return found

    def patterns(self, asked: Classes) -> UnitPatterns:
        """Count the units that are alike in what is asked of them; their rows are numbered.

        Args:
            asked: the columns, and what of each is told apart. Codes of a class come as its first.

        Raises:
            InputError: a unit has too many rows.
            TableError: the warehouse refuses.
        """
        cells = [_Cell(f"c{place}", first_of_class(classes)) for place, classes in asked.items()]
        row = " || ',' || ".join(f"CAST({_looked_up(cell)} AS VARCHAR)" for cell in cells) or "''"
        units = (
            f"SELECT string_agg(own, ';' ORDER BY own) AS pattern "
            f"FROM (SELECT {UNIT}, {row} AS own FROM {self._table}) AS dpsynth_rows GROUP BY {UNIT}"
        )
        query = f"SELECT pattern, COUNT(*) FROM ({units}) AS dpsynth_units GROUP BY pattern"
        return parsed_patterns(self._session.rows(query), len(cells), self.rows_per_unit)

    def _grouped(self, histograms: Sequence[tuple[int, ...]]) -> tuple[str, dict[int, str]]:
        """Return a temporary table with the cells of all columns, if any are counted together."""
        names = {place: cell.name for place, cell in enumerate(self._cells)}
        if all(len(columns) == 1 for columns in histograms):
            return self._table, names
        return self._binned, {place: f"b{place}" for place in names}

    @cached_property
    def _binned(self) -> str:
        name = f"dpsynth_{secrets.token_hex(8)}"
        cells = [
            f"CAST({_looked_up(cell)} AS INTEGER) AS b{place}"
            for place, cell in enumerate(self._cells)
        ]
        self._session.derive(name, f"SELECT {', '.join([*cells, ROWS])} FROM {self._table}")
        return name

    def _count(
        self,
        columns: Sequence[int],
        names: Sequence[str],
        table: str,
        sizes: Sequence[int],
        size: int,
        event: JointHistograms | ChosenHistograms,
    ) -> Ints:
        groups = list(dict.fromkeys([*names, ROWS]))
        kinds = dict.fromkeys(groups, "int32")
        rows = ibis.table(kinds, name=table)
        query = rows.group_by([rows[name] for name in groups]).aggregate(number=rows.count())
        answer = self._session.rows(ibis.to_sql(query, dialect=self._dialect))
        counted = np.array(answer, dtype=np.int64).reshape(len(answer), len(groups) + 1)
        of_unit, numbers = counted[:, groups.index(ROWS)], counted[:, -1]
        if len(counted) and not (1 <= of_unit.min() and of_unit.max() <= self.rows_per_unit):
            raise InputError("a unit has more rows than its cap; read the table again")
        if event.unit_mass is not None:
            numbers = numbers * (event.unit_mass // of_unit)
        cells = np.zeros(len(counted), dtype=np.int64)
        for column, name in zip(columns, names, strict=True):
            own = counted[:, groups.index(name)]
            if table == self._table:
                own = self._cells[column].cells[own]
            if len(own) and (own.min() < 0 or own.max() >= sizes[column]):
                raise InputError("a row has a code outside its column; encode it with its schema")
            cells = cells * sizes[column] + own
        histogram = np.zeros(size, dtype=np.int64)
        np.add.at(histogram, cells, numbers)
        return histogram


def _looked_up(cell: _Cell) -> str:
    """Return the cell of each code, by bisection over stretches of codes with one cell."""
    starts = np.flatnonzero(np.diff(cell.cells, prepend=cell.cells[0] - 1)).tolist()
    return by_bisection(cell.name, starts, lambda place: str(cell.cells[starts[place]]))


DRAW, NUMBER = "draw", "number"


@contextmanager
def counted_rows(
    table: WarehouseTable, codec: Codec, *, numbered: bool = False
) -> Iterator[WarehouseRows]:
    """Code and cap the rows of a table where they are, for as long as the block lasts.

    Args:
        table: in its warehouse.
        codec: of its schema.
        numbered: whether units have a number in the temporary table, for `WarehouseRows.patterns`.
            It is that of one of their rows, in no order, and not made of the key.

    Yields:
        Rows that can be counted. They are in a temporary table, which is dropped at the end; a
        connection that breaks drops it too.

    Raises:
        TableError: a column cannot be coded there; there are no rows, or none has a key; or the
            warehouse refuses.
        RefusedCellError: a cell broke a column that opts in to ``refuse``.

    Example:
        >>> with counted_rows(table, codec) as rows:  # doctest: +SKIP
        ...     counts = joint_histograms(rows, codec.sizes, event, entropy)
    """
    schema = codec.published
    require_expressible(schema, table)
    stages = drawn(coded(codec, table))
    rows, names = stages.rows, [code_name(place) for place in range(len(codec.names))]
    refusing = [
        place
        for place, column in enumerate(codec.schema.modelled)
        if REFUSE in (column.on_bad, column.on_unknown)
    ]
    name = f"dpsynth_{secrets.token_hex(8)}"
    kept = [*names, ROWS, *([UNIT] if numbered else [])]
    fill = stages.query(capped(rows, schema.unit, names).select(kept))
    ask = stages.query(found(rows, schema.unit, refusing))
    with table.session() as session:
        ((some, keyed, *refused),) = session.fill(name, kept, fill, [ask])
        try:
            broken = [
                codec.names[place] for place, one in zip(refusing, refused, strict=True) if one
            ]
            _check(table, schema.unit, some=some, keyed=keyed, refused=broken)
            yield WarehouseRows.of(session, table.dialect, name, schema.unit.max_rows, codec.sizes)
        finally:
            with suppress(TableError):  # of a connection that broke, nothing is left
                session.drop(name)


def drawn(stages: Stages) -> Stages:
    """Give each row a random number, and one of its own, once."""
    rows = stages.rows
    number = ibis.row_number().over(ibis.window())
    return stages.then("dpsynth_drawn", rows.mutate(**{DRAW: ibis.random(), NUMBER: number}))


def capped(rows: Relation, unit: PrivacyUnit, codes: list[str]) -> Relation:
    """Return at most ``max_rows`` coded rows of each unit, how many are kept, and its number.

    Args:
        rows: coded, with the key of each, and what `drawn` gives.
        unit: how many rows of one are kept, and what a row without a key is.
        codes: the names of the columns of codes.
    """
    kept = {name: rows[name] for name in codes}
    if unit.column is None:
        one = ibis.literal(1, type="int32")
        return rows.select(**kept, **{ROWS: one, UNIT: rows[NUMBER]})
    key = rows[KEY]
    if unit.missing_key != "own":
        rows = rows.filter(key.notnull())
        kept, key = {name: rows[name] for name in codes}, rows[KEY]
    alone = key.isnull()  # NULL is no key that rows share
    of_unit = ibis.window(group_by=key)
    in_turn = ibis.window(group_by=key, order_by=rows[DRAW])
    ranked = rows.select(
        **kept,
        turn=ibis.ifelse(alone, 0, ibis.row_number().over(in_turn)),
        all_rows=ibis.ifelse(alone, 1, rows.count().over(of_unit)),
        **{UNIT: ibis.ifelse(alone, rows[NUMBER], rows[NUMBER].min().over(of_unit))},
    )
    most = ibis.literal(unit.max_rows, type="int64")
    ranked = ranked.filter(ranked.turn < most)
    own = ibis.ifelse(ranked.all_rows < most, ranked.all_rows, most).cast("int32")
    return ranked.select(
        **{name: ranked[name] for name in codes}, **{ROWS: own, UNIT: ranked[UNIT]}
    )


def found(rows: Relation, unit: PrivacyUnit, refusing: list[int]) -> Relation:
    """Ask whether there are rows, whether any has a key, and which columns refuse a cell."""
    keyed = rows.count() if unit.column is None else rows[KEY].count()
    refused = {f"r{place}": (rows[code_name(place)] < 0).sum() for place in refusing}
    return rows.aggregate(some=rows.count(), keyed=keyed, **refused)


def _check(
    table: WarehouseTable, unit: PrivacyUnit, *, some: int, keyed: int | None, refused: list[str]
) -> None:
    """Stop as `read_cohort` stops: without rows, without keys, or by a cell that is refused."""
    if not some:
        raise NoRowsError(f"{table.place} has a header but no rows")
    if refused:
        raise RefusedCellError(
            f"column '{refused[0]}' declares `refuse`, and a cell is not what it declares; correct "
            "the table, or send such cells to missing, a bound or a category by on_bad and "
            "on_unknown"
        )
    if not keyed and unit.missing_key != "own":
        raise TableError(
            f"no row has a key in column '{unit.column}'; correct the table, the column's "
            "missingValues, or which column has the role unit"
        )


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


ORDER = "place_in_order"


@dataclass(frozen=True, repr=False)
class UnitSizes:
    """Exact counts of rows and units; private.

    Attributes:
        rows: of the table.
        keyless: rows without a key.
        units: by how many rows a unit has, how many units have so many.
        whole: rows that repeat another one of their unit in every column, and of how many.
        ordered: rows that repeat another one's place in the order, and of how many.
    """

    rows: int
    keyless: int = 0
    units: Mapping[int, int] = field(default_factory=dict)
    whole: tuple[int, int] = (0, 0)
    ordered: tuple[int, int] = (0, 0)

    def __repr__(self) -> str:
        """Show no number."""
        return short_repr(self, "rows and units of a table in a warehouse")


def unit_sizes(table: WarehouseTable, schema: Schema, columns: Sequence[str]) -> UnitSizes:
    """Count rows and units.

    Args:
        table: in its warehouse.
        schema: of the table; its key is one that `require_keys` accepts.
        columns: by which whole rows are compared.

    Raises:
        TableError: the warehouse refuses.
    """
    if schema.unit.column is None:
        with table.session() as session:
            [[(rows,)]] = session.asked([f"SELECT COUNT(*) FROM {table.rows_of}"])
        return UnitSizes(int(rows))
    stages = _keyed(table, schema, columns)
    rows, keyed = stages.rows, stages.rows.filter(stages.rows[KEY].notnull())
    own = keyed.group_by(keyed[KEY]).aggregate(n=keyed.count())
    queries = [
        rows.aggregate(rows=rows.count(), keyless=rows[KEY].isnull().sum()),
        own.group_by(own.n).aggregate(units=own.count()),
        _repeated(keyed, [f"v{place}" for place in range(len(columns))]),
    ]
    if schema.order_column is not None:
        placed = keyed.filter(keyed[ORDER].notnull() & (keyed[ORDER] != ""))
        queries.append(_repeated(placed, [KEY, ORDER]))
    with table.session() as session:
        [total], units, *again = session.asked([stages.query(query) for query in queries])
    sizes = {int(rows): int(number) for rows, number in units}
    pairs = [(int(one or 0), int(every or 0)) for [(one, every)] in again]
    return UnitSizes(int(total[0]), int(total[1] or 0), sizes, *pairs)


def _keyed(table: WarehouseTable, schema: Schema, columns: Sequence[str]) -> Stages:
    """Return rows with their key as it is compared, and their cells."""
    cells = [key_in_sql(schema, table)]
    for place, name in enumerate(columns):
        cell = quoted(name)
        if table.stored.get(name) is Stored.TEXT:
            cell = f"COALESCE({text_in_sql(cell, table.dialect)}, '')"
        cells.append(f"{cell} AS v{place}")
    kept = [f"v{place}" for place in range(len(columns))]
    if schema.order_column is not None:
        text = text_in_sql(quoted(schema.order_column), table.dialect)
        cells.append(f"{trimmed(text, table.dialect)} AS {ORDER}")
        kept.append(ORDER)
    types = dict.fromkeys([KEY, f"{KEY}_bare", *kept], "string")  # cells are compared, not read
    start = Stages(table.dialect, (), None)
    query = f"SELECT {', '.join(cells)} FROM {table.rows_of}"
    stages = start.then_sql("dpsynth_cells", query, types)
    rows = stages.rows
    named = {name: rows[name] for name in kept}
    return stages.then("dpsynth_keyed", rows.select(**{KEY: key_of(rows, schema)}, **named))


def _repeated(rows: Relation, names: Sequence[str]) -> Relation:
    """Count rows that repeat another one in some columns, and all of them."""
    groups = rows.group_by([rows[name] for name in names]).aggregate(n=rows.count())
    return groups.aggregate(again=(groups.n - ibis.literal(1)).sum(), every=groups.n.sum())
