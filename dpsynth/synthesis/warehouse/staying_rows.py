"""A fit whose rows stay in their warehouse, which codes, caps and counts them.

What cannot be counted there is refused before anything is charged, by public facts and by the types
that the warehouse declares. The rows are coded after the charge, and dropped when the fit ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from dpsynth._util.dependencies import need
from dpsynth.encoding import RowSource
from dpsynth.errors import InputError
from dpsynth.models import DISCOVERY, Progress
from dpsynth.privacy import Entropy
from dpsynth.privacy.pair_statistics import PRODUCTS
from dpsynth.schema import Schema
from dpsynth.synthesis.preparation import Prepared
from dpsynth.synthesis.shards_folder import COUNTING
from dpsynth.tables import Table


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
    from dpsynth.encoding.warehouse import counted_rows, require_expressible
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
