"""The verb `check`: how private tables fit their schema; and what an office accepts of it.

The setting ``accept`` of `dpsynth run` names serious findings that an office accepts. A person
writes it, and it is public, as all settings are. Whether a run stops for want of it is one bit
about the private rows, as with ``refuse``; no file that is released depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

from dpsynth._util.formatting import counted
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth.errors import GateError, InputError
from dpsynth.inspection.check_result import CheckResult
from dpsynth.inspection.findings import BROKEN, KINDS, TABLE
from dpsynth.inspection.linked_check import check_linked
from dpsynth.inspection.linked_findings import LINKED_KINDS
from dpsynth.inspection.table_check import check_table
from dpsynth.schema import AnySchema, LinkedSchema, load_any
from dpsynth.tables import OptOut, Progress, Source, as_source


def check(
    data: Source | Mapping[str, Source],
    schema: AnySchema | str | Path,
    *,
    opt_out: OptOut | None = None,
    in_warehouse: bool = False,
    progress: Progress | None = None,
) -> CheckResult:
    """Compare a private table, or linked ones, with a schema.

    A cell that a column refuses is counted by what is wrong with it; nothing is refused here.

    Args:
        data: as of `dpsynth.fit`: a table; of linked tables what holds them, or each by its name.
        schema: its declaration, the path of one, or the name of one that ships.
        opt_out: units that are left out of all tables.
        in_warehouse: let the rows of one table stay in DuckDB or PostgreSQL, which count them.
        progress: called with the fraction that has been read.

    Returns:
        Findings, each with its level and likely causes; none for a table without a flaw. Internal.

    Raises:
        TableError: a table cannot be read, or is not the one that the schema describes; or the
            table of patients has no row.
        InputError: linked tables cannot be counted in a warehouse.

    >>> from dpsynth.tables import simulate
    >>> frame = simulate(200, seed=1).astype(str).replace({"nan": "", "<NA>": ""})
    >>> frame["sex"] = frame["sex"].str.upper()
    >>> check(frame, "demo").serious
    ('sex:unknown',)
    """
    schema = load_any(schema) if isinstance(schema, str | Path) else schema
    if isinstance(schema, LinkedSchema):
        if in_warehouse:
            raise InputError("linked tables are read to be checked; leave out in_warehouse")
        return check_linked(data, schema, opt_out, progress)
    source = as_source(cast(Source, data))
    if in_warehouse:
        from dpsynth.inspection.staying_check import check_staying

        if opt_out is not None:
            raise InputError("rows in a warehouse are counted with all units; leave out opt_out")
        return check_staying(source, schema, progress)
    return check_table(source, schema, opt_out, progress)


def check_accepted(accepted: Iterable[str], schema: AnySchema) -> None:
    """Refuse a setting that can accept nothing.

    In linked tables a place is a table, ``table.column`` or ``table.test``, a temporal rule, or
    ``table: rule`` for a rule of its rows.

    Raises:
        InputError: an entry is not ``column:kind``, or names no column, rule or kind.
    """
    kinds = (*KINDS, *LINKED_KINDS) if isinstance(schema, LinkedSchema) else KINDS
    places, rules = _known(schema)
    for entry in accepted:
        place, colon, kind = entry.rpartition(":")
        if not colon or kind not in kinds:
            raise InputError(
                f"accept: {shown(entry)} is not of the form column:kind"
                f"{did_you_mean(kind, kinds)}; kinds: {listed(kinds)}"
            )
        known = rules if kind == BROKEN else places
        if place not in known:
            what = "rule" if kind == BROKEN else "column"
            raise InputError(
                f"accept: {shown(entry)}: schema {schema.name} models no {what} "
                f"{shown(place)}{did_you_mean(place, known)}"
            )


def _known(schema: AnySchema) -> tuple[list[str], list[str]]:
    """Return the places of findings, and the places of broken rules."""
    if not isinstance(schema, LinkedSchema):
        columns = [column.name for column in schema.modelled]
        return [*columns, TABLE], [rule.text for rule in schema.rules]
    places, rules = [], [rule.text for rule in schema.rules]
    of_table = {schema.patients.name: schema.patients}
    of_table |= {child.name: child.schema for child in schema.children}
    for name, own in of_table.items():
        places += [name, *(f"{name}.{column.name}" for column in own.columns)]
        rules += [f"{name}: {rule.text}" for rule in own.rules]
    for child in schema.children:
        places += [f"{child.name}.{test.name}" for test in child.tests]
        places += [f"{child.name}.{listed(link.columns)}" for link in child.links]
    return places, rules


def require_accepted(serious: Iterable[str], accepted: Iterable[str]) -> None:
    """Stop where something serious was found that nobody accepted.

    The message names columns and kinds, no figure and no cell.

    Args:
        serious: keys of the serious findings, such as ``hba1c:unreadable``.
        accepted: keys that somebody accepted.

    Raises:
        GateError: something serious is not accepted.
    """
    open_findings = [key for key in serious if key not in set(accepted)]
    if open_findings:
        raise GateError(
            f"the table does not fit the schema: {counted(len(open_findings), 'serious finding')}"
            f" ({', '.join(open_findings)}). Nothing was charged. Run `dpsynth schema "
            "check SCHEMA DATA` to see figures, causes and remedies. Then correct the schema or "
            "the extract, or accept each finding by its name (--accept NAME, or accept: [NAME] in "
            "the settings). This message is internal: it depends on real rows"
        )
