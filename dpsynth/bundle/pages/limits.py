"""What whoever uses a synthetic table has to know of its limits, in sentences for every document.

Facts of the method and of the drawing; what the office adds is in `about`. Nothing is computed from
data.
"""

from __future__ import annotations

from dpsynth._util.formatting import figure, figure_at_most
from dpsynth.bundle.format import Drawing, Heading
from dpsynth.certificate import Certificate, for_person
from dpsynth.privacy import source_unit

INFERENCE = (
    "Standard errors, confidence intervals and p-values that are computed as if the rows were real "
    "are too small: they leave out the noise of privacy and the error of the model. A result that "
    "matters has to be confirmed on real records."
)
UNITS_APART = (
    "Each row stands alone: rows are not linked to a person, and sequences of visits are not "
    "modelled."
)


def limits_of(heading: Heading) -> tuple[str, ...]:
    """List what the table cannot do, whoever publishes it."""
    drawing = heading.drawing
    found = [INFERENCE]
    if heading.schema.unit.column is not None:
        found.append(UNITS_APART)
    found.append(
        "What the model does not capture is lost: effects of three and more columns together, and "
        "rare combinations, are reproduced less faithfully than common ones."
    )
    if drawing.condition is not None:
        found.append(f"Only rows with {drawing.condition} were kept; shares are among those.")
    if not drawing.plain:
        found.append("Rows are spread more evenly than chance would spread them.")
    return tuple(found)


def collected(drawing: Drawing) -> str:
    """Say where the rows come from."""
    return (
        f"Every row was made up by a computer: drawn from a generator (model {drawing.model}) that "
        "learned from records of people under differential privacy. A row can be like a real "
        "record by chance."
    )


def personal(certificate: Certificate) -> str:
    """Say what the table may tell of persons."""
    return (
        "Its rows were drawn from a generator that learned from personal health data; a row can be "
        "like a real record by chance. What the presence of any one "
        f"{source_unit(certificate.unit)} adds to the table is "
        f"bounded by differential privacy with epsilon {figure_at_most(certificate.epsilon)} and "
        f"delta {figure(certificate.delta)}{for_person(certificate)}; privacy.json lists every "
        "event, so that anybody can compute that. Whether the table counts as personal data is for "
        "its publisher to assess."
    )
