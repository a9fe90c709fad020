"""The facts that a schema states: a column, the privacy unit, public numbers, the dialect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta

from dpsynth._util.formatting import counted
from dpsynth._util.short_repr import short_repr
from dpsynth.errors import InputError, Problem
from dpsynth.schema.code_systems import Codes, Discovery, Several
from dpsynth.schema.formula import Formula
from dpsynth.schema.relations import Floor, Grouping, Interval
from dpsynth.schema.rules import Rule
from dpsynth.schema.types import ColumnType, type_of

ROLES = (
    *("unit", "order", "target", "sensitive", "quasi_identifier"),
    *("group", "time", "event", "drop"),
)
UNMODELLED = frozenset({"unit", "order", "drop"})
OTHER = "other"
MISSING = "missing"
REFUSE = "refuse"
VALUE, LOW, HIGH = "value", "low", "high"  # categories of a status, beside MISSING
Bound = int | float | date | datetime | time | timedelta


@dataclass(frozen=True)
class Declared:
    """A public number and the sentence that says where it comes from; 0 in a draft's blank."""

    value: int
    basis: str


@dataclass(frozen=True)
class Dialect:
    """How the source is written: declared, never sniffed.

    ``labels``: whether value labels of SPSS, SAS and Stata stand for their codes, in columns of
    type string and boolean. ``header_row``: the line of a text file, or the row of a sheet, with
    the names of columns, from 1; what stands above it is not read.
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    quote: str = '"'
    labels: bool = False
    header_row: int = 1


@dataclass(frozen=True)
class PrivacyUnit:
    """Whose presence is hidden, and at most how many rows of one unit count.

    ``column`` is None where each row is a unit. ``keep`` picks the rows of a unit that has more
    than ``max_rows``: "random" ones, or a "window" of consecutive ones. Keys are compared after
    trimming (``trim``), regardless of case (``case``), with or without leading zeros
    (``leading_zeros``: True keeps them). A row without a key is dropped, or its "own" unit.

    ``person`` names whom the ledger counts ("patient"); None where the unit itself is counted. One
    has at most ``max_units`` units of the table: an assumption, which nothing can check.
    ``same_as`` lists key columns of other extracts that name the same persons.
    """

    column: str | None
    max_rows: int
    max_rows_basis: str | None
    keep: str = "random"
    trim: bool = True
    case: bool = False
    leading_zeros: bool = True
    missing_key: str = "drop"
    person: str | None = None
    same_as: tuple[str, ...] = ()
    max_units: int = 1
    max_units_basis: str | None = None

    def __repr__(self) -> str:
        """Name the key column and the bound."""
        return short_repr(self, self.column or "a row", f"at most {self.max_rows} rows")


@dataclass(frozen=True)
class UnitFrom:
    """The unit of each cell, as another column of its row names it.

    Attributes:
        column: the column that names the unit.
        factors: its text, ``times`` and ``plus``: a cell x means x * times + plus in the column's
            own unit.
    """

    column: str
    factors: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True)
class CellForms:
    """How the cells of a column may be written, beyond its type and categories.

    Each declaration is about one cell: what it becomes depends on its own text and, for a unit, on
    the text of one other cell of its row. So no row changes how another is coded, each row still
    enters each histogram once, and the sensitivity of every event of a plan is what it was.

    Attributes:
        values: text of the source, and what it stands for: a category, a number, a limit such as
            ``<5``, a reason, or ``missing``.
        case: whether upper and lower case differ.
        reasons: reasons of missing cells, each with its texts.
        low: limits of detection from below, ascending: ``<5`` is such a cell.
        high: limits from above, ascending.
        status: the name of the column that holds reasons and limits; None for ``<name>_status``.
        unit: where the unit of each cell stands; None if all cells have one unit.
        formats: several date formats, ``default`` for ISO 8601; empty for the column's own.
        thousands: the sign between groups of three digits, ``.`` in 28.123; empty for none.
    """

    values: tuple[tuple[str, str], ...] = ()
    case: bool = True
    reasons: tuple[tuple[str, tuple[str, ...]], ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    status: str | None = None
    unit: UnitFrom | None = None
    formats: tuple[str, ...] = ()
    thousands: str = ""

    @property
    def is_censored(self) -> bool:
        """Whether the column has limits of detection."""
        return bool(self.low or self.high)

    @property
    def reason_texts(self) -> tuple[str, ...]:
        """The texts of all reasons of missing cells."""
        return tuple(text for _, texts in self.reasons for text in texts)


@dataclass(frozen=True)
class Column:
    """One column of the table: type, bounds or categories, roles, and what bad cells become.

    ``on_bad`` is where unparsable text and unexpected missing values go, ``on_unknown`` where an
    undeclared category goes; both are resolved: "missing", "refuse", "minimum", "maximum",
    "other", or one of the categories. Bounds have the column's type; ``step`` is in its unit (days
    for dates, months for months, seconds for datetimes, times of day and durations).

    An ``interval`` is a date that is modelled as its gap to another; its bounds follow from those
    of the other. A ``derived`` column is computed from drawn ones, and never read from the source;
    so is a ``grouping``, the group of another column's code. A column with a ``floor`` is modelled
    as its gap above other columns. ``present_if`` says in which rows a cell may be filled in.
    ``calendar`` lists parts of a date that are modelled beside it: weekday, month, hour.
    ``forms`` says how cells are written; ``status_of`` names the
    column whose status this one is (see `dpsynth.schema.status`).
    """

    name: str
    type: str
    roles: frozenset[str] = frozenset()
    minimum: Bound | None = None
    maximum: Bound | None = None
    categories: tuple[str, ...] | None = None
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    step: float | int | None = None
    required: bool = False
    missing_values: tuple[str, ...] = ("",)
    true_values: tuple[str, ...] = ("true", "True", "TRUE", "1")
    false_values: tuple[str, ...] = ("false", "False", "FALSE", "0")
    on_bad: str = MISSING
    on_unknown: str = MISSING
    codes: Codes | None = None
    ucum: str | None = None
    bounds_basis: str | None = None
    title: str | None = None
    description: str | None = None
    format: str | None = None
    interval: Interval | None = None
    derived: Formula | None = None
    grouping: Grouping | None = None
    floor: Floor | None = None
    present_if: Rule | None = None
    calendar: tuple[str, ...] = ()
    forms: CellForms = CellForms()
    status_of: str | None = None

    def __repr__(self) -> str:
        """Name the column."""
        return short_repr(self, self.name, self.type, " ".join(sorted(self.roles)))

    @property
    def kind(self) -> ColumnType:
        """What dpsynth knows about the column's type."""
        return type_of(self.type)

    @property
    def modelled(self) -> bool:
        """Whether the column is part of the synthetic table."""
        return not self.roles & UNMODELLED

    @property
    def is_read(self) -> bool:
        """Whether the column is modelled and read from the source."""
        return self.modelled and not self.is_computed

    @property
    def is_computed(self) -> bool:
        """Whether the column is computed from others of its row, and never modelled."""
        return self.derived is not None or self.grouping is not None

    @property
    def nullable(self) -> bool:
        """Whether a value may be missing."""
        return not self.required

    @property
    def is_categorical(self) -> bool:
        """Whether the column has a list of categories; booleans have one."""
        return self.categories is not None

    @property
    def several(self) -> Several | None:
        """How a cell holds several codes; None where it holds one value."""
        return None if self.codes is None else self.codes.several

    @property
    def discovery(self) -> Discovery | None:
        """Which codes a fit may find, and has found; None where all are declared."""
        return None if self.codes is None else self.codes.discovery

    @property
    def discovers(self) -> bool:
        """Whether a fit discovers which of the column's codes occur."""
        return self.modelled and self.discovery is not None

    @property
    def has_other(self) -> bool:
        """Whether the code ``other`` is added after the declared categories."""
        if self.categories is None or OTHER in self.categories:
            return False
        return OTHER in (self.on_bad, self.on_unknown)

    @property
    def runs_in_spreadsheets(self) -> bool:
        """Whether a spreadsheet may take its name or one of its categories for a formula.

        Such a text begins with one of the characters that the OWASP page on CSV injection names;
        a plain number does not count.
        """
        texts = (self.name, *(self.levels if self.is_categorical and self.kind.is_text else ()))
        return any(_is_formula(text) for text in texts)

    @property
    def levels(self) -> tuple[str, ...]:
        """The categories that a synthetic cell can hold: declared ones, reasons, ``other``."""
        reasons = [reason for reason, _ in self.forms.reasons] if self.kind.is_text else ()
        return (*(self.categories or ()), *reasons, *((OTHER,) if self.has_other else ()))


def _is_formula(text: str) -> bool:
    """Tell whether a spreadsheet would calculate a text of a CSV file.

    >>> [_is_formula(text) for text in ("=1+1", "@SUM(1)", "-cmd()", "-5", "+", "<5", "a=b")]
    [True, True, True, False, False, False, False]
    """
    if text.startswith(("=", "@", "\t", "\r")):
        return True
    try:
        float(text.replace(",", "."))
    except ValueError:
        return len(text) > 1 and text[0] in "+-"
    return False


@dataclass(frozen=True)
class Facts:
    """The public facts of one table.

    ``gaps`` lists what a draft leaves open, as it was read; it is not part of the facts.
    ``rows_where`` says which rows of the source are those of the table: those that have one of the
    texts in each of the columns. It is empty where all rows are.
    """

    name: str
    columns: tuple[Column, ...]
    unit: PrivacyUnit
    population: Declared
    rows: Declared
    dialect: Dialect = Dialect()
    rules: tuple[Rule, ...] = ()
    title: str | None = None
    description: str | None = None
    source: str | None = None
    draft: bool = False
    gaps: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    rows_where: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __repr__(self) -> str:
        """Say which table it is about."""
        return short_repr(
            self, self.name, counted(len(self.columns), "column"), self.draft and "draft" or None
        )

    def column(self, name: str) -> Column:
        """Return the column of that name; an `InputError` says that there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise InputError(f"schema {self.name} has no column {name!r}")

    @property
    def modelled(self) -> tuple[Column, ...]:
        """The columns of the synthetic table, in order: all but unit, order and drop."""
        return tuple(column for column in self.columns if column.modelled)

    @property
    def order_column(self) -> str | None:
        """The name of the column that orders the rows of a unit, if one is declared."""
        return next((column.name for column in self.columns if "order" in column.roles), None)

    @property
    def may_refuse(self) -> bool:
        """Whether a cell can stop a fit, because a column opts in to ``refuse``."""
        return any(REFUSE in (column.on_bad, column.on_unknown) for column in self.modelled)
