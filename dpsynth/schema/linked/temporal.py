"""Temporal rules: read, checked against the tables, and for which patients they hold.

One temporal rule, and for which patients it holds.

**Sensitivity.** Whether a rule holds for a patient is a function of her own rows. The sampler uses
it on drawn patients only, so it is post-processing of what mechanisms released (Dwork and Roth, The
Algorithmic Foundations of Differential Privacy, 2014, Proposition 2.1).

From the text of a temporal rule to its tree, whose operands are terms.

The language is that of the rules of a row (`dpsynth.schema.rules`), with another operand::

    operand  = term | value
    term     = table "." column
             | ("first" | "last" | "each" | "next") "(" table [ "," name ] ")" "." column
             | "count" "(" table [ "," name ] ")"
             | "event" "(" [ table "," ] name ")"
    table    = name
    column   = name
    name     = word | `any characters` | 'text' | "text"

A name in brackets after the table is a test of a long table, or an event.

The cells that the terms of temporal rules name, for each patient or for each of her rows.

Rows of a patient are in order of time, then of the declared order, then as they stand. Everything
is computed patient by patient: no value depends on the rows of another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth.errors import InputError
from dpsynth.schema.column import Column
from dpsynth.schema.rules import (
    DOTTED,
    Literal,
    Name,
    Parser,
    Rule,
    Token,
    Tree,
    mistake_at,
    values_of,
)
from dpsynth.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd


Truth = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class TemporalRule:
    """What must hold between the rows of one patient.

    A rule with ``each`` or ``next`` holds for a patient if it holds for each of her rows of that
    table; so it holds for a patient without such rows. What a missing value leaves undecided counts
    as holding, as in a `Rule` of one row.

    Attributes:
        text: as it is written.
        rule: the same comparisons, of columns that are called as the terms are.
        terms: what it compares, by their text.

    >>> rule = TemporalRule.parse("each(visits).date >= patients.admitted")
    >>> [(term.function, term.table, term.column) for term in rule.terms.values()]
    [('each', 'visits', 'date'), ('patient', 'patients', 'admitted')]
    """

    text: str
    rule: Rule = field(compare=False, repr=False)
    terms: Mapping[str, Term] = field(compare=False, repr=False, hash=False)

    @classmethod
    def parse(cls, text: str) -> TemporalRule:
        """Read a rule; nothing in it is evaluated.

        Raises:
            InputError: it is not a rule; says at which character and why.
        """
        tree, terms = parse_terms(text)
        return cls(text.strip(), Rule(text.strip(), tree), terms)

    def holds(
        self,
        tables: Mapping[str, pd.DataFrame],
        schema: Tables,
        *,
        missing: bool = True,
    ) -> Truth:
        """Tell for each patient whether the rule holds.

        Args:
            tables: decoded cells by the name of their table: numbers, strings, dates, as the
                sampler writes them, with the column of the key and those of time and order. Rows
                of a key that no patient has, and rows without a time, take no part.
            schema: of the tables.
            missing: the answer where missing values leave it undecided.

        Returns:
            One truth value for each row of the table of patients, ``[patients]``.

        Raises:
            InputError: a column is absent, two operands cannot be compared, or two rows of the
                table of patients have one key.
        """
        return self.holds_in(PatientRows(tables, schema), missing=missing)

    def holds_in(self, rows: PatientRows, *, missing: bool = True) -> Truth:
        """Tell the same of tables that several rules look at; they are put in order once."""
        ranged = next((term for term in self.terms.values() if term.ranges), None)
        if ranged is None:
            return self.rule.holds(rows.by_patient(self.terms.values()), missing=missing)
        cases, owners = rows.by_row(self.terms.values(), ranged)
        broken = ~self.rule.holds(cases, missing=missing)
        return np.asarray(np.bincount(owners[broken], minlength=len(rows)) == 0)


_NAMES = ("word", "quoted")
_TEXTS = ("single", "double")


def parse_terms(text: str) -> tuple[Tree, dict[str, Term]]:
    """Parse a rule.

    Returns:
        Its tree, in which a term is a `Name` with the term's text, and these terms by their text.

    Raises:
        InputError: it is not a rule; says at which character and why.
    """
    parser = _TermParser(text)
    return parser.whole(), parser.terms


class _TermParser(Parser):
    """Reads terms in the place of columns, and keeps them."""

    pattern = DOTTED

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.terms: dict[str, Term] = {}

    def operand(self) -> Name | Literal:
        read = super().operand()
        if isinstance(read, Literal):
            return read
        token = self.tokens[self.index - 1]
        if self.took("dot", "."):
            return self.kept(Term(PATIENT, token.text, column=self.name("a column")))
        if token.kind == "word" and self.took("bracket", "("):
            return self.kept(self.function(token))
        raise mistake_at(
            self.text,
            token.place,
            f"{shown(token.text)} needs its table: write patients.{token.text} for the table of "
            f"patients, and first(visits).{token.text} for another; a value of text is written in "
            "quotes",
        )

    def kept(self, term: Term) -> Name:
        """Keep a term, and return it as the name of its values."""
        self.terms[term.text] = term
        return Name(term.text)

    def function(self, word: Token) -> Term:
        """Read a function after its opening bracket."""
        if word.text not in FUNCTIONS:
            meant = did_you_mean(word.text, FUNCTIONS)
            known = ", ".join(FUNCTIONS)
            reason = f"there is no function {shown(word.text)}{meant}; functions: {known}"
            raise mistake_at(self.text, word.place, reason)
        names = [self.name("the name of a table" if word.text != EVENT else "an event")]
        if self.took("comma", ","):
            names.append(self.name("a test or an event"))
        if not self.took("bracket", ")"):
            raise self.mistake("a closing bracket is missing")
        if word.text == EVENT:
            return Term(EVENT, names[0] if len(names) > 1 else None, names[-1])
        named = names[1] if len(names) > 1 else None
        if word.text == COUNT:
            return Term(COUNT, names[0], named)
        if not self.took("dot", "."):
            raise self.mistake(f"a column is expected, such as {word.text}({names[0]}).date")
        return Term(word.text, names[0], named, self.name("a column"))

    def name(self, what: str) -> str:
        """Read a name."""
        if self.next.kind not in (*_NAMES, *_TEXTS):
            raise self.mistake(f"{what} is expected")
        return self.take().text


PATIENT, FIRST, LAST, EACH, NEXT = "patient", "first", "last", "each", "next"
COUNT, EVENT = "count", "event"
OF_ROWS = (FIRST, LAST, EACH, NEXT)
FUNCTIONS = (*OF_ROWS, COUNT, EVENT)
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Term:
    """One operand of a temporal rule.

    Attributes:
        function: `PATIENT` for a cell of the table of patients, else one of `FUNCTIONS`.
        table: it is about; None for an event, whose table follows from its name.
        named: the test of a long table, or the event; None for rows of any.
        column: whose cell it is; None for a count or an event.

    >>> Term("last", "labs", "hdl", "value").text, Term("event", None, "death").text
    ('last(labs, hdl).value', 'event(death)')
    """

    function: str
    table: str | None
    named: str | None = None
    column: str | None = None

    @property
    def text(self) -> str:
        """The term as a rule writes it."""
        names = ", ".join(_written(name) for name in (self.table, self.named) if name is not None)
        start = names if self.function == PATIENT else f"{self.function}({names})"
        return start if self.column is None else f"{start}.{_written(self.column)}"

    @property
    def ranges(self) -> bool:
        """Whether the term has a value for each row, not one for each patient."""
        return self.function in (EACH, NEXT)


def _written(name: str) -> str:
    return name if _WORD.fullmatch(name) else f"`{name}`"


class RowTable(Protocol):
    """What a rule needs to know of a table of rows; see `dpsynth.schema.linked.facts`."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def key(self) -> str:
        """The column of the patient's key."""

    @property
    def schema(self) -> Schema:
        """The schema of its columns."""

    @property
    def time(self) -> str | None:
        """The column of the day."""

    @property
    def order(self) -> str | None:
        """The column that orders rows of one day, or all of them."""

    @property
    def once(self) -> str | None:
        """The column of events."""

    @property
    def tests(self) -> tuple[Column, ...]:
        """The tests of a long table, each with what its values are."""

    @property
    def test_column(self) -> str | None:
        """The column that names the test."""

    @property
    def value_column(self) -> str | None:
        """The column that holds the value of a test."""


class Tables(Protocol):
    """What a rule needs to know of a package; see `dpsynth.schema.linked.facts`."""

    @property
    def patients(self) -> Schema:
        """The schema of the table of patients."""

    @property
    def key(self) -> str:
        """The column of its key."""

    @property
    def children(self) -> Sequence[RowTable]:
        """The tables of rows."""


def table_named(schema: Tables, name: str) -> RowTable:
    """Return a table of rows by name.

    Raises:
        KeyError: there is none; the reader of the schema has reported it.
    """
    for table in schema.children:
        if table.name == name:
            return table
    raise KeyError(name)


def event_tables(schema: Tables, event: str) -> list[RowTable]:
    """Return the tables that list an event."""
    return [
        table
        for table in schema.children
        if table.once is not None and event in table.schema.column(table.once).levels
    ]


def temporal_problems(rule: TemporalRule, schema: Tables) -> list[str]:
    """List what is wrong with a rule for these tables; empty if nothing is.

    Names are checked first; then what is compared with what, as in a rule of one row.
    """
    problems, columns = [], []
    for term in rule.terms.values():
        found = next(_term_problems(term, schema), None)
        if found is not None:
            problems.append(found)
        else:
            columns.append(replace(_column(term, schema), name=term.text, roles=frozenset()))
    ranged = {(term.table, term.named): term.text for term in rule.terms.values() if term.ranges}
    if len(ranged) > 1:
        problems.append(
            f"a rule goes through the rows of one table, not of {listed(ranged.values())}; use "
            "first, last or count for the other, or write two rules"
        )
    return problems or [_worded(text) for text in rule.rule.problems(columns)]


def _worded(text: str) -> str:
    """Call a term what it is: the rule of one row knows columns only."""
    mixed = "number with date" in text or "date with number" in text
    hint = "; days count from the origin, dates do not" if mixed else ""
    return text.replace("column '", "'") + hint


def _term_problems(term: Term, schema: Tables) -> Iterator[str]:
    """Yield what is wrong with the names of a term."""
    patients, tables = schema.patients, {table.name: table for table in schema.children}
    if term.function == EVENT:
        yield from _event_problems(term, schema)
        return
    name = str(term.table)
    table = tables.get(name)
    if table is None and name != patients.name:
        meant = did_you_mean(name, (patients.name, *tables))
        yield f"{term.text}: there is no table {shown(name)}{meant}"
    elif term.function == PATIENT and table is not None:
        ways = ", ".join(f"{way}({name}).{term.column}" for way in OF_ROWS[:3])
        yield f"{term.text}: a patient has several rows in {name}; say which: {ways}"
    elif table is None and term.function == COUNT:
        yield f"{term.text}: a patient has one row in {name}; count the rows of another table"
    elif table is None and term.function != PATIENT:
        yield f"{term.text}: a patient has one row in {name}; write {name}.{term.column}"
    elif table is None:
        yield from _column_problems(term, patients.columns, (schema.key,), ())
    else:
        yield from _row_problems(term, table)


def _row_problems(term: Term, table: RowTable) -> Iterator[str]:
    """Yield what is wrong with a term of a table of rows."""
    tests = tuple(test.name for test in table.tests)
    events = _events(table)
    if term.named is not None and not (tests or events):
        yield f"{term.text}: table {table.name} is wide; it has no tests and no events"
    elif term.named is not None and term.named not in (*tests, *events):
        what = "test" if tests else "event"
        meant = did_you_mean(term.named, (*tests, *events))
        yield f"{term.text}: table {table.name} has no {what} {shown(term.named)}{meant}"
    if term.column is None:
        return
    if term.column == table.value_column:
        if term.named is None:
            example = Term(term.function, table.name, tests[0], term.column).text
            yield f"{term.text}: values are of several tests; name one, such as {example}"
        return
    if term.column == table.order:
        yield f"{term.text}: the order is a number that the sampler gives, so it is no value"
    placed = (table.time, table.once, table.test_column)
    yield from _column_problems(
        term, table.schema.columns, (table.key,), tuple(name for name in placed if name)
    )


def _column_problems(
    term: Term, columns: tuple[Column, ...], keys: tuple[str, ...], placed: tuple[str, ...]
) -> Iterator[str]:
    """Yield what is wrong with the column of a term."""
    known = {column.name: column for column in columns}
    name = str(term.column)
    if name not in known:
        meant = did_you_mean(name, known)
        yield f"{term.text}: table {term.table} has no column {shown(name)}{meant}"
    elif name in keys:
        yield f"{term.text}: a key is no value; each patient gets a fresh one"
    elif not known[name].modelled and name not in placed:
        roles = listed(sorted(known[name].roles))
        yield f"{term.text}: the column has role {roles} and is not in the synthetic table"


def _event_problems(term: Term, schema: Tables) -> Iterator[str]:
    """Yield what is wrong with an event."""
    event, tables = str(term.named), [table for table in schema.children if table.once is not None]
    if not tables:
        yield f"{term.text}: no table lists events; declare one with once"
    elif term.table is not None and term.table not in [table.name for table in tables]:
        names = [table.name for table in tables]
        meant = did_you_mean(term.table, names)
        yield f"{term.text}: there is no table of events {shown(term.table)}{meant}"
    else:
        found = [table.name for table in event_tables(schema, event)]
        if not found or (term.table is not None and term.table not in found):
            every = [level for one in tables for level in _events(one)]
            meant = did_you_mean(event, every)
            yield f"{term.text}: there is no event {shown(event)}{meant}; events: {listed(every)}"
        elif term.table is None and len(found) > 1:
            yield (
                f"{term.text}: tables {listed(found)} have this event; name one: "
                f"{Term(EVENT, found[0], event).text}"
            )


def _events(table: RowTable) -> tuple[str, ...]:
    return () if table.once is None else table.schema.column(table.once).levels


def _column(term: Term, schema: Tables) -> Column:
    """Return the declaration of what a term's values are."""
    if term.function == PATIENT:
        return schema.patients.column(str(term.column))
    if term.function == COUNT:
        return Column(term.text, "integer")
    if term.function == EVENT:
        table = next(
            one for one in event_tables(schema, str(term.named)) if term.table in (None, one.name)
        )
        return table.schema.column(str(table.time))
    table = next(one for one in schema.children if one.name == term.table)
    if term.column == table.value_column and term.function in (*OF_ROWS, EACH):
        return next(test for test in table.tests if test.name == term.named)
    return table.schema.column(str(term.column))


Ints = npt.NDArray[np.int64]
TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True, eq=False, repr=False)
class _Rows:
    """Rows of one table, or of one test or event of it, in order.

    Attributes:
        places: of the rows in their table, by patient and then in order.
        owners: the patient of each, ascending.
        counts: how many rows each patient has.
    """

    places: Ints
    owners: Ints
    counts: Ints

    @property
    def starts(self) -> Ints:
        """Where the rows of each patient begin."""
        return np.asarray(np.cumsum(self.counts) - self.counts)


class PatientRows:
    """Decoded tables of a package, put in order once for all rules that look at them."""

    def __init__(self, tables: Mapping[str, pd.DataFrame], schema: Tables) -> None:
        """Take the tables; see `TemporalRule.holds`.

        Raises:
            InputError: the table of patients is absent, or two of its rows have one key.
        """
        import pandas as pd

        self._tables, self._schema = tables, schema
        self._patients = self._table(schema.patients.name, (schema.key,))
        self._keys = pd.Index(_keys(self._patients[schema.key]))
        if not self._keys.is_unique:
            raise InputError(
                f"two rows of table {schema.patients.name} have one key; a patient has one row"
            )
        self._in_order: dict[tuple[str, str | None], _Rows] = {}

    def __len__(self) -> int:
        """Return the number of patients."""
        return len(self._patients)

    def by_patient(self, terms: Iterable[Term]) -> pd.DataFrame:
        """Return the values of terms, one row for each patient."""
        import pandas as pd

        return pd.DataFrame({term.text: self._values(term) for term in terms})

    def by_row(self, terms: Iterable[Term], ranged: Term) -> tuple[pd.DataFrame, Ints]:
        """Return the values of terms, one row for each row that a term goes through.

        Args:
            terms: of one rule.
            ranged: the one that goes through the rows.

        Returns:
            The values, and the patient of each row.
        """
        import pandas as pd

        assert ranged.table is not None
        rows = self._rows(ranged.table, ranged.named)
        values = {}
        for term in terms:
            if term.ranges:
                values[term.text] = self._row_values(term, rows)
            else:
                values[term.text] = self._values(term).take(rows.owners).reset_index(drop=True)
        return pd.DataFrame(values), rows.owners

    def _values(self, term: Term) -> pd.Series[Any]:
        """Return a term's value of each patient."""
        import pandas as pd

        if term.function == PATIENT:
            frame = self._table(self._schema.patients.name, (str(term.column),))
            return frame[term.column].reset_index(drop=True)
        if term.function == EVENT:
            table = term.table or event_tables(self._schema, str(term.named))[0].name
            term = Term("first", table, term.named, table_named(self._schema, table).time)
        rows = self._rows(str(term.table), term.named)
        if term.function == COUNT:
            return pd.Series(rows.counts)
        places = rows.starts + (rows.counts - 1 if term.function == LAST else 0)
        some = np.flatnonzero(rows.counts)
        cells = self._cells(term, rows.places[places[some]])
        cells.index = pd.Index(some)
        return cells.reindex(np.arange(len(self)))

    def _row_values(self, term: Term, rows: _Rows) -> pd.Series[Any]:
        """Return a term's value for each row, missing where a row has no next one."""
        cells = self._cells(term, rows.places)
        if term.function != NEXT:
            return cells
        followed = np.append(rows.owners[1:] == rows.owners[:-1], np.zeros(1, dtype=bool))
        return cells.shift(-1).where(followed[: len(cells)])

    def _cells(self, term: Term, places: Ints) -> pd.Series[Any]:
        """Return the cells of a column at places, those of a test by its own type."""
        import pandas as pd

        table = table_named(self._schema, str(term.table))
        frame = self._table(table.name, (str(term.column),))
        cells = frame[term.column].take(places).reset_index(drop=True)
        test = next((one for one in table.tests if one.name == term.named), None)
        if test is None or term.column != table.value_column:
            return cells
        if test.kind.is_number and values_of(cells)[0] == "text":
            return pd.to_numeric(cells, errors="coerce")
        if test.kind.is_truth and values_of(cells)[0] == "text":
            return cells.astype(str).str.lower().map(TRUTHS)
        return cells

    def _rows(self, name: str, named: str | None) -> _Rows:
        """Return the rows of a table in order, or those of one test or event."""
        if (name, named) not in self._in_order:
            self._in_order[name, named] = (
                self._sorted(table_named(self._schema, name))
                if named is None
                else self._part(name, named)
            )
        return self._in_order[name, named]

    def _sorted(self, table: RowTable) -> _Rows:
        columns = tuple(name for name in (table.time, table.order) if name is not None)
        frame = self._table(table.name, (table.key, *columns))
        owners = self._owners(frame[table.key])
        ranks = [_ranked(frame[name]) for name in columns]
        known = owners >= 0
        if table.time is not None:
            known &= ranks[0] >= 0
        places = np.flatnonzero(known)
        keys = [owners, *(np.where(rank < 0, rank.max(initial=0) + 1, rank) for rank in ranks)]
        keys = [key[places] for key in keys]
        if not _ascend(keys):
            order = np.lexsort(keys[::-1])  # keeps rows that are alike as they stand
            places, keys[0] = places[order], keys[0][order]
        return _Rows(places, keys[0], np.bincount(keys[0], minlength=len(self)).astype(np.int64))

    def _owners(self, cells: pd.Series[Any]) -> Ints:
        """Return the patient of each row; whole numbers and their texts are the same key."""
        keys, own = _keys(cells), self._keys
        if keys.dtype != own.dtype:
            keys, own = keys.astype(str), own.astype(str)
        return np.asarray(own.get_indexer(keys), dtype=np.int64)

    def _part(self, name: str, named: str) -> _Rows:
        table, whole = table_named(self._schema, name), self._rows(name, None)
        column = str(table.once or table.test_column)
        cells = self._table(name, (column,))[column].take(whole.places)
        kept = np.flatnonzero((cells == named).to_numpy(dtype=bool, na_value=False))
        owners = whole.owners[kept]
        counts = np.bincount(owners, minlength=len(self)).astype(np.int64)
        return _Rows(whole.places[kept], owners, counts)

    def _table(self, name: str, columns: tuple[str, ...]) -> pd.DataFrame:
        if name not in self._tables:
            raise InputError(f"a rule needs table {name}, which is absent")
        frame = self._tables[name]
        absent = [column for column in columns if column not in frame.columns]
        if absent:
            raise InputError(
                f"a rule needs columns of table {name} that are absent: {listed(absent)}"
            )
        return frame


def _keys(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return keys as they compare in all tables: whole numbers as they are, others as text."""
    if cells.dtype.kind in "iu":
        return cells.astype("int64")
    return cells.astype(str)


def _ranked(cells: pd.Series[Any]) -> Ints:
    """Return numbers that order cells as their values are ordered, -1 where one is missing."""
    kind, values, gaps = values_of(cells)
    if kind == "empty":
        return np.full(len(cells), -1, dtype=np.int64)
    if kind == "number" and len(values) and float(np.abs(values[~gaps]).max(initial=0)) < 2**53:
        whole = np.where(gaps, 0, values)
        if (whole == np.floor(whole)).all():
            return np.where(gaps, -1, whole - min(whole.min(), 0)).astype(np.int64)
    if kind == "date":
        ticks = values.astype(np.int64)
        return np.where(gaps, -1, ticks - ticks[~gaps].min(initial=0))
    each, ranks = np.unique(np.where(gaps, values[~gaps][0], values), return_inverse=True)
    if kind == "text":  # "10" is after "9"
        order = sorted(range(len(each)), key=lambda place: _place(str(each[place])))
        ranks = np.argsort(order)[ranks]
    return np.where(gaps, -1, ranks).astype(np.int64)


def _place(text: str) -> tuple[bool, int, str]:
    number = text.isdecimal() and len(text) < 19
    return not number, int(text) if number else 0, text


def _ascend(keys: list[Ints]) -> bool:
    """Tell whether rows are in order of several keys already, the first one first."""
    undecided = np.ones(max(len(keys[0]) - 1, 0), dtype=bool)
    for key in keys:
        step = np.diff(key)
        if (step[undecided] < 0).any():
            return False
        undecided &= step == 0
    return True
