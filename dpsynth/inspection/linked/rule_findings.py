"""Temporal rules that patients break."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from dpsynth.inspection.findings import BROKEN, LIMITS, Finding, share_text
from dpsynth.inspection.linked.child_read import ChildRead
from dpsynth.inspection.linked.patient_read import Ints, PatientsRead
from dpsynth.schema import LinkedSchema, PatientRows


def rule_findings(
    whole: LinkedSchema,
    patients: PatientsRead,
    children: Mapping[str, ChildRead],
    owners: Mapping[str, Ints],
) -> list[Finding]:
    """Judge the temporal rules; cells that are not valid leave a rule undecided."""
    if not whole.rules:
        return []
    first = patients.first_rows()
    frame = patients.cells().take(first).reset_index(drop=True)
    tables = {whole.patients.name: frame.assign(**{whole.key: range(len(first))})}
    for name, read in children.items():
        tables[name] = _named(read).assign(**{read.child.key: owners[name]})
    rows, found = PatientRows(tables, whole), []
    for rule in whole.rules:
        kept, certain = rule.holds_in(rows), rule.holds_in(rows, missing=False)
        broken, judged = int((~kept).sum()), int((~kept | certain).sum())
        if broken:
            found.append(
                Finding(
                    rule.text,
                    BROKEN,
                    LIMITS[BROKEN].level(broken / judged, broken),
                    f"{share_text(broken, judged, 'patient')} break this rule",
                    broken,
                    judged,
                    "correct these rows in the source, or leave the rule out: dpsynth never draws "
                    "a patient that breaks it",
                )
            )
    return found


def _named(read: ChildRead) -> pd.DataFrame:
    """Return the cells of a table of rows, with the declared name of its test or event."""
    if not len(read.units):
        return pd.DataFrame(columns=[column.name for column in read.schema.columns], dtype=object)
    cells = read.cells()
    column = read.child.once if read.child.once is not None else read.child.test_column
    if column is not None:
        names = pd.Series([*read.names, None], dtype=object)
        cells = cells.assign(**{column: names.take(read.named).to_numpy()})
    return cells
