"""What histories could keep by declaration: questions in a draft, asked by names alone.

A draft proposes none of these declarations, because no name says that a fact is certain. It asks,
in a comment beside the table, and the answer comes from a protocol or from a person.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpsynth.draft.names import compact, words
from dpsynth.draft.proposal import Proposal
from dpsynth.draft.yaml_text import flow

_DUE = frozenset(
    "wave waves welle wellen vague ola timepoint timepoints zeitpunkt messzeitpunkt visitno "
    "visitnr visitnum visitnumber visitweek visitname occasion".split()
)
_HOURS = frozenset("hour hours stunde stunden heure heures hora horas".split())
_EVER = frozenset(
    "ever total cumulative cumul kumulativ kumuliert cumule cumulee acumulado acumulada".split()
)


def child_hints(
    time: str | None, kind: str, fields: Sequence[Proposal], stays: tuple[str, str] | None
) -> Iterator[str]:
    """Yield questions about a wide or long table of rows.

    Args:
        time: the column of the day; None where no name says it.
        kind: its type.
        fields: of the table.
        stays: the table of stays, and its column that says when one ends; None without one.
    """
    names = [str(one.document["name"]) for one in fields]
    if time is not None and kind in ("date", "datetime"):
        parts = ["weekday", "hour"] if kind == "datetime" else ["weekday", "month"]
        what = "weekdays or hours" if kind == "datetime" else "weekdays or seasons"
        yield (
            f"do {what} of rows matter? then in the field {flow(time)}: "
            f"dpsynth: {flow({'calendar': parts})}"
        )
    if any(compact(name) in _DUE for name in names):
        yield (
            "are rows due on days of a protocol? then: schedule: [0, 28, 84], and "
            "schedule_within: 7"
        )
    if hours := [name for name in names if compact(name) in _HOURS]:
        yield (
            f"does each patient have a row for each {flow(hours[0])}? then: time: "
            f"{flow(hours[0])}, schedule: {{from: 0, every: 1, times: 24}}, and "
            "rows: {exactly: 24}"
        )
    if time is not None and stays is not None:
        inside = flow({"table": stays[0], "length": stays[1]})
        yield f"does each row lie within a row of {stays[0]}? then: inside: {inside}"
    for one in fields:
        name = str(one.document["name"])
        if not one.is_dropped and _EVER & {*words(name)}:
            yield (
                f"does {flow(name)} never fall from row to row of a patient? then in its field: "
                "dpsynth: {cumulative: true}"
            )


def package_hints(events: Sequence[str]) -> Iterator[str]:
    """Yield questions about all tables; ``events`` are those of events that happen once."""
    for table in events:
        yield (
            "does one event imply another? then: implies: "
            f"[{{table: {flow(table)}, event: ONE, implies: OTHER}}]"
        )
    yield "are most patients followed to the last day of the window? then, with end: last_day: true"
