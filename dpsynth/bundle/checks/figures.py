"""Documents that a bundle need not have: quality figures, audits, and figures of precision."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dpsynth._util.strict_json import file_digest, read_document, read_plain_bytes
from dpsynth.bundle.checks.findings import Findings
from dpsynth.bundle.format import Contents, Precision, Provenance, Quality, read_audits
from dpsynth.bundle.format.layout import AUDIT, CSV, PARQUET, PRECISION, QUALITY
from dpsynth.schema import Schema


def check_quality(
    folder: Path, paths: set[str], contents: Contents, findings: Findings
) -> Contents:
    """Check the quality figures: paid for, and about columns of the table."""
    quality = None
    with findings.step(QUALITY, "an event of the certificate paid for the quality figures"):
        quality = Quality.from_dict(read_document(folder / QUALITY))
        heading = contents.heading
        schema, drawing = heading.schema, heading.drawing
        assert isinstance(schema, Schema) and isinstance(drawing, Provenance)  # of a single table
        for problem in quality.problems(schema, contents.certificate, drawing.rows):
            findings.add(QUALITY, problem)
        tables = {file_digest(folder / path) for path in (PARQUET, CSV) if path in paths}
        if quality.table_sha256 in tables:
            findings.checks.append("the quality figures are about a table of this bundle")
        elif CSV in paths:  # else the table may have been drawn as text that is not kept
            findings.add(QUALITY, "is about a table that is not in the bundle")
    return replace(contents, quality=quality)


def check_audits(folder: Path, paths: set[str], contents: Contents, findings: Findings) -> Contents:
    """Check the audits: of this run and claim, and what their guesses prove."""
    drawing, audits = contents.heading.drawing, None
    with findings.step(AUDIT, "what the audits prove follows from their guesses, about this run"):
        audits = read_audits(folder)
        if audits is not None:
            for problem in audits.problems(contents.certificate, contents.certificate.model):
                findings.add(AUDIT, problem)
            if audits.run_sha256 != drawing.run_sha256:
                findings.add(AUDIT, "has the audits of another run")
    return replace(contents, audits=audits)


def check_precision(
    folder: Path, paths: set[str], contents: Contents, findings: Findings
) -> Contents:
    """Check the figures of precision: their noise is that of the certificate's events."""
    precision = None
    passed = "the stated precision has the noise of the certificate's events"
    with findings.step(PRECISION, passed):
        precision = Precision.from_csv(read_plain_bytes(folder / PRECISION), PRECISION)
        schema = contents.heading.schema
        assert isinstance(schema, Schema)  # linked tables have no such file
        for problem in precision.problems(schema, contents.certificate):
            findings.add(PRECISION, problem)
    return replace(contents, precision=precision)
