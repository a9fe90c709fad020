"""The verb `statistics`: plan, charge, read, answer, write; in this order, as for a fit.

Rows that stay in their warehouse: what a statistic needs of them, as patterns of units.

A statistic depends on the rows of a unit and on no other rows until its mechanism adds up. So the
units with the same codes in the columns that it reads add the same, and one of them stands for all,
with their number. The sums are those of the rows themselves, and so is the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from dpsynth._util.dependencies import need
from dpsynth._util.short_repr import short_repr
from dpsynth.encoding import Codec, WarehouseRows, read_coded_cells, read_cohort, read_histories
from dpsynth.errors import InputError
from dpsynth.ledger import Ledger, Use
from dpsynth.policy import Policy
from dpsynth.privacy import Entropy
from dpsynth.schema import Schema
from dpsynth.stats.answer_request import Numbers
from dpsynth.stats.answers import Answers
from dpsynth.stats.charged_answers import charged_answers
from dpsynth.stats.statistic import Asked, Ints, Readable, Rows
from dpsynth.stats.statistics_request import LinkedTables, StatisticsRequest
from dpsynth.synthesis import require_small_delta
from dpsynth.synthesis.charged_fit import Terms
from dpsynth.tables import (
    NamedSource,
    Source,
    Table,
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
        data: the path of a table, or a DataFrame of pandas, polars or Arrow; of linked
            tables, a folder with a file for each, or the source of each by the table's name.
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
    with reading_of(data, request, in_warehouse=in_warehouse) as (sources, read):

        def ask(rows: Mapping[str | None, Readable], source: Entropy) -> Numbers:
            events = {event.name: event for event in plan.events}
            answers: dict[str, list[Ints]] = {}
            for table, one in zip(request.tables, request.statistics, strict=True):
                answers |= one.answer(rows[table].reading(one.reads), events, source)
            return answers

        return charged_answers(
            request,
            plan,
            sources,
            read,
            ask,
            Terms(Use(dataset, purpose, tier, policy), ledger, without_ledger, output, entropy),
            room=_ROOM + _CELL * sum(one.numbers for one in request.statistics),
        )


@contextmanager
def reading_of(
    data: Source | Mapping[str, Source], request: StatisticsRequest, *, in_warehouse: bool = False
) -> Iterator[tuple[list[NamedSource], Callable[[Entropy], Mapping[str | None, Readable]]]]:
    """Open what is asked, and yield its sources and how to read it; no row has been read then.

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
        if in_warehouse:
            with staying_rows(table, request.schema, request.codec) as counted:
                yield [data], lambda source: {None: counted(source)}
            return

        def read_one(source: Entropy) -> Mapping[str | None, Readable]:
            rows = Rows.of(read_cohort(table, request.codec, request.schema, source))
            undeclared = sorted({name for one in request.statistics for name in one.undeclared})
            if undeclared:
                cells = read_coded_cells(table, request.codec, undeclared, source)
                rows = replace(rows, undeclared=cells)
            return {None: rows}

        yield [data], read_one
        return
    if in_warehouse:
        raise InputError("linked tables are read; leave out --in-warehouse")
    sources = linked_sources(data, linked.schema)
    tables = open_linked(sources, linked.schema)

    def read_all(source: Entropy) -> Mapping[str | None, Readable]:
        return read_linked_rows(tables, linked, source)

    yield list(sources.values()), read_all


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


@contextmanager
def staying_rows(
    table: Table, schema: Schema, codec: Codec
) -> Iterator[Callable[[Entropy], StayingRows]]:
    """Check that rows can be counted where they lie; yield what codes them there.

    Args:
        table: whose header and types have been checked.
        schema: of the table.
        codec: of the schema.

    Yields:
        What reads, after the charge: the rows can be counted until the block ends.

    Raises:
        InputError: the table is in no warehouse that dpsynth knows, or a column cannot be coded
            there. Nothing was charged.
    """
    need("ibis")
    from dpsynth.encoding import counted_rows, require_expressible
    from dpsynth.tables import warehouse_table

    warehouse = warehouse_table(table)
    require_expressible(schema, warehouse)
    with ExitStack() as until_counted:

        def counted(_: Entropy) -> StayingRows:
            rows = until_counted.enter_context(counted_rows(warehouse, codec, numbered=True))
            return StayingRows(rows)

        yield counted
