"""A package as YAML with comments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dpsynth._util.formatting import counted
from dpsynth.draft.linked.columns import DAYS, Placed
from dpsynth.draft.proposal import Proposal
from dpsynth.draft.yaml_text import comment, field_lines, flow

_HEAD = """\
# A draft of `dpsynth schema draft`, made from: {source}
# No row of any table was read. Before you use this schema:
#   1. Check the table of patients, and of each other table: its key, its time, and whether it is
#      wide (a row a visit), long (a test and its value a row), or of events that happen once.
#   2. Replace each TODO. A number or list comes from a document, never from the data.
#   3. Check each proposal. Then write your own source in bounds_basis, or write
#      "confirmed by NAME" in the place of the word "proposal".
#   4. Remove `draft: true` at the end, and run `dpsynth schema check`.
"""
_FOOT = """\
dpsynth:
  version: 1
  draft: true  # remove it when no TODO and no proposal is left
  patients: {patients}  # proposal: the table with one row a patient
  person: {{name: patient}}  # how certificate and pages call a person
  population: {{value: TODO, basis: TODO}}  # how many patients, two digits, from a report
  window: {{first: TODO, last: TODO, basis: TODO}}  # days from each patient's origin, as -3650
  # if a column of patients has the last day of follow-up: end: COLUMN
  # if an event, such as death, ends it: ended_by: EVENT
  # if rows of a patient have an order that holds: rules: ["each(visits).date >= patients.admitted"]
"""
_MAX_ROWS = "max_rows: {value: TODO, basis: TODO}"


def package_text(
    name: str,
    source: str,
    patients: str,
    placed: Mapping[str, Placed],
    proposals: Mapping[str, Sequence[Proposal]],
    dialects: Mapping[str, Mapping[str, str]],
    left_out: int = 0,
) -> str:
    """Write a draft.

    Args:
        name: of the package.
        source: of the draft, in words.
        patients: the name of the table of patients.
        placed: the columns of each table that have a place, by its name.
        proposals: the fields of each table.
        dialects: how the file of a table is written, where it is not the usual.
        left_out: how many files of the folder are no table of the draft. Their names do not get
            into a schema: those of a hospital's files may name a patient.
    """
    lines = [_HEAD.format(source=comment(source)[2:]).rstrip()]
    if left_out:
        lines.append(comment(f"Left out, and named on the screen: {counted(left_out, 'file')}."))
    lines.append("$schema: https://datapackage.org/profiles/2.0/datapackage.json")
    lines += [f"name: {flow(name)}", "resources:"]
    order = [patients, *(table for table in placed if table != patients)]
    dates = [
        str(one.document["name"])
        for one in proposals[patients]
        if one.document.get("type") in ("date", "datetime")
        and one.document.get("dpsynth", {}).get("role") not in ("drop", "sensitive")
    ]
    for table in order:
        own = placed[table]
        lines += [f"  - name: {flow(table)}", "    schema:"]
        if table == patients:
            lines.append(f"      primaryKey: {flow(own.key)}")
        else:
            key = {"resource": patients, "fields": [placed[patients].key]}
            lines.append(f"      foreignKeys: [{flow({'fields': [own.key], 'reference': key})}]")
        lines.append("      fields:")
        for proposal in proposals[table]:
            lines += [f"      {line}" for line in field_lines(proposal)]
        extra = [] if table == patients else list(_child_lines(own, dates))
        if table in dialects:
            hint = comment('add decimal: "," if numbers are written 3,5')
            extra.append(f"dialect: {flow(dict(dialects[table]))}  {hint}")
        if extra:
            lines += ["    dpsynth:", *(f"      {line}" for line in extra)]
    lines.append(_FOOT.format(patients=flow(patients)).rstrip())
    return "\n".join(lines) + "\n"


def _child_lines(own: Placed, dates: Sequence[str]) -> Iterator[str]:
    """Write what a table of rows says of itself."""
    if own.time is None:
        yield "time: TODO  # the column of the day; or order: COLUMN, where rows are only ordered"
    else:
        yield f"time: {flow(own.time)}" + (
            "  # proposal: days since each patient's origin" if own.type == DAYS else ""
        )
        if own.type != DAYS:
            hint = f", such as {dates[0]}" if dates else ""
            yield f"origin: TODO  {comment(f'the date of patients from which dates count{hint}')}"
    if own.once:
        yield f"once: {flow(own.named)}  # proposal: events that a patient has once; else max_rows"
        return
    if own.value is not None:
        yield "series:  # proposal: a long table, one test a row"
        yield f"  column: {flow(own.named)}"
        yield f"  value: {flow(own.value)}"
        yield "  tests: TODO  # such as {hdl: {minimum: 5, maximum: 200, bounds_basis: ...}}"
        yield f"{_MAX_ROWS}  # rows of each test of a patient that count"
    else:
        yield f"{_MAX_ROWS}  # rows of a patient that count"
    if own.time is not None:
        yield "# if two rows of a patient are never far apart: longest_gap: DAYS"
