"""One field of a schema document becomes one `Column`; what is wrong with it is noted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpsynth._util.clock import WHOLE_DAY
from dpsynth._util.field_reader import MAX_WHOLE, NO_BASIS, PROPOSAL, TODO, FieldReader, is_proposal
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth.errors import InputError
from dpsynth.schema.bounds import category_text, read_bound
from dpsynth.schema.cell_forms import (
    FORM_KEYS,
    read_formats,
    read_forms,
    read_thousands,
)
from dpsynth.schema.code_systems import CODE, Codes, CodeTree, read_several, rollups_of
from dpsynth.schema.column import MISSING, OTHER, REFUSE, ROLES, UNMODELLED, Column
from dpsynth.schema.declarations import (
    RELATION_KEYS,
    is_grouping,
    read_grouping,
    read_presence,
    read_relation,
)
from dpsynth.schema.discovered import read_discovered
from dpsynth.schema.types import TYPES, type_of

FIELD_KEYS = (
    *("name", "type", "title", "description", "format", "constraints", "missingValues"),
    *("trueValues", "falseValues", "decimalChar", "groupChar", "bareNumber", "categories"),
    *("categoriesOrdered", "example", "examples", "rdfType", "dpsynth"),
)
OWN_KEYS = (
    *("role", "bounds_basis", "ucum", "step", "on_bad", "on_unknown", "codes"),
    "present_if",
    *RELATION_KEYS,
    *FORM_KEYS,
)
CONSTRAINT_KEYS = ("required", "minimum", "maximum", "enum")
OTHER_TYPES = ("any", "array", "geojson", "geopoint", "list", "object")
_UNSUPPORTED = (
    *("pattern", "minLength", "maxLength", "exclusiveMinimum", "exclusiveMaximum"),
    "jsonSchema",
)


@dataclass(frozen=True)
class TableFacts:
    """What the table as a whole declares and its columns inherit."""

    missing_values: tuple[str, ...]
    decimal: str


def read_column(field: FieldReader, table: TableFacts) -> Column | None:
    """Read one field; None if it has no usable name or type, which is noted."""
    extra = field.part("dpsynth")
    constraints = field.part("constraints")
    name, type_ = field.text("name"), field.text("type")
    _check_keys(field, extra)
    if not field.has("name"):
        field.mistake("name", "the name of the column is missing")
    elif name is not None and not name.isprintable():
        field.mistake("name", "a column name has printable characters only")
    elif name is not None and name != name.strip():
        field.mistake(
            "name", "a column name has no blanks at its ends: headers are read without them"
        )
    roles = _read_roles(extra)
    if not _check_type(field, type_, roles) or name is None or type_ is None:
        return None
    missing = field.texts("missingValues")
    column = Column(
        name=name,
        type=type_,
        roles=roles,
        required=constraints.flag("required", False),
        missing_values=table.missing_values if missing is None else missing,
        ucum=extra.text("ucum"),
        title=field.text("title"),
        description=field.text("description"),
        format=_read_format(field, type_, modelled=not roles & UNMODELLED),
    )
    column = _read_booleans(field, column)
    column = read_formats(extra, column, declared=field.has("format"))
    if not column.modelled:
        for key in ("on_bad", "on_unknown", *(key for key in FORM_KEYS if key != "formats")):
            if extra.has(key):
                extra.mistake(
                    key, f"a column with role {listed(sorted(roles))} has none; remove it"
                )
        return column
    if extra.values.get("role") == TODO:
        return column  # a gap already: what else is missing depends on the role
    _check_writing(field, constraints, column, table)
    column = replace(column, bounds_basis=extra.text("bounds_basis"))
    if is_proposal(column.bounds_basis):
        extra.gap(
            "bounds_basis",
            f"is a proposal: check the field, then write your own source instead of {PROPOSAL!r}, "
            "or 'confirmed by' and a name",
        )
    column = read_presence(extra, column)
    if is_grouping(extra):
        return read_grouping(constraints, extra, column)
    column = read_categories(field, constraints, extra, column)
    if column.categories is None and (constraints.has("enum") or extra.has("codes")):
        return column  # the mistake in its categories is noted; what follows needs them
    column = read_relation(constraints, extra, column)
    column = _read_bounds(constraints, extra, column)
    column = read_thousands(field, read_policies(extra, column), table.decimal)
    return read_forms(extra, column, table.decimal)


def _check_keys(field: FieldReader, extra: FieldReader) -> None:
    """Note keys of dpsynth that stand elsewhere, and likely misspellings of Table Schema's keys."""
    extra.refuse_unknown(OWN_KEYS)
    for key in field.values:
        if key in FIELD_KEYS:
            continue
        if key in OWN_KEYS:
            field.mistake(key, f"belongs inside 'dpsynth': write dpsynth: {{{key}: ...}}")
        elif key in CONSTRAINT_KEYS:
            field.mistake(key, f"belongs inside 'constraints': write constraints: {{{key}: ...}}")
        elif meant := did_you_mean(key, FIELD_KEYS):
            field.mistake(key, f"there is no such key here{meant}")


def _read_roles(extra: FieldReader) -> frozenset[str]:
    """Read a role, or a list of them."""
    if isinstance(extra.values.get("role"), list | tuple):
        words = extra.texts("role") or ()
    else:
        word = extra.text("role")
        words = () if word is None else (word,)
    for word in words:
        if word not in ROLES:
            meant = did_you_mean(word, ROLES)
            extra.mistake("role", f"{shown(word)} is not a role{meant}; roles: {listed(ROLES)}")
    roles = frozenset(words) & frozenset(ROLES)
    if roles & UNMODELLED and len(roles) > 1:
        extra.mistake(
            "role", f"{listed(sorted(roles & UNMODELLED))} stands alone; remove the others"
        )
    return roles


def _check_type(field: FieldReader, type_: str | None, roles: frozenset[str]) -> bool:
    """Tell whether the type is known, and note one that is not, or does not suit the role."""
    if type_ is None:
        if not field.has("type"):
            note = field.gap if field.values.get("type") == TODO else field.mistake
            note("type", f"the type is missing; types: {listed(TYPES)}")
        return False
    if "unit" in roles and type_ in TYPES and not TYPES[type_].is_key:
        field.mistake("type", f"the key of a unit is of type string or integer, not {type_}")
    if "order" in roles and type_of(type_).is_truth:
        field.mistake("type", "true and false order nothing; declare a date, a number or text")
    if type_ in TYPES or (type_ in OTHER_TYPES and "drop" in roles):
        return True
    hint = "; give the column role drop" if type_ in OTHER_TYPES else did_you_mean(type_, TYPES)
    field.mistake("type", f"{shown(type_)} is not supported{hint}; types: {listed(TYPES)}")
    return False


def _read_format(field: FieldReader, type_: str, *, modelled: bool) -> str | None:
    """Read the format; for dates and times it is ``default`` (ISO 8601) or a strptime pattern."""
    pattern, kind = field.text("format"), type_of(type_)
    if pattern is None or pattern == "default":
        return None
    if kind.takes is None or (not modelled and not kind.is_time):
        return pattern
    if kind.is_time and "%z" in pattern.lower():
        field.mistake(
            "format",
            "has a time zone, and times have none here: leave format out if cells are written as "
            "2015-12-31T08:30:00+01:00, whose zone is dropped; else write local time in the source",
        )
        return None
    if not kind.takes(pattern):
        field.mistake("format", f"{shown(pattern)} {kind.wrong_format}")
        return None
    return pattern


def _read_booleans(field: FieldReader, column: Column) -> Column:
    """Read trueValues and falseValues."""
    words = {key: field.texts(key) for key in ("trueValues", "falseValues")}
    if not column.kind.is_truth:
        for key in words:
            if field.has(key):
                field.mistake(key, f"only a boolean column has it, and the type is {column.type}")
        return column
    true, false = words["trueValues"], words["falseValues"]
    column = replace(
        column,
        true_values=column.true_values if true is None else true,
        false_values=column.false_values if false is None else false,
    )
    for key, accepted, others in (
        ("trueValues", column.true_values, column.false_values),
        ("falseValues", column.false_values, ("", *column.missing_values)),
        ("trueValues", column.true_values, ("", *column.missing_values)),
    ):
        if not accepted:
            field.mistake(key, "the list is empty; name at least one text")
        if both := set(accepted) & set(others):
            field.mistake(key, f"{listed(map(shown, sorted(both)))} has two meanings; keep one")
    return column


def _check_writing(
    field: FieldReader, constraints: FieldReader, column: Column, table: TableFacts
) -> None:
    """Note ways of writing numbers that are not read, and constraints that are not kept."""
    decimal = field.text("decimalChar")
    if column.kind.has_decimals and decimal is not None and decimal != table.decimal:
        field.mistake(
            "decimalChar",
            f"{shown(decimal)} is not the {table.decimal!r} of dpsynth.dialect.decimal; "
            "a table has one decimal sign",
        )
    if field.values.get("bareNumber") is False:
        field.mistake("bareNumber", "units within cells are not read; remove it, and them")
    for key, value in constraints.values.items():
        if key == "unique":
            if value is not False:
                constraints.mistake(key, "a column without repeats names rows; give it role drop")
        elif key in _UNSUPPORTED:
            constraints.mistake(key, "is not kept by a generator; use minimum, maximum or enum")
        elif key not in CONSTRAINT_KEYS:
            meant = did_you_mean(key, CONSTRAINT_KEYS)
            constraints.mistake(key, f"there is no such constraint{meant}")


def _read_bounds(constraints: FieldReader, extra: FieldReader, column: Column) -> Column:
    """Read minimum, maximum and step."""
    if not column.kind.is_numeric or column.is_categorical:
        why = "has categories" if column.is_categorical else f"is of type {column.type}"
        for part, key in ((constraints, "minimum"), (constraints, "maximum"), (extra, "step")):
            if part.has(key):
                part.mistake(key, f"the column {why}, and so no {key}; remove it")
        return column
    if column.interval is not None:  # its bounds follow from those of another column
        if column.bounds_basis is None:
            extra.gap("bounds_basis", f"is missing for the longest gap; {NO_BASIS}")
        return column
    bounds: dict[str, Any] = {"minimum": None, "maximum": None}
    if column.kind.whole_range is not None:
        bounds |= column.kind.whole_range(column.format)
        if not set(bounds) & set(constraints.values):
            column = replace(column, bounds_basis=column.bounds_basis or WHOLE_DAY)
    for key, usual in bounds.items():
        if usual is not None and key not in constraints.values:
            continue
        if not constraints.has(key):
            constraints.gap(key, "is missing; declare it, it is never taken from the data")
            continue
        try:
            bounds[key] = read_bound(column.type, constraints.values[key], column.format)
        except ValueError as error:
            constraints.mistake(key, str(error))
    low, high = bounds["minimum"], bounds["maximum"]
    if low is not None and high is not None and low > high:
        constraints.mistake("maximum", "maximum is below minimum; swap or correct them")
    if column.bounds_basis is None:
        extra.gap("bounds_basis", f"is missing for the bounds; {NO_BASIS}")
    return replace(column, step=_read_step(extra, column, low, high), **bounds)


def _read_step(extra: FieldReader, column: Column, low: Any, high: Any) -> float | int | None:
    if column.kind.step is not None:
        return extra.whole("step", minimum=1)
    step = extra.number("step")
    if step is None:
        return None
    if step <= 0:
        extra.mistake("step", "the step is positive, like 1 or 0.5")
        return None
    if low is not None and high is not None and (high - low) / step > MAX_WHOLE:
        extra.mistake("step", "more than 2^53 steps between the bounds; take a larger step")
        return None
    return float(step)


MAX_CODES = 4096


def read_categories(
    field: FieldReader, constraints: FieldReader, extra: FieldReader, column: Column
) -> Column:
    """Read the categories from enum or from a code list, and the labels."""
    if column.kind.is_truth:
        values = constraints.values.get("enum")
        if values is not None and values not in ([True, False], [False, True]):
            constraints.mistake("enum", "a boolean has both values; remove enum, or declare text")
        return replace(column, categories=("false", "true"))
    if extra.has("codes"):
        return _read_codes(constraints, extra.part("codes"), column)
    if not constraints.has("enum"):
        if column.kind.is_text and not ({"minimum", "maximum"} & set(constraints.values)):
            constraints.gap("enum", "is missing; list the categories, or name dpsynth.codes")
        if field.has("categories"):
            field.mistake("categories", "repeat the values in constraints.enum: that is enforced")
        return column
    if column.kind.is_spelled:
        constraints.mistake("enum", f"type {column.type} has bounds; or declare type string")
        return column
    categories = _read_enum(constraints, column)
    if not categories:
        return column
    if column.bounds_basis is None:
        extra.gap("bounds_basis", f"is missing for the list of categories; {NO_BASIS}")
    return replace(column, categories=categories, labels=_labels(field, column, categories))


def _read_enum(constraints: FieldReader, column: Column) -> tuple[str, ...]:
    values = constraints.values["enum"]
    if not isinstance(values, list | tuple) or not values:
        constraints.mistake("enum", f"a list of categories is expected, not {shown(values)}")
        return ()
    if len(values) > MAX_CODES - 2:  # two more codes may be needed: other and missing
        maximum = MAX_CODES - 2
        constraints.mistake("enum", f"{len(values)} categories; at most {maximum}: roll them up")
        return ()
    places: dict[str, int] = {}
    if TODO in values:
        constraints.gap("enum", "is still TODO; list every category")
        return ()
    tokens = {_token(column.type, token) for token in column.missing_values}
    for index, value in enumerate(values):
        place = f"enum[{index}]"
        try:
            text = category_text(column.type, value)
        except ValueError as error:
            constraints.mistake(place, str(error))
            continue
        if text in tokens:
            constraints.mistake(place, f"{shown(text)} is a missing value too; keep one")
        if text in places:
            constraints.mistake(place, f"{shown(text)} repeats enum[{places[text]}]; remove one")
        places.setdefault(text, index)
    return tuple(places)


def _token(type_: str, token: str) -> str:
    """Write a missing-value token like a category, where it is one."""
    try:
        return category_text(type_, token)
    except ValueError:
        return token


def _labels(field: FieldReader, column: Column, categories: tuple[str, ...]) -> dict[str, str]:
    """Read ``categories``: values, or values with labels."""
    entries = field.values.get("categories")
    labels: dict[str, str] = {}
    if not isinstance(entries, list | tuple):
        if field.has("categories"):
            field.mistake("categories", f"a list is expected, not {shown(entries)}")
        return labels
    for index, entry in enumerate(entries):
        place = f"categories[{index}]"
        value: Any = entry.get("value") if isinstance(entry, Mapping) else entry
        try:
            text = category_text(column.type, value)
        except ValueError as error:
            field.mistake(place, str(error))
            continue
        if text not in categories:
            meant = did_you_mean(text, categories)
            field.mistake(place, f"{shown(text)} is not in constraints.enum{meant}")
        elif text in labels:
            field.mistake(place, f"{shown(text)} has a label already; remove one")
        elif isinstance(entry, Mapping) and entry.get("label") is not None:
            label = field.check_text(f"{place}.label", entry["label"])
            labels.update({} if label is None else {text: label})
    return labels


def _read_codes(constraints: FieldReader, codes: FieldReader, column: Column) -> Column:
    """Take categories and labels from a code system, and what is declared of it."""
    if not column.kind.is_text:
        codes.mistake(None, f"codes are text: declare type string, not {column.type}")
    if constraints.has("enum"):
        constraints.mistake("enum", "the categories come from dpsynth.codes; remove one of the two")
    if codes.flag("discover", False):
        return read_discovered(codes, column)
    if any(key in codes.values for key in ("list", "omop")):
        return _read_list(codes, column)
    codes.refuse_unknown(("system", "rollup", "groups", "several", "discover"))
    system, rollup = codes.text("system"), codes.text("rollup")
    groups = codes.texts("groups") or ()
    if system is None or rollup is None:
        codes.mistake(None, "name a system and a rollup, like {system: ICD-9-CM, rollup: chapter}")
        return column
    return _with_codes(column, Codes(system, rollup, groups), codes)


def _with_codes(column: Column, codes: Codes, part: FieldReader) -> Column:
    """Take categories and labels from codes, or note why they cannot be."""
    try:
        categories, labels = codes.categories, dict(codes.labels)
    except InputError as error:
        part.mistake(None, str(error))
        return column
    if part.has("several"):
        codes = replace(codes, several=read_several(part, categories))
    return replace(column, codes=codes, categories=categories, labels=labels)


def _read_list(codes: FieldReader, column: Column) -> Column:
    """Take the categories from the office's own list: the codes at the level to emit."""
    codes.refuse_unknown(("system", "list", "omop", "displays", "model", "emit", "several"))
    for key in ("list", "omop"):
        if isinstance(codes.values.get(key), str):
            codes.mistake(key, "a path is read only from a schema file, next to which it lies")
            return column
    system, part = codes.text("system"), codes.part("list")
    part.refuse_unknown(("codes", "parents", "displays"))
    lists = {key: part.values.get(key, []) for key in ("codes", "parents", "displays")}
    for key, values in lists.items():
        if not isinstance(values, list | tuple) or not all(isinstance(v, str) for v in values):
            part.mistake(key, "a list of texts is expected: write codes in quotes")
            return column
    try:
        tree = CodeTree.of(**lists)
    except ValueError as error:
        codes.mistake("list", str(error))
        return column
    if system is None:
        codes.mistake("system", "is missing: the name of the code system, such as ICD-9-CM")
        return column
    model, emit = _level(codes, "model", tree, 1), _level(codes, "emit", tree, CODE)
    if model is None or emit is None:
        return column
    if not model.isdigit() and model not in rollups_of(system):
        words = f"{listed(rollups_of(system))}, or " if rollups_of(system) else ""
        codes.mistake("model", f"{shown(model)} is not {words}a level of the list such as 1")
        return column
    if model.isdigit() and emit.isdigit() and int(model) > int(emit):
        codes.mistake("model", f"level {model} is below the level to emit, {emit}; model it above")
    return _with_codes(column, Codes(system, model, tree=tree, emit=emit), codes)


def _level(codes: FieldReader, key: str, tree: CodeTree, default: int | str) -> str | None:
    """Read a level of a list: a number from the top, or a word."""
    value = codes.values.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | str):
        codes.mistake(key, f"a level such as 1 is expected, not {shown(value)}")
        return None
    if isinstance(value, int) and not 1 <= value <= tree.depth:
        codes.mistake(key, f"the list has levels 1 to {tree.depth}, not {value}")
        return None
    if key == "emit" and isinstance(value, str) and value != CODE:
        codes.mistake(key, f"a level such as 2, or {CODE}, is expected, not {shown(value)}")
        return None
    return str(value)


def default_on_unknown(column: Column) -> str:
    """Where an undeclared category goes unless the schema says otherwise.

    Missing where the column is nullable, else a category called other, else an added ``other``;
    types that cannot hold that word take their first category. A column without categories has
    no unknown ones: its `on_bad` is repeated.
    """
    if column.discovers and column.codes is not None and not column.codes.system:
        return OTHER  # of codes that are not found
    if column.nullable or not column.modelled:
        return MISSING
    if column.categories is None and not column.kind.is_text:
        return "minimum"
    if not column.kind.is_text:
        assert column.categories is not None
        return column.categories[0]
    return _other_of(column) or OTHER


def default_on_bad(column: Column, on_unknown: str) -> str:
    """Where unparsable text and unexpected missing values go unless the schema says otherwise."""
    if column.nullable or not column.modelled:
        return MISSING
    return on_unknown


def read_policies(extra: FieldReader, column: Column) -> Column:
    """Read and resolve both policies of a modelled column."""
    numeric = column.categories is None and not column.kind.is_text
    unknown = _read(extra, "on_unknown", column)
    if numeric and extra.has("on_unknown"):
        extra.mistake("on_unknown", "the column has no categories; use on_bad")
    on_unknown = default_on_unknown(column) if unknown is None or numeric else unknown
    bad = _read(extra, "on_bad", column)
    on_bad = default_on_bad(column, on_unknown) if bad is None else bad
    if on_unknown == REFUSE and column.discovers and not column.categories:
        extra.mistake("on_unknown", "a code that is not found must go somewhere: other or missing")
    return replace(column, on_bad=on_bad, on_unknown=on_bad if numeric else on_unknown)


def _read(extra: FieldReader, key: str, column: Column) -> str | None:
    """Read one policy as its resolved word, or None for the default."""
    if not extra.has(key):
        return None
    word = extra.values[key]
    if word == MISSING:
        if column.required:
            extra.mistake(
                key, "the column is required, so no cell is missing; choose another policy"
            )
        return MISSING
    if word == REFUSE:
        return REFUSE
    if column.categories is None and column.kind.is_text:
        return str(word)  # a draft: whether it is a category shows when the list is written
    if column.categories is None:
        if word in ("minimum", "maximum") and not column.kind.is_text:
            return str(word)
        extra.mistake(key, f"{shown(word)} is not one of missing, minimum, maximum, refuse")
        return None
    if word == OTHER and column.kind.is_text:
        return _other_of(column) or OTHER
    try:
        text = _boolean(word) if column.kind.is_truth else category_text(column.type, word)
    except ValueError:
        text = str(word) if isinstance(word, str) else ""
    if text in column.categories:
        return text
    options = [MISSING, *([OTHER] if column.kind.is_text else []), REFUSE, *column.categories]
    meant = did_you_mean(text, options)
    extra.mistake(
        key, f"{shown(word)} is not a policy or a category{meant}; known: {listed(options)}"
    )
    return None


def _boolean(word: object) -> str:
    return shown(word) if isinstance(word, bool) else str(word)


def _other_of(column: Column) -> str | None:
    """Return the declared category that means other, if there is one."""
    return next((text for text in column.categories or () if text.lower() == OTHER), None)
