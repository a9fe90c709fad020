"""The verb `perturb`: read a table at its source, randomise each person's answers, write them.

A report depends on one person's cells and on fresh coins of the operating system alone. Nothing
else of their row is kept: no other column, no key, and no order, since people are shuffled.

What is hidden is each answer, not that a person took part: a table has as many reports as people.
A person who is perturbed again spends epsilon again.

**There is always a report.** The collector sees whether there is one, and delta is 0. So what can
refuse an answer is refused before the first one is read: the columns, the schema (`refuse` as
on_bad or on_unknown), the output. After that, each cell of any bytes has a category
(`dpsynth.local.answers`), and a row without a key is a person of its own: nobody is left out for
what they answered. How many people there are is public: as many as there are different keys, and
rows without one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dpsynth._util.arguments import type_name
from dpsynth._util.messages import did_you_mean, listed
from dpsynth.encoding import Codec, read_cohort
from dpsynth.errors import InputError
from dpsynth.files import check_vacant
from dpsynth.local.answers import Answers
from dpsynth.local.categories import Categories
from dpsynth.local.randomiser import Randomiser
from dpsynth.local.reports import SEEDED, LocalColumn, Reports, Settings, settings_path
from dpsynth.privacy import Entropy, OsEntropy, exactly, rounded_down
from dpsynth.schema import Column, Schema, load_any
from dpsynth.schema.column import REFUSE
from dpsynth.tables import Source, as_source

_DIGITS = 15  # of an epsilon: any decimal of so many is a float that is written so


def perturb(
    data: Source,
    schema: Schema | str | Path,
    columns: Sequence[str],
    *,
    epsilon: float,
    cuts: Mapping[str, Sequence[float]] | None = None,
    output: str | Path | None = None,
    entropy: Entropy | None = None,
) -> Reports:
    """Perturb columns of a table whose rows are people, for the local model.

    The epsilon is split equally over the columns. Each is perturbed by randomised response or by
    unary encoding, whichever has the lower variance for its number of categories.

    Args:
        data: the path of a table, or a DataFrame of pandas, polars or Arrow.
        schema: a schema, its path, or the name of a shipped one; each person has one row.
        columns: names of columns with declared categories, or of numbers in ``cuts``.
        epsilon: what each person spends on all columns together; there is no default.
        cuts: public numbers at which a column of numbers is cut.
        output: CSV file to write; the settings are written beside it as JSON.
        entropy: source of the coins; the operating system's if None. Another one is stamped.

    Returns:
        The reports with their settings; `dpsynth.local.estimate` makes counts of them.

    Raises:
        InputError: a column, a cut, the epsilon or the output is wrong, a column refuses cells, or
            a person may have several rows. No answer has been read then.
        TableError: there is no table with these columns, or it has no row. No answer decides that.

    Example:
        >>> from dpsynth.tables import simulate
        >>> rows = simulate(500, seed=1).drop_duplicates("patient_id")
        >>> schema = one_row_each(Schema.load("demo"))
        >>> perturb(rows, schema, ["sex"], epsilon=1.0).people == len(rows)
        True
    """
    data = as_source(data)
    if not isinstance(schema, Schema):
        loaded = load_any(schema)
        if not isinstance(loaded, Schema):
            raise InputError("the local model needs one table; give the schema of a single one")
        schema = loaded
    schema.require_complete()
    chosen = _require_columns(schema, columns, cuts or {})
    _require_one_row(schema)
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError("epsilon must be a finite number above 0")
    each = rounded_down(exactly(epsilon) / len(chosen), _DIGITS)
    part = _reduced(schema, chosen)
    codec = Codec(part)
    categories = [Categories.of(codec, name, (cuts or {}).get(name)) for name in columns]
    public = tuple(
        LocalColumn(one.column, one.labels, _randomiser(one, each)) for one in categories
    )
    if output is not None:
        check_vacant(output)
        check_vacant(settings_path(output))
    source = entropy or OsEntropy()
    cohort = read_cohort(Answers.read(data, part), codec, part, source)
    reports = []
    for one, column in zip(categories, public, strict=True):
        codes = cohort.codes[:, 0, codec.names.index(one.column)]
        reports.append(column.randomiser.reports(one.place_of[codes], source))
    stamps = () if type(source) is OsEntropy else (SEEDED,)
    found = Reports(Settings(schema.name, float(epsilon), public, stamps), tuple(reports))
    if output is not None:
        found.write(output)
    return found


def one_row_each(schema: Schema) -> Schema:
    """Return a schema by which one row of each unit counts, chosen at random."""
    return replace(schema, unit=replace(schema.unit, max_rows=1, keep="random"))


def _randomiser(one: Categories, epsilon: float) -> Randomiser:
    try:
        return Randomiser.chosen(len(one.labels), epsilon)
    except InputError as error:
        raise InputError(f"column '{one.column}': {error}") from None


def _require_columns(
    schema: Schema, names: Sequence[str], cuts: Mapping[str, Sequence[float]]
) -> list[Column]:
    """Return the columns, if each can be perturbed by its own cell alone."""
    by_name = {column.name: column for column in schema.modelled}
    if not names:
        raise InputError("name at least one column to perturb")
    if len(set(names)) < len(names):
        raise InputError("a column is named twice; each is perturbed once")
    if not isinstance(cuts, Mapping):
        raise InputError(f"{type_name(cuts)} was given in place of cuts by the name of a column")
    if not {*cuts} <= {*names}:
        raise InputError(
            f"there are cuts of a column that is not perturbed; those are {listed(names)}"
        )
    for name in names:
        if name not in by_name:
            meant = did_you_mean(name, by_name)
            raise InputError(f"the schema has no column '{name}' to perturb{meant}")
        column = by_name[name]
        if column.is_computed or column.interval is not None or column.status_of is not None:
            raise InputError(f"column '{name}' follows from other columns; perturb those")
        if any(other.status_of == name for other in schema.columns):
            raise InputError(f"column '{name}' has a status beside it and cannot be perturbed yet")
        if column.several is not None:
            raise InputError(
                f"a cell of column '{name}' has several codes; the local model has one"
            )
        if column.discovers:
            raise InputError(f"the codes of column '{name}' are not declared; list them first")
        if REFUSE in (column.on_bad, column.on_unknown):
            raise InputError(
                f"column '{name}' declares `refuse`: then the answer decides whether there is a "
                "report, and the collector sees that; send such answers to missing, a bound or a "
                "category by on_bad and on_unknown"
            )
    return [by_name[name] for name in names]


def _require_one_row(schema: Schema) -> None:
    """Refuse a schema in which a person may have several rows: epsilon would be that of a row."""
    if schema.unit.max_rows > 1 or schema.unit.max_units > 1:
        raise InputError(
            "in the local model each person has one row, and this schema allows several: epsilon "
            "would be that of a row; make a table of one row each, and declare max_rows 1"
        )


def _reduced(schema: Schema, columns: Sequence[Column]) -> Schema:
    """Return the schema of these columns and the key alone: a cell is coded by itself."""
    plain = {
        column.name: replace(column, floor=None, present_if=None, calendar=()) for column in columns
    }
    beside = {schema.unit.column}
    beside |= {column.forms.unit.column for column in columns if column.forms.unit is not None}
    kept = tuple(
        plain.get(column.name, column)
        if column.name in plain
        else replace(
            column, roles=column.roles | {"unit" if column.name == schema.unit.column else "drop"}
        )
        for column in schema.columns
        if column.name in plain or column.name in beside
    )
    unit = replace(schema.unit, keep="random", missing_key="own")  # nobody is left out
    return replace(schema, columns=kept, rules=(), unit=unit)
