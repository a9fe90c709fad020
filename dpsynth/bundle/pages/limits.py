"""What whoever uses a synthetic table has to know of its limits, in sentences for every document.

Facts of the method and of the drawing; what the office adds is in `about`. Nothing is computed from
data.
"""

from __future__ import annotations

from dpsynth._util.formatting import figure, figure_at_most
from dpsynth.bundle.format import ManifestHeader, Provenance
from dpsynth.certificate import Certificate, for_person
from dpsynth.privacy import source_unit
from dpsynth.schema import Schema

INFERENCE = (
    "Standard errors, confidence intervals and p-values are too small if you compute them as if "
    "the rows were real: they leave out the privacy noise and the error of the model. Confirm "
    "every result that matters on real records."
)
UNITS_APART = (
    "Rows are not linked to each other or to a person: the table does not show which rows belong "
    "to one person."
)
HISTORIES = (
    "Keys link the rows of a synthetic patient. Of a history, the model learns the baseline, when "
    "each table begins, how many rows it has, and the steps from one row to the next. Relations "
    "between distant rows, and between rows of different tables, are reproduced less faithfully."
)


def is_stratified(drawing: Provenance) -> bool:
    """Tell whether rows, or patients, were spread more evenly than independent draws."""
    return not drawing.plain


def limits_of(heading: ManifestHeader) -> tuple[str, ...]:
    """List what the table cannot do, whoever publishes it."""
    drawing = heading.drawing
    limits = [INFERENCE]
    linked = not isinstance(heading.schema, Schema)
    if not isinstance(heading.schema, Schema):
        limits.append(HISTORIES)
    elif heading.schema.unit.column is not None:
        limits.append(UNITS_APART)
    limits.append(
        "What the model does not capture is lost: effects of three or more columns together, and "
        "rare combinations, are reproduced less faithfully than common ones."
    )
    noun = "patients" if linked else "rows"
    if drawing.condition is not None:
        limits.append(
            f"Only {noun} with {drawing.condition} were kept; all shares are shares of these "
            f"{noun}."
        )
    for rule in drawing.rules:
        limits.append(f"A rule was added after the fit, and all {noun} keep it: {rule.words}.")
    if is_stratified(drawing):
        limits.append(
            f"{noun.title()} are drawn with stratified sampling, so they vary less than "
            "independent draws."
        )
    if columns := formula_columns(heading):
        limits.append(
            f"Cells of {', '.join(columns)} begin like a formula. A spreadsheet may run them: "
            "import the CSV files as text, or read the Parquet files."
        )
    return tuple(limits)


def formula_columns(heading: ManifestHeader) -> tuple[str, ...]:
    """Name the columns whose cells a spreadsheet may run as formulas."""
    return tuple(
        f"{table.label}.{column.name}" if table.label else column.name
        for table in heading.tables.values()
        for column in table.schema.modelled
        if column.runs_in_spreadsheets
    )


def collected(drawing: Provenance) -> str:
    """Say where the rows come from."""
    return (
        f"Every row is generated: it was drawn from a generator (model {drawing.model}) that "
        "learned from records of people under differential privacy. A row can resemble a real "
        "record by chance."
    )


def personal(certificate: Certificate) -> str:
    """Say what the table, or the tables, may tell of persons."""
    several = bool(certificate.tables)
    table, counts = ("tables", "count") if several else ("table", "counts")
    return (
        "The rows were drawn from a generator that learned from personal health data. A row can "
        f"resemble a real record by chance. What the presence of any one "
        f"{source_unit(certificate.unit)} adds to the {table} is limited by differential privacy "
        f"with epsilon {figure_at_most(certificate.epsilon)} and delta "
        f"{figure(certificate.delta)}{for_person(certificate)}. privacy.json lists every event, so "
        f"anyone can recompute these figures. The publisher must assess whether the {table} "
        f"{counts} as personal data."
    )
