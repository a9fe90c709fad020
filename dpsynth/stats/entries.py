"""Entries of a request: one reader for each kind of statistic, strict, from plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from math import prod
from typing import Any, Protocol

import numpy as np

from dpsynth._util.arguments import type_name
from dpsynth._util.messages import did_you_mean, listed
from dpsynth.encoding import Codec
from dpsynth.encoding.code_values import code_ends, code_values
from dpsynth.errors import InputError
from dpsynth.privacy.answer_events import MAX_PERIODS
from dpsynth.privacy.answers import NOWHERE
from dpsynth.schema import (
    AnySchema,
    LinkedSchema,
    Schema,
    any_from_dict,
    as_declared,
    load_any,
    unit_of,
)
from dpsynth.schema.relations import converted
from dpsynth.schema.types import DAY, TYPES
from dpsynth.stats.axes import MISSING, PERIODS, Axis, Periods, window_of
from dpsynth.stats.comparisons import Differences, Independence
from dpsynth.stats.counts import Counts, Ranking
from dpsynth.stats.keys import KeyTable, undeclared_in
from dpsynth.stats.means import Means, Small, Variances
from dpsynth.stats.quantiles import Quantiles
from dpsynth.stats.series import LineOfCounts, Occupancy, Stretch
from dpsynth.stats.statistic import Statistic
from dpsynth.stats.survival import NO_EVENT, Competing, Survival

MAX_KINDS = 10
_MAX_COMPARED = 400  # intervals of all groups and kinds together


def survival(reader: Columns, name: str, weight: float, entry: Mapping[str, Any]) -> Statistic:
    """Read times to an event, or to one of several: ``of: {death: [values], move: [values]}``."""
    of = entry["survival"]
    kinds = of.get("of") if isinstance(of, Mapping) else None
    if not isinstance(kinds, Mapping):
        return reader.survival(name, weight, entry)
    if not 2 <= len(kinds) <= MAX_KINDS or NO_EVENT in kinds:
        raise InputError(f"'of' names 2 to {MAX_KINDS} events, none of them '{NO_EVENT}'")
    if not all(isinstance(kind, str) and kind.isprintable() and kind.strip() for kind in kinds):
        raise InputError("each event in 'of' has a name and a list of values")
    values = [reader.values(of.get("event"), levels, "'of'")[1] for levels in kinds.values()]
    every = [value for levels in values for value in levels]
    if len(set(every)) < len(every):
        twice = listed(sorted({value for value in every if every.count(value) > 1}))
        raise InputError(f"'of' has a value of several events: {twice}")
    found = reader.survival(name, weight, {**entry, "survival": {**of, "of": every}})
    assert isinstance(found, Survival)
    if prod(axis.size for axis in found.axes) * len(found.cuts) * len(kinds) > _MAX_COMPARED:
        raise InputError(f"it has more than {_MAX_COMPARED} intervals of all groups and events")
    axis, _ = reader.values(of["event"], every, "'of'")
    labels, state = np.array(axis.labels, dtype=object)[axis.cell_of], found.state.cell_of
    state = np.where(state == NOWHERE, NOWHERE, len(kinds))
    for place, levels in enumerate(values):
        state = np.where(np.isin(labels, levels), place, state)
    kept = {one.name: getattr(found, one.name) for one in fields(found)}
    axis = Axis(axis.column, (*kinds, "censored"), state, axis.place)
    return Competing(**kept | {"state": axis})


_LENGTHS = {"hours": 3600, "days": DAY}


def count(reader: Columns, name: str, weight: float, entry: Mapping[str, Any]) -> Statistic:
    """Read a table of counts, with a smooth line along its only axis of periods if wanted."""
    counts = reader.count(name, weight, entry)
    if not _smooth(entry):
        return counts
    if not isinstance(counts, Counts):
        raise InputError("codes that nobody declared have no smooth line; leave 'smooth' out")
    items = entry.get("by", [])
    times = [
        place
        for place, item in enumerate(items)
        if isinstance(item, Mapping) and isinstance(next(iter(item.values())), str)
    ]
    if len(times) != 1:
        raise InputError("'smooth' needs one column in 'by' with a period: {admitted: month}")
    parts = {one.name: getattr(counts, one.name) for one in fields(counts)}
    return LineOfCounts(**parts, time=times[0])


def occupancy(reader: Columns, name: str, weight: float, entry: Mapping[str, Any]) -> Statistic:
    """Read who is there in each period."""
    of, period = entry["occupancy"], entry.get("period", "day")
    if not isinstance(of, Mapping) or ("until" in of) == ("for" in of):
        raise InputError(
            "'occupancy' is {from: column, until: column}, or {from: column, for: column}, where "
            "the second is how many days, or with 'in: hours' hours, a stay lasts"
        )
    more = ("until",) if "until" in of else ("for", "in")
    check_keys(of, "'occupancy'", ("from", *more), ("from", more[0]))
    if period not in PERIODS:
        raise InputError(f"'period' is one of {listed(list(PERIODS))}")
    begin = _moment(reader, of["from"], "'from'", period)
    if "until" in of:
        end = _moment(reader, of["until"], "'until'", period)
        window = _window(begin, max(begin, end, key=lambda one: np.nanmax(one.seconds)), period)
        most = window.size
    else:
        end = _length(reader, of)
        window = _window(begin, begin, period)
        most = window.most(float(np.nanmax(end.seconds)))
    longest = entry.get("longest", most)
    if type(longest) is not int or not 1 <= longest <= window.size:
        raise InputError(f"'longest' is a whole number of periods, from 1 to {window.size:,}")
    groups = reader.axes(entry)
    if {axis.place for axis in groups} & {begin.place, end.place}:
        raise InputError("'by' names the begin or the end of stays")
    return Occupancy(
        name,
        weight,
        groups,
        reader.schema.unit.max_rows,
        True,
        False,
        window,
        begin,
        end,
        "for" in of,
        min(longest, most),
        _smooth(entry),
    )


def _smooth(entry: Mapping[str, Any]) -> bool:
    smooth = entry.get("smooth", False)
    if not isinstance(smooth, bool):
        raise InputError("'smooth' is either true or false")
    return smooth


def _moment(reader: Columns, name: Any, what: str, period: str) -> Stretch:
    """Find a column of dates or times that is read as finely as periods are."""
    place = reader.column(name, what)
    column = reader.codec.schema.modelled[place]
    if not column.kind.is_time:
        raise InputError(f"{what} must name a column of dates, or of dates and times")
    values = code_values(column, reader.schema.dialect.decimal)
    window_of(column, values[np.isfinite(values)], period)
    return Stretch(place, converted(values, column.kind, TYPES["datetime"]))


def _length(reader: Columns, of: Mapping[str, Any]) -> Stretch:
    """Find a column of lengths of stays."""
    place = reader.column(of["for"], "'for'")
    column = reader.codec.schema.modelled[place]
    values = code_values(column, reader.schema.dialect.decimal)
    if not column.kind.is_number or not np.isfinite(values).any() or np.nanmin(values) < 0:
        raise InputError("'for' must name a column of numbers from 0: how long stays last")
    if not column.kind.is_plain:
        if "in" in of:
            raise InputError("'in' is for numbers: a duration says its own unit; remove it")
        return Stretch(place, values)
    unit = of.get("in", "days")
    if unit not in _LENGTHS:
        raise InputError("'in' is either days or hours")
    return Stretch(place, values * _LENGTHS[unit])


def _window(first: Stretch, last: Stretch, period: str) -> Periods:
    window = Periods.of(np.nanmin(first.seconds), np.nanmax(last.seconds), period)
    if window.size > MAX_PERIODS:
        raise InputError(f"it has {window.size:,} periods; {MAX_PERIODS:,} are the most")
    return window


COMMON = ("name", "by", "weight")
MAX_NAME = 80
MAX_WEIGHT = 1e6
MAX_SHARES = 99
MAX_COMPARED = 400  # cells of a table, or intervals of all groups, that a test compares


@dataclass(frozen=True, eq=False)
class EntryReader:
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


_Read = Callable[[EntryReader, str, float, Mapping[str, Any]], Statistic]
KINDS: dict[str, tuple[_Read, tuple[str, ...]]] = {
    "count": (count, ("smooth",)),
    "occupancy": (occupancy, ("period", "longest", "smooth")),
    "mean": (EntryReader.mean, ("clip", "per", "small")),
    "variance": (EntryReader.variance, ("clip", "per")),
    "proportion": (EntryReader.proportion, ("per", "small")),
    "quantiles": (EntryReader.quantiles, ("shares", "per")),
    "top": (EntryReader.top, ("most",)),
    "survival": (survival, ("cuts",)),
    "compare": (EntryReader.compare, ("between", "clip")),
    "independence": (EntryReader.independence, ()),
}


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


def read_any_schema(value: Any) -> AnySchema:
    """Read a schema of one table, or of linked ones, from its name, its path, or its document.

    Raises:
        InputError: it is none, or a draft.
    """
    if not isinstance(value, str | Mapping):
        raise InputError("schema must be the name of a schema, its path, or its document")
    schema = load_any(value) if isinstance(value, str) else any_from_dict(dict(value))
    schema.require_complete()
    return schema if isinstance(schema, LinkedSchema) else as_declared(schema)


def table_schema(value: Any) -> Schema:
    """Read the schema of one table, as `read_any_schema` does.

    Raises:
        InputError: it is none, or one of linked tables.
    """
    schema = read_any_schema(value)
    if isinstance(schema, LinkedSchema):
        raise InputError(
            "the schema is of linked tables; give the schema of one table, and a file of its rows"
        )
    return schema


def check_keys(
    document: Mapping[str, Any], place: str, known: tuple[str, ...], needed: tuple[str, ...]
) -> None:
    """Require all keys that are needed, and none that is not known.

    Raises:
        InputError: with the key, and those that are known.
    """
    if not isinstance(document, Mapping):
        raise InputError(f"{place} must be an object, not {type_name(document)}")
    for key in document:
        if key not in known:
            meant = did_you_mean(str(key), known)
            raise InputError(f"{place} has no key '{key}'{meant}; keys: {listed(list(known))}")
    for key in needed:
        if key not in document:
            raise InputError(f"{place} has no '{key}'")


def two_numbers(value: Any) -> bool:
    """Whether a value is a list of two numbers."""
    return isinstance(value, list) and [type(n) in (int, float) for n in value] == [True, True]
