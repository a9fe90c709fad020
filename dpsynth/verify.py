"""Verification of a bundle: by anyone, with nothing but the bundle, without torch or a database.

What is detected: a file that is missing, added, changed or a link; a table with a cell, a column, a
rule or a number of rows that the schema or the manifest does not allow, or that differs between its
two formats; a certificate that is not strict, whose events compose to more than it claims or to
something else than it states, that lacks an event its model must have paid for, that is about
another schema, unit or population, or that claims more in words than this version's sentences;
quality figures that no event paid for; audits of another run or claim, or that prove more or less
than their guesses do; a page that is not the one which the other files give.

What is not: the manifest is not signed, so whoever rewrites the whole bundle consistently can put
any table that fits the schema into it, state more noise than was added (and the smaller epsilon
that goes with it), leave out an audit, or name another ledger. ``plan_sha256`` and the hashes show
damage and careless edits, not a forger's. A page that says that another version of dpsynth wrote it
is held to its hash alone. That the noise was really drawn is shown by tests and audits of the
program, not by the bundle.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpsynth import __version__
from dpsynth.audit_file import Audits, read_audits
from dpsynth.bundle import (
    AUDIT,
    CSV,
    MANIFEST,
    MOST_CSV_ROWS,
    PARQUET,
    PRIVACY,
    QUALITY,
    REPORT,
    SCHEMA,
    Drawing,
    described,
    heading,
    listed_files,
)
from dpsynth.bundle_page import bundle_page, writer_of
from dpsynth.bundle_privacy import check_certificate
from dpsynth.bundle_tables import Content, check_table
from dpsynth.certificate import Certificate
from dpsynth.documents import file_digest, read_document, read_plain_bytes
from dpsynth.errors import DpsynthError, InputError, Problem, VerificationError
from dpsynth.quality_file import Quality
from dpsynth.schema import Schema


@dataclass
class _Report:
    """What was found so far: checks passed, and differences."""

    checks: list[str] = field(default_factory=list)
    findings: list[Problem] = field(default_factory=list)

    @contextmanager
    def step(self, place: str, passed: str | None = None) -> Iterator[None]:
        """Turn an error of one check into a finding; note the check if it found nothing."""
        before = len(self.findings)
        try:
            yield
        except DpsynthError as error:
            self.findings.append(Problem(place, str(error)))
        if passed is not None and len(self.findings) == before:
            self.checks.append(passed)

    def add(self, place: str, message: str) -> None:
        self.findings.append(Problem(place, message))

    def raise_if_any(self) -> None:
        if self.findings:
            raise VerificationError(self.findings)


def verify(bundle: str | Path) -> list[str]:
    """Check everything that a bundle says about itself.

    Returns:
        The checks that passed, a sentence each.

    Raises:
        InputError: there is no such folder.
        VerificationError: with every difference that was found.
    """
    folder = Path(bundle)
    if not folder.is_dir():
        raise InputError(f"{folder} is no bundle: there is no such folder")
    report = _Report()
    found = _found_files(folder, report)
    report.raise_if_any()  # nothing is read through a link
    document = _manifest(folder, found, report)
    schema = _schema(folder, found, report)
    certificate = _certificate(folder, found, report)
    drawing = None
    with report.step(MANIFEST):
        drawing = Drawing.from_dict(document.get("dpsynth"), "dpsynth") if document else None
    if schema is not None:
        if document is not None and drawing is not None:
            _description(document, schema, drawing, report)
        if certificate is not None:
            passed = (
                f"the certificate's events compose to at most epsilon {certificate.epsilon:g} at "
                f"delta {certificate.delta:g}"
            )
            with report.step(PRIVACY, passed):
                report.findings += check_certificate(certificate, schema, drawing)
        _tables(folder, found, schema, drawing, report)
    report.raise_if_any()
    if schema is not None and certificate is not None and drawing is not None:  # they are
        quality = _quality(folder, found, schema, certificate, report)
        audits = _audits(folder, found, certificate, drawing, report)
        report.raise_if_any()
        _page(folder, schema, certificate, drawing, quality, audits, report)
    report.raise_if_any()
    return report.checks


def _found_files(folder: Path, report: _Report) -> set[str]:
    """List the files of the folder; links, pipes and strange folders are findings."""
    found = set()
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            place = path.relative_to(folder).as_posix()
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode):
                found.add(place)
            elif not stat.S_ISDIR(mode):
                report.add(place, "is no plain file; a bundle has no links")
            elif place != "data":
                report.add(place, "is a folder that no bundle has")
    return found


def _manifest(folder: Path, found: set[str], report: _Report) -> dict[str, Any] | None:
    """Compare the files with the manifest's list: names, sizes, digests."""
    document: dict[str, Any] | None = None
    with report.step(MANIFEST, "every file is listed with its SHA-256, and no other is there"):
        document = read_document(folder / MANIFEST)
        files = listed_files(document)
        for path in sorted(found - set(files) - {MANIFEST}):
            report.add(path, "is not listed in the manifest")
        for path, (sha256, size, _) in files.items():
            if path not in found:
                report.add(path, "is missing")
                continue
            same_size = (folder / path).stat().st_size == size
            if not same_size or file_digest(folder / path) != sha256:
                report.add(path, "was changed: its size or SHA-256 is not the listed one")
    return document


def _schema(folder: Path, found: set[str], report: _Report) -> Schema | None:
    schema: Schema | None = None
    if SCHEMA in found:
        with report.step(SCHEMA, "the schema is complete and free of mistakes"):
            schema = Schema.from_dict(read_document(folder / SCHEMA), source=SCHEMA)
            schema.require_complete()
    return schema


def _certificate(folder: Path, found: set[str], report: _Report) -> Certificate | None:
    certificate: Certificate | None = None
    if PRIVACY in found:
        with report.step(PRIVACY):
            certificate = Certificate.from_dict(read_document(folder / PRIVACY))
    return certificate


def _description(
    document: dict[str, Any], schema: Schema, drawing: Drawing, report: _Report
) -> None:
    """Hold the manifest to what a release would have written, but for sizes and digests."""
    with report.step(MANIFEST, "the manifest describes each file as the schema requires"):
        for path, (_, _, description) in listed_files(document).items():
            if description != described(path, schema):
                report.add(MANIFEST, f"{path} is described otherwise than the schema requires")
        expected = heading(schema, drawing)
        differing = {
            key
            for key in {*document, *expected} - {"resources"}
            if document.get(key) != expected.get(key)
        }
        if differing:
            report.add(MANIFEST, f"{len(differing)} entries are missing, unknown or changed")


def _tables(
    folder: Path, found: set[str], schema: Schema, drawing: Drawing | None, report: _Report
) -> None:
    """Check every cell of both formats, and that they hold the same."""
    contents: dict[str, Content] = {}
    for path in (PARQUET, CSV):
        if path not in found:
            continue
        with report.step(path, f"every cell of {path} is one that the schema allows"):
            content, problems = check_table(folder / path, schema)
            report.findings += [Problem(f"{path}: {p.place}", p.message) for p in problems]
            if content is not None:
                contents[path] = content
    table, text = contents.get(PARQUET), contents.get(CSV)
    if table is None:
        return
    if drawing is not None and table.rows != drawing.rows:
        report.add(PARQUET, "has another number of rows than the manifest says")
    if text is not None:
        with report.step(CSV, f"{CSV} holds the same {table.rows} rows as {PARQUET}"):
            if text != table:
                report.add(CSV, f"holds other rows than {PARQUET}")
    if CSV not in found and table.rows <= MOST_CSV_ROWS:
        report.add(CSV, "is missing")


def _quality(
    folder: Path, found: set[str], schema: Schema, certificate: Certificate, report: _Report
) -> Quality | None:
    """Check the quality figures, if there are any: paid for, and about columns of the table."""
    if QUALITY not in found:
        return None
    quality: Quality | None = None
    with report.step(QUALITY, "an event of the certificate paid for the quality figures"):
        quality = Quality.from_dict(read_document(folder / QUALITY))
        for problem in quality.problems(schema, certificate):
            report.add(QUALITY, problem)
        tables = {file_digest(folder / path) for path in (PARQUET, CSV) if path in found}
        if quality.table_sha256 in tables:
            report.checks.append("the quality figures are about a table of this bundle")
        elif CSV in found:  # else the table may have been drawn as text that is not kept
            report.add(QUALITY, "is about a table that is not in the bundle")
    return quality


def _audits(
    folder: Path, found: set[str], certificate: Certificate, drawing: Drawing, report: _Report
) -> Audits | None:
    """Check the audits, if there are any: of this run and claim, and what their guesses prove."""
    if AUDIT not in found:
        return None
    audits: Audits | None = None
    with report.step(AUDIT, "what the audits prove follows from their guesses, about this run"):
        audits = read_audits(folder)
        if audits is not None:
            for problem in audits.problems(certificate, drawing.model):
                report.add(AUDIT, problem)
            if audits.run_sha256 != drawing.run_sha256:
                report.add(AUDIT, "holds the audits of another run")
    return audits


def _page(
    folder: Path,
    schema: Schema,
    certificate: Certificate,
    drawing: Drawing,
    quality: Quality | None,
    audits: Audits | None,
    report: _Report,
) -> None:
    """Compare the page with what the other files give, byte by byte."""
    with report.step(REPORT):
        content = read_plain_bytes(folder / REPORT)
        if (writer := writer_of(content)) not in (None, __version__):
            report.checks.append(
                f"{REPORT} has its listed SHA-256; dpsynth {writer} can compare it"
            )
            return
        page = bundle_page(folder, schema, certificate, drawing, quality, audits)
        page.require_passed()
        if page.content != content:
            report.add(REPORT, "is not the page that the other files give")
        else:
            report.checks.append(f"{REPORT} is the page that the other files give")
