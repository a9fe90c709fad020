"""What a fit reads, and where its coded rows lie: private rows that are opened, and not yet read.

A reader is made before the charge. Headers, types of columns and which lines are records have been
checked then, so a table can only be refused for them, and so have the folders and the database that
the rows need. `charged_fit` reads it after the charge.

Rows of one table are coded into memory (`TableReader`), into shards on a disk (`ShardsReader`), or
by the database that has them (`WarehouseReader`). Linked tables are coded into memory
(`LinkedReader`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, cast

from dpsynth._util.dependencies import need
from dpsynth._util.engines import Engine, open_engine
from dpsynth._util.short_repr import short_repr
from dpsynth.encoding import (
    Codec,
    Cohort,
    Histories,
    HistoryCodec,
    RowSource,
    find_codes,
    find_codes_of_patients,
    is_large,
    read_cohort,
    read_histories,
    read_shards,
    usual_workers,
)
from dpsynth.errors import InputError
from dpsynth.files import scratch_folder
from dpsynth.models import DISCOVERY, Progress, silent
from dpsynth.models.registry import names_of, spec_of
from dpsynth.privacy import CodeDiscovery, Entropy
from dpsynth.privacy.pair_statistics import PRODUCTS
from dpsynth.schema import Schema
from dpsynth.synthesis.execution import Execution
from dpsynth.synthesis.preparation import Prepared, PreparedCohort
from dpsynth.tables import (
    Divisible,
    NamedSource,
    Source,
    Table,
    as_source,
    files_of,
    linked_sources,
    open_linked,
    open_table,
)

if TYPE_CHECKING:
    from dpsynth.tables import WarehouseTable

RowsRead = TypeVar("RowsRead", covariant=True)


@dataclass(frozen=True, eq=False, repr=False)
class Reader(ABC, Generic[RowsRead]):
    """Private rows that are opened and not yet read: what they are, and where they are read.

    Attributes:
        sources: what will be read, so that the ledger can point out one that it saw before.
    """

    sources: tuple[NamedSource, ...]

    def __repr__(self) -> str:
        """Show no source: a path may name a person."""
        return short_repr(self, "private rows")

    @abstractmethod
    def read(self, entropy: Entropy) -> RowsRead:
        """Read the rows; called once, after the charge.

        Args:
            entropy: of the open plan, for the choice and the order of rows.
        """


@dataclass(frozen=True, eq=False, repr=False)
class FitReader(Reader[RowsRead]):
    """A reader for a fit, which may also find codes that nobody declared.

    Attributes:
        codec: of the schema.
        progress: called with a stage and its fraction done.
        in_memory: whether the coded rows are in memory.
    """

    codec: Any
    progress: Progress = field(default=silent, kw_only=True)
    in_memory: ClassVar[bool] = True

    @abstractmethod
    def find_codes(
        self, event: CodeDiscovery, entropy: Entropy, before_noise: Callable[[], None]
    ) -> Mapping[str, Any]:
        """Run the event that finds codes; called at most once in a fit, before `read`.

        Args:
            event: of the plan.
            entropy: of the open plan, for the choice of rows and the noise.
            before_noise: called between the reading and the noise; what it raises ends the search.
        """

    def coded_by(self, codec: Any) -> Self:
        """Return the same rows, to be coded with the codes that were found."""
        return replace(self, codec=codec)

    def reading(self, part: float) -> None:
        """Show how much has been read."""
        self.progress("reading", part)


@dataclass(frozen=True, eq=False, repr=False)
class _OneTable(FitReader[RowsRead]):
    """A table whose rows come into this process, or those that work for it.

    Attributes:
        table: whose header and records have been checked.
        engine: who reads: this process, workers of this machine, or a cluster.
    """

    codec: Codec
    table: Table
    engine: Engine | None = None

    def find_codes(
        self, event: CodeDiscovery, entropy: Entropy, before_noise: Callable[[], None]
    ) -> Mapping[str, Any]:
        """Find codes of the columns."""

        def told(part: float) -> None:
            self.progress("finding codes", part)

        return find_codes(self.table, self.codec.published, event, entropy, told, before_noise)


@dataclass(frozen=True, eq=False, repr=False)
class TableReader(_OneTable[Cohort]):
    """A table that is coded into memory."""

    def read(self, entropy: Entropy) -> Cohort:
        """Read the rows into memory."""
        coded = (self.table, self.codec, self.codec.published, entropy)
        return read_cohort(*coded, self.reading, engine=self.engine)


@dataclass(frozen=True, eq=False, repr=False)
class ShardsReader(_OneTable[RowSource]):
    """A table that is coded into shards on a disk, where this process or a cluster counts them.

    Attributes:
        folder: private, until the fit ends.
    """

    folder: Path = Path()
    in_memory: ClassVar[bool] = False

    def read(self, entropy: Entropy) -> RowSource:
        """Read the rows into the folder."""
        coded = (self.table, self.codec, self.codec.published, entropy)
        return read_shards(*coded, self.folder, progress=self.reading, engine=self.engine)


@dataclass(frozen=True, eq=False, repr=False)
class WarehouseReader(FitReader[RowSource]):
    """A table that stays in its database, which codes, caps and counts it.

    Attributes:
        table: in the database, whose types can be coded there.
        held: drops the coded rows when the fit ends.
    """

    codec: Codec
    table: WarehouseTable
    held: ExitStack
    in_memory: ClassVar[bool] = False

    def read(self, entropy: Entropy) -> RowSource:
        """Have the database code the rows."""
        from dpsynth.encoding import counted_rows

        self.progress("coding in the warehouse", 0.0)
        rows = self.held.enter_context(counted_rows(self.table, self.codec))
        self.progress("coding in the warehouse", 1.0)
        return rows

    def find_codes(
        self, event: CodeDiscovery, entropy: Entropy, before_noise: Callable[[], None]
    ) -> Mapping[str, Any]:
        """Refuse: `_in_warehouse` did before the charge."""
        raise _no_search()


@dataclass(frozen=True, eq=False, repr=False)
class LinkedReader(FitReader[Histories]):
    """Linked tables that are coded into memory, as histories of patients.

    Attributes:
        tables: by name, whose headers and records have been checked.
    """

    codec: HistoryCodec
    tables: Mapping[str, Table]

    def read(self, entropy: Entropy) -> Histories:
        """Read the histories into memory."""
        return read_histories(self.tables, self.codec, entropy, progress=self.reading)

    def find_codes(
        self, event: CodeDiscovery, entropy: Entropy, before_noise: Callable[[], None]
    ) -> Mapping[str, Any]:
        """Find codes of the columns of all tables."""

        def told(part: float) -> None:
            self.progress("finding codes", part)

        searched = (self.tables, self.codec.schema, event, entropy)
        return find_codes_of_patients(*searched, told, before_noise)


@contextmanager
def open_reader(
    data: Source | Mapping[str, Source],
    prepared: Prepared | PreparedCohort,
    execution: Execution,
    progress: Progress,
) -> Iterator[FitReader[Any]]:
    """Open the private rows of a fit, and check that the fit can read them as it is asked to.

    Args:
        data: as of `dpsynth.fit`.
        prepared: the fit, from public facts.
        execution: where rows are read, and where they lie.
        progress: called with a stage and its fraction done.

    Yields:
        The reader; what it read is there until the block ends.

    Raises:
        InputError: the tables are not as the schema says, or the fit cannot read them there.
            Nothing was charged, and no row was read.
    """
    if isinstance(prepared, PreparedCohort):
        _require_linked(execution)
        linked = prepared.codec.schema
        sources = linked_sources(data, linked)
        tables = open_linked(sources, linked)
        once = tuple({id(source): source for source in sources.values()}.values())
        yield LinkedReader(once, prepared.codec, tables, progress=progress)
        return
    source = as_source(cast(Source, data))
    table = open_table(source, prepared.schema)
    opened = ((source,), prepared.codec)
    if execution.in_warehouse:
        warehouse = _in_warehouse(table, prepared)
        with ExitStack() as held:
            yield WarehouseReader(*opened, warehouse, held, progress=progress)
        return
    with shards_folder(source, prepared, execution) as folder:
        paths = files_of(table.path) if isinstance(table, Divisible) else []
        workers = usual_workers(source) if execution.workers is None else execution.workers
        engine = open_engine(execution.engine, workers, paths=paths, folder=folder)
        if folder is None:
            yield TableReader(*opened, table, engine, progress=progress)
        else:
            yield ShardsReader(*opened, table, engine, folder, progress=progress)


def _require_linked(execution: Execution) -> None:
    """Refuse what fits of linked tables do not have.

    Raises:
        InputError: names the first of these options.
    """
    refused = {
        "workers": execution.workers not in (None, 1),
        "engine": execution.engine,
        "shards": execution.shards,
        "in_warehouse": execution.in_warehouse,
        "device": execution.device == "cuda",
        "ranks": execution.ranks,
    }
    for name, asked in refused.items():
        if asked:
            raise InputError(
                f"{name} is for a single table; a fit of linked tables reads and trains in this "
                f"process: leave {name} out"
            )


CODE_BYTES = 2


def shards_folder(
    data: NamedSource, prepared: Prepared, execution: Execution
) -> AbstractContextManager[Path | None]:
    """Give a private folder for shards of coded rows, or None if they are read into memory.

    It is made before anything is charged, so that a folder that cannot be written costs nothing.

    Args:
        data: the source; the size of a file is public.
        prepared: the fit, from public facts; the shards of as many rows as its schema declares have
            to have room on the disk.
        execution: where the folder is made, if somebody asks for one. Other machines only see a
            place that is asked for, and processes that train together have their units in memory.

    Raises:
        InputError: the generator needs rows in memory, and a place was asked for; or nothing can be
            written there.
    """
    place, spec = execution.shards, spec_of(prepared.model)
    ranked = spec.on_ranks and execution.ranks is not None
    counted = spec.in_shards and not ranked and not prepared.plan.has(PRODUCTS)
    if place is None:
        if counted and execution.engine is None and is_large(data):
            return scratch_folder(room=_room(prepared))
        return nullcontext()
    if not spec.in_shards:
        able = ", ".join(names_of(lambda spec: spec.in_shards))
        raise InputError(
            f"model '{spec.name}' needs its rows in memory: for shards, choose one of {able}"
        )
    if ranked:
        raise InputError(
            "processes of torchrun keep their units in memory; leave out the folder for shards"
        )
    if not counted:
        raise InputError(
            "so few units are fitted by numbers about all pairs at once, which need the rows in "
            "memory; leave out the folder for shards"
        )
    return scratch_folder(place, _room(prepared))


def _room(prepared: Prepared) -> int:
    """Return the bytes that the shards may take: a public fact.

    A row is written once as it is dealt, with its unit and its order (24 bytes), once in a place
    among its unit's rows, which may be half empty, and once for batches; a code takes two bytes.
    """
    columns = len(prepared.domain.features)
    return prepared.schema.rows.value * (24 + 4 * CODE_BYTES * columns)


def _in_warehouse(table: Table, prepared: Prepared) -> WarehouseTable:
    """Find a table in its database, if a fit can count it there.

    Raises:
        InputError: the generator or its plan needs rows, the table is in no warehouse that dpsynth
            knows, or a column cannot be coded there. Nothing was charged.
    """
    if not spec_of(prepared.model).in_warehouse:
        able = ", ".join(names_of(lambda spec: spec.in_warehouse))
        raise InputError(
            f"model '{prepared.model}' reads rows: in a warehouse, choose one of {able}"
        )
    if prepared.plan.has(DISCOVERY):
        raise _no_search()
    if prepared.plan.has(PRODUCTS):
        raise InputError(
            "so few units are fitted by numbers about all pairs at once, which need the rows in "
            "memory; leave out --in-warehouse"
        )
    return staying_table(table, prepared.schema)


def staying_table(table: Table, schema: Schema) -> WarehouseTable:
    """Find a table in its database, whose rows can be coded there.

    Args:
        table: whose header and types have been checked.
        schema: of the table.

    Raises:
        InputError: the table is in no warehouse that dpsynth knows, or a column cannot be coded
            there. Nothing was charged.
    """
    need("ibis")
    from dpsynth.encoding import require_expressible
    from dpsynth.tables import warehouse_table

    warehouse = warehouse_table(table)
    require_expressible(schema, warehouse)
    return warehouse


def _no_search() -> InputError:
    return InputError("codes are discovered in the rows; leave out --in-warehouse")
