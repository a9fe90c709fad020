"""A request: which statistics an office wants of a table, read strictly from a document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpsynth._util.messages import did_you_mean, listed
from dpsynth._util.strict_yaml import parse_json, parse_yaml
from dpsynth.encoding import Codec
from dpsynth.encoding.code_values import code_ends, code_values
from dpsynth.errors import InputError
from dpsynth.files import cannot_read
from dpsynth.schema import Schema
from dpsynth.stats.axes import Axis
from dpsynth.stats.counts import Counts
from dpsynth.stats.means import Means
from dpsynth.stats.quantiles import Quantiles
from dpsynth.stats.ranking import Ranking
from dpsynth.stats.reading import check_keys, table_schema, two_numbers
from dpsynth.stats.statistic import Statistic

KEYS = ("schema", "confidence", "statistics")
COMMON = ("name", "by", "weight")
MAX_STATISTICS = 200
MAX_NAME = 80
MAX_CONFIDENCE = 0.999999  # nearer 1, an interval has no end
MAX_WEIGHT = 1e6
MAX_SHARES = 99


@dataclass(frozen=True, eq=False)
class Request:
    """Statistics of one table.

    Attributes:
        document: as it was written, with the defaults filled in.
        schema: of the table.
        codec: of the schema.
        confidence: of every interval.
        statistics: in order.
    """

    document: dict[str, Any]
    schema: Schema
    codec: Codec
    confidence: float
    statistics: tuple[Statistic, ...]

    def __repr__(self) -> str:
        """Name the schema."""
        return f"<Request of {len(self.statistics)} statistics of schema {self.schema.name}>"

    @classmethod
    def load(cls, path: str | Path) -> Request:
        """Read a request from YAML or JSON; the schema's path is relative to it.

        Raises:
            InputError: the document is not exactly a request, with the place and what to do.
        """
        place = Path(path)
        try:
            content = place.read_bytes()
        except OSError as error:
            raise InputError(f"{place} cannot be read: {cannot_read(error)}") from None
        parse = parse_json if place.suffix.lower() == ".json" else parse_yaml
        document = parse(content, str(place))
        if not isinstance(document, dict):
            raise InputError(f"{place} is not a request: it must be an object with statistics")
        where = document.get("schema")
        if isinstance(where, str) and (Path(path).parent / where).is_file():
            document = document | {"schema": str(Path(path).parent / where)}
        return cls.from_dict(document)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Request:
        """Read a request from plain values; its schema may be a name, a path, or a document.

        Raises:
            InputError: as `load`.

        Example:
            >>> request = Request.from_dict({"schema": "demo", "statistics": [
            ...     {"name": "patients by sex", "count": "patients", "by": ["sex"]},
            ...     {"name": "age", "quantiles": "age", "shares": [0.25, 0.5, 0.75]}]})
            >>> [statistic.name for statistic in request.statistics]
            ['patients by sex', 'age']
        """
        check_keys(document, "the request", KEYS, ("schema", "statistics"))
        schema = table_schema(document["schema"])
        confidence = document.get("confidence", 0.95)
        if isinstance(confidence, bool) or not isinstance(confidence, int | float):
            raise InputError("confidence must be a number such as 0.95")
        if not 0.5 <= confidence <= MAX_CONFIDENCE:
            raise InputError(f"confidence must be at least 0.5 and at most {MAX_CONFIDENCE}")
        entries = document["statistics"]
        if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_STATISTICS:
            raise InputError(f"statistics must be a list of 1 to {MAX_STATISTICS} entries")
        codec = Codec(schema)
        reader = _Reader(schema, codec)
        found = tuple(reader.statistic(entry, place) for place, entry in enumerate(entries, 1))
        names = [one.name.lower() for one in found]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"two statistics are called '{name}'; give each its own name")
        whole = {
            "schema": schema.to_dict(),
            "confidence": float(confidence),
            "statistics": [dict(entry) for entry in entries],
        }
        return cls(whole, schema, codec, float(confidence), found)


@dataclass(frozen=True, eq=False)
class _Reader:
    """Reads entries of a request against a schema."""

    schema: Schema
    codec: Codec

    def statistic(self, entry: Any, number: int) -> Statistic:
        """Read one entry."""
        place = f"statistic {number}"
        if not isinstance(entry, Mapping):
            raise InputError(f"{place} must be an object with a name and what it asks for")
        kinds = [kind for kind in KINDS if kind in entry]
        name = entry.get("name")
        if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME:
            raise InputError(f"{place} needs a name of at most {MAX_NAME} characters")
        if not name.isprintable() or ":" in name:
            raise InputError(f"the name of {place} has a colon, or a sign that cannot be printed")
        place = f"statistic '{name}'"
        if len(kinds) != 1:
            raise InputError(f"{place} must ask for exactly one of {listed(list(KINDS))}")
        read, more = KINDS[kinds[0]]
        check_keys(entry, place, (*COMMON, kinds[0], *more), ("name",))
        weight = entry.get("weight", 1)
        if (
            isinstance(weight, bool)
            or not isinstance(weight, int | float)
            or not 0 < weight <= MAX_WEIGHT
        ):
            raise InputError(f"the weight of {place} must be a number above 0, up to a million")
        try:
            return read(self, name, float(weight), entry)
        except InputError as error:
            raise InputError(f"{place}: {error}") from None

    def axes(self, entry: Mapping[str, Any]) -> tuple[Axis, ...]:
        """Read by what a statistic is broken down."""
        listed_axes = entry.get("by", [])
        if not isinstance(listed_axes, list):
            raise InputError("'by' must be a list of columns")
        axes = tuple(self.axis(item) for item in listed_axes)
        names = [axis.column for axis in axes]
        if len(set(names)) < len(names):
            raise InputError("'by' names a column twice")
        return axes

    def axis(self, item: Any) -> Axis:
        """Read a column, or a column with its cuts."""
        if isinstance(item, str):
            return Axis.of(self.codec, item, None)
        if isinstance(item, Mapping) and len(item) == 1:
            [(name, cuts)] = item.items()
            numbers = isinstance(cuts, list) and all(
                isinstance(cut, int | float) and not isinstance(cut, bool) for cut in cuts
            )
            if isinstance(name, str) and (numbers or isinstance(cuts, str)):
                return Axis.of(self.codec, name, cuts)
        raise InputError("an entry of 'by' is a column, or {column: [cuts]}, or {column: month}")

    def column(self, name: Any, what: str) -> int:
        """Find a column that is modelled."""
        if not isinstance(name, str) or name not in self.codec.names:
            meant = did_you_mean(str(name), self.codec.names)
            raise InputError(f"{what} must name a column of the schema{meant}")
        return self.codec.names.index(name)

    def count(self, name: str, weight: float, entry: Mapping[str, Any]) -> Statistic:
        """Read a table of counts."""
        if (what := entry["count"]) not in ("patients", "rows"):
            raise InputError("'count' is either patients or rows")
        return Counts(name, weight, self.axes(entry), self._most, what == "patients", False)

    def mean(self, name: str, weight: float, entry: Mapping[str, Any]) -> Statistic:
        """Read means, between the column's bounds or narrower ones."""
        of = entry["mean"]
        place = self.column(of, "'mean'")
        column = self.codec.schema.modelled[place]
        values = code_values(column, self.schema.dialect.decimal)
        if not column.kind.is_number or not np.isfinite(values).any():
            raise InputError(f"column '{of}' has no numbers, so it has no mean")
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        if "clip" in entry:
            clip = entry["clip"]
            if not two_numbers(clip) or not low <= clip[0] < clip[1] <= high:
                raise InputError(
                    f"'clip' must be two numbers that rise, within the bounds {low:g} and {high:g}"
                )
            low, high = map(float, clip)
        if low == high:
            raise InputError(f"column '{of}' has one value only")
        shared = (name, weight, self.axes(entry), self._most, False, self._per_unit(entry))
        return Means(*shared, of, place, np.clip(values, low, high), low, high)

    def proportion(self, name: str, weight: float, entry: Mapping[str, Any]) -> Statistic:
        """Read the proportion of rows that have one of some values."""
        of = entry["proportion"]
        if not isinstance(of, Mapping) or len(of) != 1:
            raise InputError("'proportion' is {column: [values]}")
        [(column, levels)] = of.items()
        place = self.column(column, "'proportion'")
        axis = Axis.of(self.codec, column, None)
        wanted = [str(level) for level in levels] if isinstance(levels, list) else []
        unknown = [level for level in wanted if level not in axis.labels]
        if not wanted or unknown:
            raise InputError(
                f"'proportion' must list values of column '{column}': {listed(axis.labels)}"
            )
        labels = np.array(axis.labels, dtype=object)[axis.cell_of]
        values = np.where(np.isin(labels, wanted), 1.0, 0.0)
        values[labels == "(missing)"] = np.nan
        shared = (name, weight, self.axes(entry), self._most, False, self._per_unit(entry))
        return Means(*shared, column, place, values, 0.0, 1.0)

    def quantiles(self, name: str, weight: float, entry: Mapping[str, Any]) -> Statistic:
        """Read quantiles of an ordered column."""
        of = entry["quantiles"]
        place = self.column(of, "'quantiles'")
        ordered = self.codec.cells[place]
        if ordered < 2:
            raise InputError(f"column '{of}' has no order, so it has no quantiles")
        shares = entry.get("shares", [0.25, 0.5, 0.75])
        if not isinstance(shares, list) or not 1 <= len(shares) <= MAX_SHARES:
            raise InputError(f"'shares' must be a list of 1 to {MAX_SHARES} numbers")
        if not all(isinstance(share, float) and 0 < share < 1 for share in shares):
            raise InputError("'shares' must be numbers between 0 and 1")
        column = self.codec.schema.modelled[place]
        first, _ = code_ends(column, self.schema.dialect.decimal)
        values = tuple(first.iloc[:ordered].tolist())
        shared = (name, weight, self.axes(entry), self._most, False, self._per_unit(entry))
        return Quantiles(*shared, of, place, values, tuple(shares))

    def top(self, name: str, weight: float, entry: Mapping[str, Any]) -> Statistic:
        """Read a ranking of a column's values."""
        if "by" in entry:
            raise InputError("a ranking is of the whole table; remove 'by'")
        axis = self.axis(entry["top"])
        most = entry.get("most", 10)
        ranking = Ranking(name, weight, (axis,), self._most, True, False, 1)
        if type(most) is not int or not 1 <= most <= ranking.candidates:
            raise InputError(f"'most' must be a whole number from 1 to {ranking.candidates}")
        return replace(ranking, most=most)

    @property
    def _most(self) -> int:
        return self.schema.unit.max_rows

    def _per_unit(self, entry: Mapping[str, Any]) -> bool:
        per = entry.get("per", "row")
        if per not in ("patient", "row"):
            raise InputError("'per' is either patient or row")
        return bool(per == "patient" and self._most > 1)


_Read = Callable[[_Reader, str, float, Mapping[str, Any]], Statistic]
KINDS: dict[str, tuple[_Read, tuple[str, ...]]] = {
    "count": (_Reader.count, ()),
    "mean": (_Reader.mean, ("clip", "per")),
    "proportion": (_Reader.proportion, ("per",)),
    "quantiles": (_Reader.quantiles, ("shares", "per")),
    "top": (_Reader.top, ("most",)),
}
