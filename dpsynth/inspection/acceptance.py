"""Which serious findings an office accepts: the setting ``accept`` of `dpsynth run`.

The setting is written by a person and public, as all settings are. Whether a run stops for want of
it is one bit about the private rows, as with ``refuse``; no file that is released depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpsynth._util.formatting import counted
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth.errors import GateError, InputError
from dpsynth.inspection.findings import BROKEN, KINDS, TABLE
from dpsynth.inspection.linked_findings import LINKED_KINDS
from dpsynth.schema import LinkedSchema, Schema


def check_accepted(accepted: Iterable[str], schema: Schema | LinkedSchema) -> None:
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


def _known(schema: Schema | LinkedSchema) -> tuple[list[str], list[str]]:
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
