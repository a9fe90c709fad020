"""How the synthetic tables of a bundle hang together, in sentences: keys, days, tests, events."""

from __future__ import annotations

from dpsynth._util.formatting import counted
from dpsynth.schema import AnySchema, ChildTable, LinkedSchema, Schema, SyntheticTable

KEY = "number of the synthetic patient; the same in every table, and of nobody in the source"
PLACE = "place of the row among the patient's rows"


def words_of(table: SyntheticTable, schema: AnySchema) -> tuple[str, ...]:
    """Say what a row of one of several tables is; nothing of a single table.

    Names of columns are in quotes; they are not escaped.
    """
    if isinstance(schema, Schema):
        return ()
    if table.child is None:
        return _patients(schema)
    child = table.child
    sentences = [_row(child)]
    sentences.append(f"Column '{child.key}' names the patient, as in table {schema.patients.name}.")
    if child.time is not None:
        sentences.append(_days(child, schema))
    if child.order is not None:
        sentences.append(f"Column '{child.order}' numbers the rows of each patient from 1.")
    sentences += [f"Not kept: {link.left_out}." for link in child.links]
    return tuple(sentences)


def place_of(table: SyntheticTable, name: str) -> str:
    """Say what a column is that the sampler numbers; empty for any other."""
    if name == table.key:
        return KEY
    return PLACE if name == table.place else ""


def _patients(schema: LinkedSchema) -> tuple[str, ...]:
    sentences = ["Each row is a synthetic patient."]
    sentences.append(f"Column '{schema.key}' numbers them; the other tables name them by it.")
    if schema.origin is not None:
        sentences.append(f"Days count from the date in column '{schema.origin}'.")
    if schema.start is not None:
        sentences.append(f"Days of all patients count from {schema.start}.")
    if schema.end is not None:
        sentences.append(
            f"Column '{schema.end}' is the last day of follow-up; nothing happens after it."
        )
    return tuple(sentences)


def _row(child: ChildTable) -> str:
    most = counted(child.schema.unit.max_rows, "row")
    if child.once is not None:
        return (
            f"Each row is an event, which column '{child.once}' names; a patient has each event at "
            "most once."
        )
    if child.series is not None:
        return (
            f"Each row is a measurement: column '{child.series.column}' names the test, and column "
            f"'{child.series.value}' holds its value. A patient has at most {most} of each test."
        )
    return f"A patient has at most {most}."


def _days(child: ChildTable, schema: LinkedSchema) -> str:
    window = schema.window
    assert window is not None
    origin = "the patient's origin" if schema.start is None else f"{schema.start}"
    noun = window.noun
    what = f"the {noun}, counted from {origin}"
    if child.origin is not None:
        if isinstance(child.origin, str):
            origin = f"column '{child.origin}' of {schema.patients.name}"
        what = f"a date; its day counts from {origin}"
    return (
        f"Column '{child.time}' is {what}, from {noun} {window.first:,} to {noun} "
        f"{window.last:,}, and the rows of a patient stand in its order."
    )
