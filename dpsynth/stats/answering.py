"""The verb `statistics`: plan, charge, read, answer, write; in this order, as for a fit.

Rows that stay in their warehouse: what a statistic needs of them, as patterns of units.

A statistic depends on the rows of a unit and on no other rows until its mechanism adds up. So the
units with the same codes in the columns that it reads add the same, and one of them stands for all,
with their number. The sums are those of the rows themselves, and so is the noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding import WarehouseRows, read_coded_cells, read_cohort, read_histories
from dpsynth.errors import InputError
from dpsynth.ledger import Ledger, Use
from dpsynth.policy import Policy
from dpsynth.privacy import Entropy
from dpsynth.stats.answer_request import Numbers
from dpsynth.stats.answers import Answers
from dpsynth.stats.charged_answers import charged_answers
from dpsynth.stats.statistic import Asked, Ints, Readable, Rows
from dpsynth.stats.statistics_request import LinkedTables, StatisticsRequest
from dpsynth.synthesis import Reader, require_small_delta, staying_table
from dpsynth.synthesis.charged_fit import Terms
from dpsynth.tables import (
    Source,
    Table,
    WarehouseTable,
    as_source,
    linked_sources,
    open_linked,
    open_table,
)

_ROOM = 2**20  # bytes that the documents take, and more for each cell
_CELL = 200


def statistics(
    data: Source | Mapping[str, Source],
    request: StatisticsRequest | str | Path,
    *,
    epsilon: float,
    delta: float,
    dataset: str,
    purpose: str = "",
    tier: str | None = None,
    policy: Policy | None = None,
    ledger: Ledger | None = None,
    without_ledger: bool = False,
    output: str | Path | None = None,
    entropy: Entropy | None = None,
    in_warehouse: bool = False,
) -> Answers:
    """Answer a request about private rows, under differential privacy for the schema's unit.

    Args:
        data: the path of a table, or a DataFrame of pandas, polars or Arrow; of linked tables, a
            folder with a file for each, a file or database with all of them, or the source of each
            by the table's name.
        request: a `StatisticsRequest`, or the path of one.
        epsilon: privacy budget of all statistics together; there is no default.
        delta: the probability that the guarantee of epsilon may miss; there is no default.
        dataset: the name under which the ledger counts what these patients have spent.
        purpose: a few words for the ledger.
        tier: the kind of purpose, where the policy names some.
        policy: one to keep, where the ledger has adopted none.
        ledger: where to charge; the default ledger if None.
        without_ledger: charge nowhere; the statistics are stamped, and may not be released.
        output: folder to write them in; claimed before any charge. If they cannot be written
            there all the same, they are saved elsewhere, and the error says where.
        entropy: source of noise; the operating system's if None. Another source stamps them.
        in_warehouse: let the rows stay in their database, DuckDB or PostgreSQL, which codes and
            counts them by SQL. For a schema of one table.

    Returns:
        The answers with their certificate; `Answers.table` gives a table of each.

    Raises:
        InputError: request, table, budget or output are wrong. If rows had been read by then, the
            ledger counts them as spent.
        BudgetError: the ledger or its policy refuses.

    Example:
        >>> from dpsynth.ledger import Ledger
        >>> from dpsynth.tables import simulate
        >>> request = StatisticsRequest.from_dict({"schema": "demo", "statistics": [
        ...     {"name": "by sex", "count": "patients", "by": ["sex"]}]})
        >>> found = statistics(simulate(500, seed=1), request, epsilon=1, delta=1e-6,
        ...     dataset="example", ledger=Ledger.create("ledger.sqlite"))
        >>> list(found.table("by sex").columns)
        ['sex', 'count', 'lower', 'upper']
    """
    # a request that was put together in memory is read anew: what is asked is what is written
    if isinstance(request, StatisticsRequest):
        request = StatisticsRequest.from_dict(request.document)
    else:
        request = StatisticsRequest.load(request)
    schema = request.facts
    plan = request.plan(epsilon, delta)
    require_small_delta(schema, epsilon, delta)
    with reading_of(data, request, in_warehouse=in_warehouse) as reader:

        def ask(rows: Mapping[str | None, Readable], source: Entropy) -> Numbers:
            events = {event.name: event for event in plan.events}
            answers: dict[str, list[Ints]] = {}
            for table, one in zip(request.tables, request.statistics, strict=True):
                answers |= one.answer(rows[table].reading(one.reads), events, source)
            return answers

        return charged_answers(
            request,
            plan,
            reader,
            ask,
            Terms(Use(dataset, purpose, tier, policy), ledger, without_ledger, output, entropy),
            room=_ROOM + _CELL * sum(one.numbers for one in request.statistics),
        )


TablesRead = Mapping[str | None, Readable]
"""What statistics are asked of, by the name of the table; None for the only one."""


@dataclass(frozen=True, eq=False, repr=False)
class RequestReader(Reader[TablesRead]):
    """The rows of one table that a request asks about."""

    request: StatisticsRequest
    table: Table

    def read(self, entropy: Entropy) -> TablesRead:
        """Read the rows into memory."""
        request = self.request
        rows = Rows.of(read_cohort(self.table, request.codec, request.schema, entropy))
        undeclared = sorted({name for one in request.statistics for name in one.undeclared})
        if undeclared:
            cells = read_coded_cells(self.table, request.codec, undeclared, entropy)
            rows = replace(rows, undeclared=cells)
        return {None: rows}


@dataclass(frozen=True, eq=False, repr=False)
class StayingReader(Reader[TablesRead]):
    """The same of a table that stays in its database, until the block of `reading_of` ends."""

    request: StatisticsRequest
    table: WarehouseTable
    held: ExitStack

    def read(self, entropy: Entropy) -> TablesRead:
        """Have the database code the rows."""
        from dpsynth.encoding import counted_rows

        rows = counted_rows(self.table, self.request.codec, numbered=True)
        return {None: StayingRows(self.held.enter_context(rows))}


@dataclass(frozen=True, eq=False, repr=False)
class LinkedRequestReader(Reader[TablesRead]):
    """The same of linked tables."""

    linked: LinkedTables
    tables: Mapping[str, Table]

    def read(self, entropy: Entropy) -> TablesRead:
        """Read the histories into memory."""
        return read_linked_rows(self.tables, self.linked, entropy)


@contextmanager
def reading_of(
    data: Source | Mapping[str, Source], request: StatisticsRequest, *, in_warehouse: bool = False
) -> Iterator[Reader[TablesRead]]:
    """Open what is asked, and yield its reader; no row has been read then.

    Raises:
        InputError: it is not what the request's schema needs, or cannot be counted in a warehouse.
        TableError: a table is not there, or is not what its schema says.
    """
    linked = request.linked
    if linked is None:
        if isinstance(data, Mapping):
            raise InputError("the schema is of one table; give one source")
        data = as_source(data)
        table = open_table(data, request.schema)
        if not in_warehouse:
            yield RequestReader((data,), request, table)
            return
        with ExitStack() as held:
            yield StayingReader((data,), request, staying_table(table, request.schema), held)
        return
    if in_warehouse:
        raise InputError("linked tables are read; leave out --in-warehouse")
    sources = linked_sources(data, linked.schema)
    tables = open_linked(sources, linked.schema)
    yield LinkedRequestReader(tuple(sources.values()), linked, tables)


def read_linked_rows(
    tables: Mapping[str, Table], linked: LinkedTables, entropy: Entropy
) -> dict[str | None, Rows]:
    """Read all tables, and return the rows of each that can be asked, by its name.

    Raises:
        TableError: a table is damaged, or its keys are wrong.
        RefusedCellError: a cell broke a column that opts in to ``refuse``.
    """
    histories = read_histories(tables, linked.codec, entropy)
    found: dict[str | None, Rows] = {}
    for name, one in linked.asked.items():
        if one.child is None:
            units = np.arange(len(histories), dtype=np.int64)
            found[name] = Rows(units, histories.baseline)
        else:
            (rows,) = histories.rows[one.child]
            patients = histories.baseline[rows.patients][:, list(one.of_patient)]
            codes = np.hstack([patients, rows.values])
            found[name] = Rows(rows.patients.astype(np.int64), codes)
    return found


UNREAD = np.iinfo(np.uint16).max  # in columns that were not asked: no column has such a code


@dataclass(frozen=True, eq=False, repr=False)
class StayingRows:
    """Rows of a table in a warehouse, of which each statistic gets what it reads."""

    rows: WarehouseRows
    _found: dict[bytes, Rows] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Show no row."""
        return short_repr(self, "coded rows in a warehouse")

    def reading(self, asked: Asked) -> Rows:
        """Count the patterns of units in these columns; once, whoever asks."""
        key = b"|".join(str(place).encode() + one.tobytes() for place, one in asked.items())
        if key not in self._found:
            found = self.rows.patterns(asked)
            codes = np.full((len(found.codes), self.rows.columns), UNREAD, dtype=np.uint16)
            codes[:, list(asked)] = found.codes
            self._found[key] = Rows(found.patterns, codes, like=found.like)
        return self._found[key]
