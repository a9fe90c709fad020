"""Rows that stay in their warehouse: what a statistic needs of them, as patterns of units.

A statistic depends on the rows of a unit and on no other rows until its mechanism adds up. So the
units with the same codes in the columns that it reads add the same, and one of them stands for all,
with their number. The sums are those of the rows themselves, and so is the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import numpy as np

from dpsynth._util.dependencies import need
from dpsynth._util.short_repr import short_repr
from dpsynth.encoding import Codec
from dpsynth.encoding.warehouse import WarehouseRows
from dpsynth.privacy import Entropy
from dpsynth.schema import Schema
from dpsynth.stats.rows import Asked, Rows
from dpsynth.tables import Table

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
    from dpsynth.encoding.warehouse import counted_rows, require_expressible
    from dpsynth.tables import warehouse_table

    warehouse = warehouse_table(table)
    require_expressible(schema, warehouse)
    with ExitStack() as until_counted:

        def counted(_: Entropy) -> StayingRows:
            rows = until_counted.enter_context(counted_rows(warehouse, codec, numbered=True))
            return StayingRows(rows)

        yield counted
