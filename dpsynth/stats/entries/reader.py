"""Entries of a request: one reader for each kind of statistic, strict, from plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from math import prod
from typing import Any

import numpy as np

from dpsynth._util.messages import did_you_mean, listed
from dpsynth.encoding import Codec
from dpsynth.encoding.code_values import code_ends, code_values
from dpsynth.errors import InputError
from dpsynth.privacy.answers import NOWHERE
from dpsynth.schema import Schema, unit_of
from dpsynth.stats.axes import MISSING, Axis
from dpsynth.stats.comparisons import Differences, Independence, Survival
from dpsynth.stats.entries import events, series
from dpsynth.stats.entries.checks import check_keys, two_numbers
from dpsynth.stats.quantiles import Quantiles
from dpsynth.stats.ranking import Ranking
from dpsynth.stats.statistic import Statistic
from dpsynth.stats.tables import Counts, KeyTable, Means, Small, Variances, undeclared_in

COMMON = ("name", "by", "weight")
MAX_NAME = 80
MAX_WEIGHT = 1e6
MAX_SHARES = 99
MAX_COMPARED = 400  # cells of a table, or intervals of all groups, that a test compares


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads entries of a request against a schema.

    Attributes:
        schema: of the table.
        codec: of the schema.
    """

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
        if type(weight) not in (int, float) or not 0 < weight <= MAX_WEIGHT:
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
        keys, declared = undeclared_in(self.schema, entry)
        shared = (name, weight, self.axes(declared), self._most, what == "patients", False)
        return KeyTable.of(shared, self.schema, keys, entry["by"]) if keys else Counts(*shared)

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
        axes = self.axes(entry)
        shared = (name, weight, axes, self._most, False, self._per_unit(entry))
        clipped, small = np.clip(values, low, high), Small.of(entry, axes)
        return Means(*shared, of, place, clipped, low, high, small, unit_of(column))

    def variance(self, name: str, weight: float, entry: Mapping[str, Any]) -> Statistic:
        """Read variances, between the column's bounds or narrower ones."""
        means = self.mean(name, weight, {**entry, "mean": entry["variance"]})
        assert isinstance(means, Means)
        return Variances(**{one.name: getattr(means, one.name) for one in fields(means)})

    def proportion(self, name: str, weight: float, entry: Mapping[str, Any]) -> Statistic:
        """Read the proportion of rows that have one of some values."""
        of = entry["proportion"]
        if not isinstance(of, Mapping) or len(of) != 1:
            raise InputError("'proportion' is {column: [values]}")
        [(column, levels)] = of.items()
        axis, wanted = self.values(column, levels, "'proportion'")
        place = axis.place
        labels = np.array(axis.labels, dtype=object)[axis.cell_of]
        values = np.where(np.isin(labels, wanted), 1.0, 0.0)
        values[labels == "(missing)"] = np.nan
        axes = self.axes(entry)
        shared = (name, weight, axes, self._most, False, self._per_unit(entry))
        return Means(*shared, column, place, values, 0.0, 1.0, Small.of(entry, axes))

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

    def values(self, column: Any, levels: Any, what: str) -> tuple[Axis, list[str]]:
        """Find a column and some of its values, as texts."""
        self.column(column, what)
        axis = Axis.of(self.codec, column, None)
        wanted = [str(level) for level in levels] if isinstance(levels, list) else []
        if not wanted or any(level not in axis.labels for level in wanted):
            raise InputError(f"{what} must list values of column '{column}': {listed(axis.labels)}")
        return axis, wanted

    def survival(self, name: str, weight: float, entry: Mapping[str, Any]) -> Statistic:
        """Read times to an event."""
        of, cuts = entry["survival"], entry.get("cuts")
        if not isinstance(of, Mapping) or set(of) != {"time", "event", "of"}:
            raise InputError("'survival' is {time: column, event: column, of: [values]}")
        self.column(of["time"], "'time'")
        if not isinstance(cuts, list):
            raise InputError("'cuts' must list the times at which survival is told")
        time = self.axis({of["time"]: cuts}).known()
        axis, wanted = self.values(of["event"], of["of"], "'of'")
        if MISSING in wanted or not set(axis.labels) - {MISSING, *wanted}:
            raise InputError("'of' must leave a value of those without the event, and no gap")
        labels = np.array(axis.labels, dtype=object)[axis.cell_of]
        state = np.where(np.isin(labels, wanted), 0, np.where(labels == MISSING, NOWHERE, 1))
        groups = self.axes(entry)
        if {of["time"], of["event"]} & {group.column for group in groups}:
            raise InputError("'by' names the time or the event itself")
        if prod(group.size for group in groups) * len(cuts) > MAX_COMPARED:
            raise InputError(f"it has more than {MAX_COMPARED} intervals of all groups together")
        happened = Axis(axis.column, ("event", "censored"), state, axis.place)
        shared = (name, weight, groups, self._most, False, self._most > 1)
        return Survival(*shared, time, happened, tuple(map(float, cuts)))

    def compare(self, name: str, weight: float, entry: Mapping[str, Any]) -> Statistic:
        """Read the difference of two groups' means; each patient counts the same."""
        between = entry.get("between")
        if not isinstance(between, Mapping) or len(between) != 1:
            raise InputError("'between' is {column: [a, b]}")
        if "by" in entry:
            raise InputError("a comparison is of two groups; remove 'by'")
        [(column, levels)] = between.items()
        axis, wanted = self.values(column, levels, "'between'")
        if len(wanted) != 2 or wanted[0] == wanted[1]:
            raise InputError(f"'between' must name two values of column '{column}'")
        mean = {"mean": entry["compare"], "per": "patient"}
        mean |= {"clip": entry["clip"]} if "clip" in entry else {}
        means = self.mean(name, weight, mean)
        assert isinstance(means, Means)
        parts = {one.name: getattr(means, one.name) for one in fields(means)}
        return Differences(**parts | {"axes": (axis.only(wanted),)})

    def independence(self, name: str, weight: float, entry: Mapping[str, Any]) -> Statistic:
        """Read two columns that may depend on each other."""
        of = entry["independence"]
        if not isinstance(of, list) or len(of) != 2:
            raise InputError("'independence' must list two columns")
        if "by" in entry:
            raise InputError("independence is of two columns; remove 'by'")
        axes = tuple(self.axis(item).known() for item in of)
        if axes[0].column == axes[1].column:
            raise InputError("'independence' names a column twice")
        if min(axis.size for axis in axes) < 2 or prod(axis.size for axis in axes) > MAX_COMPARED:
            raise InputError(
                f"its table must have 2 rows and columns, and at most {MAX_COMPARED} cells"
            )
        return Independence(name, weight, axes, self._most, False, self._most > 1)

    @property
    def _most(self) -> int:
        return self.schema.unit.max_rows

    def _per_unit(self, entry: Mapping[str, Any]) -> bool:
        per = entry.get("per", "row")
        if per not in ("patient", "row"):
            raise InputError("'per' is either patient or row")
        return bool(per == "patient" and self._most > 1)


_Read = Callable[[Reader, str, float, Mapping[str, Any]], Statistic]
KINDS: dict[str, tuple[_Read, tuple[str, ...]]] = {
    "count": (series.count, ("smooth",)),
    "occupancy": (series.occupancy, ("period", "longest", "smooth")),
    "mean": (Reader.mean, ("clip", "per", "small")),
    "variance": (Reader.variance, ("clip", "per")),
    "proportion": (Reader.proportion, ("per", "small")),
    "quantiles": (Reader.quantiles, ("shares", "per")),
    "top": (Reader.top, ("most",)),
    "survival": (events.survival, ("cuts",)),
    "compare": (Reader.compare, ("between", "clip")),
    "independence": (Reader.independence, ()),
}
