"""What the readers of some kinds of statistics ask of the reader of all entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from dpsynth.encoding import Codec
from dpsynth.schema import Schema
from dpsynth.stats.axes import Axis
from dpsynth.stats.statistic import Statistic


class Columns(Protocol):
    """What is asked of a reader of entries."""

    @property
    def schema(self) -> Schema:
        """The schema of the table."""

    @property
    def codec(self) -> Codec:
        """The codec of the schema."""

    def axes(self, entry: Mapping[str, Any]) -> tuple[Axis, ...]:
        """Read by what a statistic is broken down."""

    def column(self, name: Any, what: str) -> int:
        """Find a column that is modelled."""

    def values(self, column: Any, levels: Any, what: str) -> tuple[Axis, list[str]]:
        """Find a column and some of its values, as texts."""

    def survival(self, name: str, weight: float, entry: Mapping[str, Any]) -> Statistic:
        """Read times to an event."""

    def count(self, name: str, weight: float, entry: Mapping[str, Any]) -> Statistic:
        """Read a table of counts."""
