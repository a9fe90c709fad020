"""Verification of a bundle: by anyone, with nothing but the bundle, without torch or a database.

What is detected: a file that is missing, added, changed or a link; a table with a cell, a column, a
rule or a number of rows that the schema or the manifest does not allow, that differs between its
two formats, or is written otherwise than a release writes it; linked tables whose keys, days, caps
or events do not agree; a certificate that is not strict,
whose events compose to more than it claims or to something else than it states, that lacks an event
its model must have paid for, that is about another schema, unit or population, or that claims more
in words than this version's sentences; quality figures that no event paid for; audits of another
run or claim, or that prove more or less than their guesses do; a release that a public gate should
have stopped; a page, card or Croissant document that is not the one which the other files give.
With the publisher's public key: a manifest that the publisher did not sign. With the ledger: a
certificate that it did not write.

What is not, without the key: whoever rewrites the whole bundle consistently can put any table that
fits the schema into it, state more noise than was added (and the smaller epsilon that goes with
it), leave out an audit, or name another ledger. ``plan_sha256`` and the hashes show damage and
careless edits, not a forger's; the signature does. What another version of dpsynth derived is held
to its hash alone, and accepted only if that is asked for; so are the bytes of a table that another
version of the Parquet library encoded. That the noise was really drawn is shown by
tests and audits of the program, not by the bundle.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth._util.arguments import path_of
from dpsynth._util.strict_json import read_document, read_plain_bytes, written
from dpsynth._version import __version__
from dpsynth.bundle.checks import (
    Findings,
    TablePair,
    check_certificate,
    check_cohort,
    check_description,
    check_signature,
    found_files,
    read_manifest,
)
from dpsynth.bundle.files import DerivedFiles, documents_of, files_of, profiles_of
from dpsynth.bundle.format import Contents, ManifestHeader, table_path
from dpsynth.bundle.format.layout import MANIFEST, PRIVACY, SCHEMA
from dpsynth.bundle.format.manifest import manifest
from dpsynth.bundle.gates import disputes
from dpsynth.certificate import Certificate, with_rules
from dpsynth.errors import InputError, Problem, VerificationError
from dpsynth.schema import AnySchema, Schema, any_from_dict, synthetic_tables

if TYPE_CHECKING:
    from dpsynth.ledger import LedgerFile


def verify(
    bundle: str | Path,
    *,
    key: str | Path | None = None,
    ledger: LedgerFile | None = None,
    other_version: bool = False,
) -> list[str]:
    """Check everything that a bundle says about itself.

    Args:
        bundle: its folder.
        key: file of the publisher's public key; the manifest must be signed with it.
        ledger: the ledger that charged the fit; it must hold all that the certificate says.
        other_version: accept a bundle that says that another dpsynth wrote it, whose page, card and
            documents this one cannot compare; without a signature anything may stand in them.

    Returns:
        The checks that passed, a sentence each.

    Raises:
        InputError: there is no such folder, or no such key.
        VerificationError: with every difference that was found.

    >>> verify("bundle/")[0]  # doctest: +SKIP
    'every file has the SHA-256 and the size that the manifest states'
    """
    return examine(bundle, key=key, ledger=ledger, other_version=other_version).checks


@dataclass(frozen=True)
class Examined:
    """A bundle that verified.

    Attributes:
        manifest: the bytes that were checked; they hold the digest of every other file.
        checks: those that passed, a sentence each.
    """

    manifest: bytes
    checks: list[str]


def examine(
    bundle: str | Path,
    *,
    key: str | Path | None = None,
    ledger: LedgerFile | None = None,
    other_version: bool = False,
    signed: bool = True,
) -> Examined:
    """Check what `verify` checks, and return what was checked.

    Args:
        bundle: as `verify`, like those that follow.
        key: of the publisher.
        ledger: that charged the fit.
        other_version: whether to accept one that another dpsynth wrote.
        signed: False to leave a signature that is there out of account, as it will be replaced.

    Raises:
        InputError: as `verify`.
        VerificationError: as `verify`.
    """
    folder = path_of(bundle, "the folder of a bundle")
    if not folder.is_dir():
        raise InputError(f"{folder} is not a bundle: there is no such folder")
    public = None
    if key is not None:
        from dpsynth.bundle.format import load_public

        public = load_public(key)
    findings = Findings()
    paths = found_files(folder, findings)
    findings.raise_if_any()  # nothing is read through a link
    content = b""
    with findings.step(MANIFEST):
        content = read_plain_bytes(folder / MANIFEST)  # once: all that follows is about these
    findings.raise_if_any()
    if signed:
        check_signature(folder, content, paths, public, findings)
    contents = _Reader(folder, content, paths, findings, other_version).contents()
    findings.raise_if_any()
    if contents is not None:  # it is
        _canonical(folder, content, contents, findings, other_version=other_version)
        _derived(folder, contents, findings)
    if ledger is not None:
        _ledger(folder, ledger, findings)
    findings.raise_if_any()
    return Examined(content, findings.checks)


@dataclass(frozen=True)
class _Reader:
    """Reads the documents of a bundle one after the other, and checks each against those before."""

    folder: Path
    content: bytes  # of the manifest
    found: set[str]
    findings: Findings
    other_version: bool

    def contents(self) -> Contents | None:
        """Read all documents, tables too; None if a difference was found."""
        folder, paths, findings = self.folder, self.found, self.findings
        noted = Findings()
        schema, heading = self._schema(noted), None
        files = files_of(schema)
        document = read_manifest(folder, self.content, paths, files, findings)
        findings.extend(noted)
        certificate = self._certificate()
        if schema is not None:
            if document is not None:
                with findings.step(MANIFEST):
                    heading = ManifestHeader.of(document, schema)
            if document is not None and heading is not None:
                check_description(document, schema, heading, files, findings)
            if certificate is not None:
                passed = (
                    f"the certificate's events compose to at most epsilon {certificate.epsilon:g} "
                    f"at delta {certificate.delta:g}"
                )
                with findings.step(PRIVACY, passed):
                    drawing = None if heading is None else heading.drawing
                    findings.problems += check_certificate(certificate, schema, drawing)
            self._tables(schema, heading)
        if findings.problems or certificate is None or heading is None:
            return None
        contents = Contents(heading, certificate)
        for path, file in files.items():
            if file.check is not None and path in paths:
                contents = file.check(folder, paths, contents, findings)
        return contents

    def _schema(self, findings: Findings) -> AnySchema | None:
        """Read the schema, which says what files there may be."""
        schema: AnySchema | None = None
        if SCHEMA in self.found:
            with findings.step(SCHEMA, "the schema is complete and free of mistakes"):
                schema = any_from_dict(read_document(self.folder / SCHEMA), source=SCHEMA)
                schema.require_complete()
        return schema

    def _tables(self, schema: AnySchema, heading: ManifestHeader | None) -> None:
        """Check each table, and if all are sound, what holds between them."""
        folder, paths, findings = self.folder, self.found, self.findings
        before = len(findings.problems)
        tables = synthetic_tables(schema)
        for table in tables.values():
            TablePair(folder, paths, table, findings, self.other_version).check(heading)
        complete = all(table_path(name) in paths for name in tables)
        if not isinstance(schema, Schema) and complete and len(findings.problems) == before:
            check_cohort(folder, schema, findings)

    def _certificate(self) -> Certificate | None:
        certificate: Certificate | None = None
        if PRIVACY in self.found:
            with self.findings.step(PRIVACY):
                certificate = Certificate.from_dict(read_document(self.folder / PRIVACY))
        return certificate


def _canonical(
    folder: Path, content: bytes, contents: Contents, findings: Findings, *, other_version: bool
) -> None:
    """Hold each document to the bytes that a release writes: nothing travels along in its gaps."""
    writer = contents.heading.writer
    if writer != __version__:
        if not other_version:
            findings.add(
                MANIFEST,
                f"was written by dpsynth {writer}; this is {__version__}, which cannot compare "
                "page, card and documents: use that version, or accept it (--other-version)",
            )
        return
    files = files_of(contents.heading.schema)
    documents = {MANIFEST: written(manifest(folder, contents.heading, files))}
    documents |= documents_of(contents)
    before = len(findings.problems)
    for path, file in files.items():
        if file.document is not None and path not in documents and (folder / path).exists():
            findings.add(path, "is a document that nothing else in the bundle gives")
    for path, document in documents.items():
        with findings.step(path):
            actual = content if path == MANIFEST else read_plain_bytes(folder / path)
            if actual != document:
                findings.add(
                    path, "is not written as a release writes it: it may contain hidden content"
                )
    if len(findings.problems) == before:
        findings.checks.append("every document is written as a release writes it")


def _derived(folder: Path, contents: Contents, findings: Findings) -> None:
    """Judge the public gates anew, and compare the derived files with the others, byte by byte."""
    writer = contents.heading.writer
    with findings.step(PRIVACY):
        added = contents.heading.drawing.rules
        if contents.certificate.added_rules != added:
            findings.add(PRIVACY, "does not have the added rules of the manifest")
        schema = with_rules(contents.heading.schema, added)
        derived = DerivedFiles.of(folder, contents, profiles_of(folder, schema))
        findings.checks += [f"added rule {one.words}" for one in added]
        for message in disputes(derived.verdicts, contents.certificate.overrides):
            findings.add(PRIVACY, message)
        for path in derived.files:
            if not (folder / path).exists():
                if writer == __version__:
                    findings.add(path, "is missing")
            elif writer != __version__:
                findings.checks.append(
                    f"{path} has its listed SHA-256; dpsynth {writer} can compare it"
                )
            elif derived.files[path] != read_plain_bytes(folder / path):
                findings.add(path, "does not match the other files")
            else:
                findings.checks.append(f"{path} matches the other files")


def _ledger(folder: Path, ledger: LedgerFile, findings: Findings) -> None:
    """Hold the certificate against the ledger that charged its fit."""
    from dpsynth.bundle.evidence import evidence_by_folder
    from dpsynth.ledger import verify_ledger  # with a database, which a light check does without

    try:
        verify_ledger(ledger, evidence_by_folder([folder]))
    except VerificationError as error:
        findings.problems += [
            Problem(f"ledger: {problem.place}", problem.message) for problem in error.findings
        ]
    else:
        findings.checks.append("the ledger matches the certificate, and its chain is complete")
