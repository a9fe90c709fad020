"""Where the coded rows of a fit lie: in memory, in shards on a disk, in their warehouse.

A fit whose rows stay in their warehouse, which codes, caps and counts them.

What cannot be counted there is refused before anything is charged, by public facts and by the types
that the warehouse declares. The rows are coded after the charge, and dropped when the fit ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path

from dpsynth._util.dependencies import need
from dpsynth.encoding import RowSource, is_large
from dpsynth.errors import InputError
from dpsynth.files import scratch_folder
from dpsynth.models import DISCOVERY, Progress
from dpsynth.privacy import Entropy
from dpsynth.privacy.pair_statistics import PRODUCTS
from dpsynth.schema import Schema
from dpsynth.synthesis.preparation import Prepared
from dpsynth.tables import NamedSource, Table

COUNTING = (
    "independent",
    "mixture",
    "distilled",
)  # generators that ask for no row, only for counts
CODE_BYTES = 2
BATCHED = ("autoregressive", "tvae")  # those that count, and then train on batches of units


def shards_folder(
    data: NamedSource,
    prepared: Prepared,
    place: str | Path | None,
    *,
    rows: int,
    ranks: bool = False,
    distant: bool = False,
) -> AbstractContextManager[Path | None]:
    """Give a private folder for shards of coded rows, or None if they are read into memory.

    It is made before anything is charged, so that a folder that cannot be written costs nothing.

    Args:
        data: the source; the size of a file is public.
        prepared: the fit, from public facts.
        place: where the folder is made, if somebody asks for one.
        rows: as many as the schema declares; their shards have to have room on the disk.
        ranks: whether several processes train the network; each has its units in memory.
        distant: whether other machines read the table: they only see a place that is asked for.

    Raises:
        InputError: the generator needs rows in memory, and a place was asked for; or nothing can be
            written there.
    """
    able = COUNTING if ranks else (*COUNTING, *BATCHED)
    counted = prepared.model in able and not prepared.plan.has(PRODUCTS)
    if place is None:
        if counted and not distant and is_large(data):
            return scratch_folder(room=_room(prepared, rows))
        return nullcontext()
    if prepared.model not in (*COUNTING, *BATCHED):
        raise InputError(
            f"model '{prepared.model}' needs its rows in memory: for shards, choose one of "
            f"{', '.join((*COUNTING, *BATCHED))}"
        )
    if prepared.model not in able:
        raise InputError(
            "processes of torchrun keep their units in memory; leave out the folder for shards"
        )
    if not counted:
        raise InputError(
            "so few units are fitted by numbers about all pairs at once, which need the rows in "
            "memory; leave out the folder for shards"
        )
    return scratch_folder(place, _room(prepared, rows))


def _room(prepared: Prepared, rows: int) -> int:
    """Return the bytes that the shards may take: a public fact.

    A row is written once as it is dealt, with its unit and its order (24 bytes), once in a place
    among its unit's rows, which may be half empty, and once for batches; a code takes two bytes.
    """
    return rows * (24 + 4 * CODE_BYTES * len(prepared.domain.features))


@contextmanager
def staying_rows(
    table: Table, schema: Schema, prepared: Prepared, progress: Progress
) -> Iterator[Callable[[Entropy], RowSource]]:
    """Check that a fit can count rows where they lie; yield what codes them there.

    Args:
        table: whose header and types have been checked.
        schema: of the table.
        prepared: the fit, from public facts.
        progress: called when the warehouse begins to code.

    Yields:
        What `charged_fit` calls to read: the rows can be counted until the block ends.

    Raises:
        InputError: the generator or its plan needs rows, the table is in no warehouse that dpsynth
            knows, or a column cannot be coded there. Nothing was charged.
    """
    if prepared.model not in COUNTING:
        raise InputError(
            f"model '{prepared.model}' reads rows: in a warehouse, choose one of "
            f"{', '.join(COUNTING)}"
        )
    if prepared.plan.has(DISCOVERY):
        raise InputError("codes are discovered in the rows; leave out --in-warehouse")
    if prepared.plan.has(PRODUCTS):
        raise InputError(
            "so few units are fitted by numbers about all pairs at once, which need the rows in "
            "memory; leave out --in-warehouse"
        )
    need("ibis")
    from dpsynth.encoding import counted_rows, require_expressible
    from dpsynth.tables import warehouse_table

    warehouse = warehouse_table(table)
    require_expressible(schema, warehouse)
    with ExitStack() as until_counted:

        def counted(_: Entropy) -> RowSource:
            progress("coding in the warehouse", 0.0)
            rows = until_counted.enter_context(counted_rows(warehouse, prepared.codec))
            progress("coding in the warehouse", 1.0)
            return rows

        yield counted
