"""A paragraph for a data protection impact assessment, from a certificate alone.

It states the measures that the program took, in the words of GDPR Article 35 (7) and of Recital 26,
and leaves in brackets what only the office knows. It is no assessment, and says so.
"""

from __future__ import annotations

from dpsynth._util.formatting import figure, figure_at_most, percent_at_most, shown
from dpsynth.bundle.format import Audits
from dpsynth.certificate import Certificate, Charge, for_person, largest_posterior
from dpsynth.privacy import counted_of, counted_several, source_unit, whom
from dpsynth.schema import AnySchema, Schema, synthetic_tables

_PRIOR = 0.5


def dpia_paragraph(
    schema: AnySchema, certificate: Certificate, audits: Audits | None = None
) -> tuple[str, ...]:
    """Write the paragraph as groups of sentences: processing, measures, evidence, what is left."""
    return (
        _processing(schema, certificate),
        _measures(certificate),
        _ledger(certificate),
        _evidence(certificate, audits),
        _left(certificate),
    )


def _processing(schema: AnySchema, certificate: Certificate) -> str:
    unit = certificate.unit
    table = shown(schema.title or schema.name)
    named = unit.person is not None and unit.max_units == 1
    people = counted_several(unit) if named else "the people whom the rows describe"
    single = isinstance(schema, Schema)
    source = "the table" if single else "the linked tables"
    drawn = "a synthetic table is" if single else "synthetic tables are"
    released = "the table, and attacks on it" if single else "the tables, and attacks on them"
    columns = sum(len(list(table.variables())) for table in synthetic_tables(schema).values())
    who = "the people whom the rows describe; each row counts as one person"
    if certificate.tables:
        used = "; ".join(one.words for one in certificate.tables)
        who = (
            f"{people}, identified by column '{shown(unit.name or '')}'; in each measurement count "
            f"of each: {used}"
        )
    elif unit.name:
        who = (
            f"{people}, identified by column '{shown(unit.name)}'; at most {unit.max_rows} rows of "
            "each count in each measurement"
        )
    if unit.max_units > 1:
        who += f"; {whom(unit)} is assumed to have at most {unit.max_units} of these"
    return (
        f"Processing. From {source} '{table}' (health data, GDPR Article 9) a generator "
        f"(model {certificate.model}) is trained. From the generator alone, {drawn} "
        f"drawn for [purpose]. The data subjects are {who}. {columns} columns with "
        "publicly declared bounds and categories are modelled. Of the other columns, only those "
        "that identify persons or order their rows are used, and nothing is learned from them. "
        f"The quality of {released}, are assessed inside the office, on real rows "
        "[if applicable: some of which are held out of the training]. The legal basis of the "
        "training is [Article 6 and Article 9 (2), and national law]."
    )


def _measures(certificate: Certificate) -> str:
    unit = certificate.unit
    posterior = percent_at_most(
        largest_posterior(_PRIOR, *unit.cost(certificate.composed_epsilon, certificate.delta))
    )
    protected = source_unit(unit) + (" with all rows" if unit.name else "")
    events = ", ".join(event.name for event in certificate.events)
    bound = posterior if posterior.startswith("almost") else f"at most {posterior}"
    return (
        "Measures. The training satisfies differential privacy with epsilon "
        f"{figure_at_most(certificate.epsilon)} and delta {figure(certificate.delta)}, for adding "
        f"or removing one {protected}{for_person(certificate)}. The mechanisms that see records "
        f"({events}) and their noise were planned before the records were opened. Together they "
        f"cost epsilon {figure_at_most(certificate.composed_epsilon)}. A person who knows all "
        "other records, and thinks it as likely as not that a given record is present, may come "
        f"to think it {bound} likely. So the bound limits what the presence of a person adds to "
        "singling out, linkability and inference (the risks that Opinion 05/2014 of the Article 29 "
        "Working Party names), for every attack and not only for attacks that were tried. For what "
        "a record says about someone who is known to be in the data, epsilon counts twice."
    )


def _ledger(certificate: Certificate) -> str:
    charge = certificate.ledger
    if charge is None:
        return "Accountability. No ledger was charged, so the run cannot be released."
    fits = "1 fit" if charge.fits == 1 else f"{charge.fits} fits"
    policy = "a policy of the office" if charge.policy else "no policy"
    return (
        f"Accountability. A ledger counts every fit on dataset '{shown(charge.dataset)}': {fits} "
        f"when this fit was certified, with a total epsilon of "
        f"{figure_at_most(charge.epsilon_total)} for each {counted_of(certificate.unit)}, under "
        f"{policy}{_of_all(charge)}. The entries of the ledger are chained by hashes, and the "
        "certificate contains its seal."
    )


def _of_all(charge: Charge) -> str:
    """Bound what all fits together tell; one fit alone was bounded among the measures."""
    if charge.fits == 1:
        return ""
    maximum = percent_at_most(
        largest_posterior(_PRIOR, charge.epsilon_total, min(1.0, charge.delta_total))
    )
    bound = maximum if maximum.startswith("almost") else f"at most {maximum}"
    return (
        "; such a person who sees the results of all of them may come to think it "
        f"{bound} likely that the record is present"
    )


def _evidence(certificate: Certificate, audits: Audits | None) -> str:
    reasons = "; ".join(
        f"gate '{item.gate}' was overridden by {shown(item.by)}: "
        f"{shown(item.reason).strip().removesuffix('.')}"
        for item in certificate.overrides
    )
    overridden = f" Overrides: {reasons}." if reasons else ""
    if audits is None:
        return (
            "Evidence. The training was not attacked before the release. The bound above does not "
            "depend on an attack, but an attack can show that a program breaks the bound."
            f"{overridden}"
        )
    failures = sum(len(item.failures) for item in audits.audits)
    outcome = "none refuted the bound" if not failures else f"{failures} of their checks failed"
    count = "1 audit" if len(audits.audits) == 1 else f"{len(audits.audits)} audits"
    return (
        f"Evidence. {count} with planted canaries attacked the training; {outcome}. Any audits on "
        f"real records are internal and not part of this text.{overridden}"
    )


def _left(certificate: Certificate) -> str:
    tables = "tables" if certificate.tables else "table"
    return (
        "Residual risk. What holds for the population at large can be inferred about anyone, "
        "whether or not they are in the data. The bound does not cover the decision to publish, "
        "the choice among several fits, or the correctness of the source. Until [the controller] "
        "has assessed whether identification by means reasonably likely to be used is possible "
        f"(Recital 26), treat the synthetic {tables} as personal data."
    )
