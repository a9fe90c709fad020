"""From a `Schema` back to documents: its own form, and plain Table Schema for the synthetic."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from dpsynth._util.field_reader import TODO
from dpsynth.schema.bounds import write_bound, write_number
from dpsynth.schema.cell_forms import write_forms
from dpsynth.schema.code_systems import Codes
from dpsynth.schema.column import Column, Declared, Dialect, Facts, PrivacyUnit
from dpsynth.schema.columns import default_on_bad, default_on_unknown
from dpsynth.schema.descriptions import relation_of
from dpsynth.schema.orders import rule_document
from dpsynth.schema.relations import NO_END

PROFILE = "https://datapackage.org/profiles/2.0/tableschema.json"
_SPECIMEN = Column("", "boolean")  # holds the defaults of trueValues and falseValues


def schema_document(schema: Facts) -> dict[str, Any]:
    """Write the whole document; what equals a default is left out."""
    columns = [column for column in schema.columns if column.status_of is None]
    lists = Counter(column.missing_values for column in columns)
    usual = lists.most_common(1)[0][0] if lists else ("",)
    document: dict[str, Any] = {"$schema": PROFILE, "name": schema.name}
    document |= _filled(title=schema.title, description=schema.description)
    if usual != ("",):
        document["missingValues"] = list(usual)
    document["fields"] = [_field(column, usual, schema.dialect) for column in columns]
    extra: dict[str, Any] = {"version": 1}
    extra |= _unit(schema.unit)
    extra |= {"population": _declared(schema.population), "rows": _declared(schema.rows)}
    if dialect := _differences(schema.dialect, Dialect()):
        extra["dialect"] = dialect
    if schema.rows_where:
        extra["rows_where"] = {
            name: texts[0] if len(texts) == 1 else list(texts) for name, texts in schema.rows_where
        }
    if schema.rules:
        extra["rules"] = [rule_document(rule) for rule in schema.rules]
    extra |= _filled(source=schema.source, draft=schema.draft or None)
    document["dpsynth"] = extra
    return document


def synthetic_table_schema(schema: Facts) -> dict[str, Any]:
    """Write the Table Schema of the synthetic table.

    It has the modelled columns only, ``other`` among the categories where a cell can hold it, and
    the plain forms that `table.write_table` writes: ISO dates, a decimal point, true and false, an
    empty cell for a missing value.
    """
    document: dict[str, Any] = {"$schema": PROFILE}
    document |= _filled(title=schema.title, description=schema.description)
    document["missingValues"] = [""]
    document["fields"] = []
    for column in schema.modelled:
        constraints: dict[str, Any] = _filled(required=column.required or None)
        for key, bound in (("minimum", column.minimum), ("maximum", column.maximum)):
            if bound is not None and column.kind.table_schema != "string":  # a text has no bounds
                constraints[key] = write_bound(bound, column.kind)
        if column.is_categorical and not column.kind.is_truth and column.several is None:
            constraints["enum"] = [category_value(column, text) for text in column.levels]
        field: dict[str, Any] = {"name": column.name, "type": column.kind.table_schema}
        field |= _filled(title=column.title, description=column.description)
        if constraints:
            field["constraints"] = constraints
        if column.several is None:
            field |= _labelled(column, column.levels)
        facts = _filled(ucum=column.ucum, relation=relation_of(column) or None)
        facts |= {} if column.several is None else {"several": asdict(column.several)}
        if facts:
            field["dpsynth"] = facts
        document["fields"].append(field)
    return document


def _field(column: Column, usual: tuple[str, ...], dialect: Dialect) -> dict[str, Any]:
    field: dict[str, Any] = {"name": column.name, "type": column.type}
    field |= _filled(title=column.title, description=column.description)
    if column.format is not None and not column.forms.formats:
        field["format"] = column.format
    if column.missing_values != usual:
        field["missingValues"] = list(column.missing_values)
    if column.true_values != _SPECIMEN.true_values:
        field["trueValues"] = list(column.true_values)
    if column.false_values != _SPECIMEN.false_values:
        field["falseValues"] = list(column.false_values)
    if column.kind.has_decimals and dialect.decimal != Dialect().decimal:
        field["decimalChar"] = dialect.decimal
    if column.forms.thousands:
        field["groupChar"] = column.forms.thousands
    constraints: dict[str, Any] = _filled(required=column.required or None)
    for key, bound in (("minimum", column.minimum), ("maximum", column.maximum)):
        if bound is not None and column.interval is None:
            constraints[key] = write_bound(bound, column.kind, column.format)
    own = column.codes is None and column.grouping is None
    if own and column.categories is not None and not column.kind.is_truth:
        constraints["enum"] = [category_value(column, text) for text in column.categories]
        field |= _labelled(column, column.categories)
    if constraints:
        field["constraints"] = constraints
    if extra := _own(column):
        field["dpsynth"] = extra
    return field


def field_document(
    column: Column, missing_values: tuple[str, ...], dialect: Dialect
) -> dict[str, Any]:
    """Write one field, beside the table's missing values and dialect."""
    return _field(column, missing_values, dialect)


def _own(column: Column) -> dict[str, Any]:
    """Write the dpsynth object of a field."""
    roles = sorted(column.roles)
    extra: dict[str, Any] = _filled(
        role=(roles[0] if len(roles) == 1 else roles) or None,
        ucum=column.ucum,
        step=None if column.step is None or column.interval else write_number(column.step),
        bounds_basis=column.bounds_basis,
    )
    if column.codes is not None:
        extra["codes"] = _codes(column.codes)
    extra |= _relation(column)
    extra |= write_forms(column)
    if column.modelled and column.grouping is None:
        categorical = column.is_categorical or column.kind.is_text
        if categorical and column.on_unknown != default_on_unknown(column):
            extra["on_unknown"] = column.on_unknown
        if column.on_bad != default_on_bad(column, _unknown_before_bad(column)):
            extra["on_bad"] = column.on_bad
    return extra


def _codes(codes: Codes) -> dict[str, Any]:
    """Write what a column says of its codes, with the list itself."""
    several = {} if codes.several is None else {"several": asdict(codes.several)}
    if (discovery := codes.discovery) is not None:
        groups = _filled(
            system=codes.system or None,
            rollup=codes.rollup or None,
            groups=list(codes.groups) or None,
            found=None if discovery.found is None else list(discovery.found),
        )
        numbers = {"most": discovery.most, "expected": discovery.expected}
        return groups | {"discover": True, "pattern": discovery.pattern} | numbers
    if (tree := codes.tree) is None:
        groups = {"groups": list(codes.groups)} if codes.groups else {}
        return {"system": codes.system, "rollup": codes.rollup, **groups, **several}
    listed = {"codes": list(tree.codes), "parents": list(tree.parents)}
    listed |= {"displays": list(tree.displays)} if tree.displays else {}
    model: str | int = int(codes.rollup) if codes.rollup.isdigit() else codes.rollup
    emit: str | int = int(codes.emit) if codes.emit.isdigit() else codes.emit
    return {"system": codes.system, "model": model, "emit": emit, "list": listed} | several


def _relation(column: Column) -> dict[str, Any]:
    """Write what a column says about others of its row."""
    written: dict[str, Any] = {}
    if column.interval is not None:
        interval = column.interval
        written |= {"before" if interval.before else "after": interval.base}
        written |= {"shortest": interval.shortest} if interval.shortest else {}
        longest: Any = TODO if interval.longest == NO_END else interval.longest
        written |= {"longest": longest, "unit": interval.unit}
    if column.derived is not None:
        written["derived"] = column.derived.text
    if column.grouping is not None:
        level = column.grouping.level
        written["derived"] = {
            "group": column.grouping.base,
            "level": int(level) if level.isdigit() else level,
        }
    if column.present_if is not None:
        written["present_if"] = column.present_if.text
    if column.calendar:
        written["calendar"] = list(column.calendar)
    return written


def _unknown_before_bad(column: Column) -> str:
    """Give the policy that the default of `on_bad` follows."""
    categorical = column.is_categorical or column.kind.is_text
    return column.on_unknown if categorical else default_on_unknown(column)


def _unit(unit: PrivacyUnit) -> dict[str, Any]:
    written: dict[str, Any] = {}
    if unit.column is not None or unit.max_rows_basis is not None:
        written["max_rows"] = _declared(Declared(unit.max_rows, unit.max_rows_basis or TODO))
    plain = PrivacyUnit(None, 1, None)
    names = ("keep", "trim", "case", "leading_zeros", "missing_key")
    changed = {name: getattr(unit, name) for name in names}
    changed = {name: value for name, value in changed.items() if value != getattr(plain, name)}
    key = {name: value for name, value in changed.items() if isinstance(value, bool)}
    written |= {name: value for name, value in changed.items() if name not in key}
    written |= {"key": key} if key else {}
    if unit.person is not None:
        written["person"] = {"name": unit.person}
        written["person"] |= {"same_as": list(unit.same_as)} if unit.same_as else {}
        if unit.max_units_basis is not None:
            maximum = Declared(unit.max_units, unit.max_units_basis)
            written["person"]["max_units"] = _declared(maximum)
    return written


def _declared(number: Declared) -> dict[str, Any]:
    return {"value": number.value or TODO, "basis": number.basis}


def category_value(column: Column, text: str) -> str | int | float:
    """Write a category in the column's type."""
    if column.kind.is_text:
        return text
    return write_number(float(text))


def level_cell(column: Column, level: str) -> str | int | float | bool:
    """Return the cell that a level stands for, as rows are decoded."""
    return level == "true" if column.kind.is_truth else category_value(column, level)


def level_in_rule(column: Column, level: str) -> str:
    """Write a level as a rule compares it."""
    if column.kind.is_truth or not column.kind.is_text:
        return level if column.kind.is_truth else str(category_value(column, level))
    sign = '"' if "'" in level else "'"
    return f"{sign}{level}{sign}"


def _labelled(column: Column, texts: tuple[str, ...]) -> dict[str, Any]:
    """Write the labels of these categories, if there are any."""
    if not any(text in column.labels for text in texts):
        return {}
    entries = []
    for text in texts:
        entry: dict[str, Any] = {"value": category_value(column, text)}
        if text in column.labels:
            entry["label"] = column.labels[text]
        entries.append(entry)
    return {"categories": entries}


def _differences(settings: Dialect, plain: Dialect) -> dict[str, str | bool | int]:
    usual = vars(plain)
    return {name: value for name, value in vars(settings).items() if value != usual[name]}


def _filled(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
