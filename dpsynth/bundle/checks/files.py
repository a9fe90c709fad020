"""The files of a bundle against its manifest: none missing, none more, none changed, and signed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsynth._util.formatting import shown
from dpsynth._util.messages import plain
from dpsynth._util.strict_json import file_digest, parsed, read_document, read_plain_bytes
from dpsynth.bundle.format import (
    BundleFile,
    Contents,
    ManifestHeader,
    Precision,
    Provenance,
    Quality,
    listed_files,
    read_audits,
)
from dpsynth.bundle.format.layout import (
    AUDIT,
    CSV,
    MANIFEST,
    PARQUET,
    PRECISION,
    QUALITY,
    SIGNATURE,
    SIGNATURE_BYTES,
)
from dpsynth.errors import DpsynthError, Problem, SchemaError, VerificationError
from dpsynth.files import is_leftover
from dpsynth.schema import AnySchema, Schema

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


_LEFTOVER = (
    "is left of a command that was stopped while it wrote here, or of one that still writes: wait "
    "until it has ended, then run dpsynth sign, which removes it, or remove it by hand"
)


def foreign(path: str, why: str) -> Problem:
    """Return the finding of a file that does not belong in a folder; its name may be anybody's."""
    return Problem(plain(path), _LEFTOVER if is_leftover(Path(path)) else why)


def found_files(folder: Path, findings: Findings) -> set[str]:
    """List the files of the folder; links, pipes and strange folders are findings."""
    paths = set()
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            place = path.relative_to(folder).as_posix()
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode):
                paths.add(place)
            elif not stat.S_ISDIR(mode):
                findings.add(plain(place), "is not a plain file; a bundle cannot have links")
            elif place != "data":
                why = "is a folder that does not belong in a bundle"
                findings.problems.append(foreign(place, why))
    return paths


def read_manifest(
    folder: Path,
    content: bytes,
    paths: set[str],
    files: Mapping[str, BundleFile],
    findings: Findings,
) -> dict[str, Any] | None:
    """Parse a manifest, and compare the files with its list: names, sizes, digests."""
    document: dict[str, Any] | None = None
    with findings.step(
        MANIFEST, "every file is listed with its SHA-256, and there are no other files"
    ):
        document = parsed(content, str(folder / MANIFEST))
        listed = listed_files(document, files)
        for path in sorted(paths - set(listed) - {MANIFEST, SIGNATURE}):
            findings.problems.append(foreign(path, "is there, but is not listed in the manifest"))
        for path, (sha256, size, _) in listed.items():
            if path not in paths:
                findings.add(path, "is missing")
                continue
            same_size = (folder / path).stat().st_size == size
            if not same_size or file_digest(folder / path) != sha256:
                findings.add(path, "was changed: its size or SHA-256 is not the listed one")
    return document


def check_signature(
    folder: Path,
    content: bytes,
    paths: set[str],
    public: Ed25519PublicKey | None,
    findings: Findings,
) -> None:
    """Check who signed a manifest, if a key is given; else only that a signature is one."""
    if SIGNATURE not in paths:
        if public is not None:
            findings.add(SIGNATURE, "is missing: this bundle is not signed, or no longer")
        return
    if (folder / SIGNATURE).stat().st_size != SIGNATURE_BYTES:
        findings.add(SIGNATURE, f"is not a signature: it must have {SIGNATURE_BYTES} bytes")
    elif public is None:
        findings.checks.append(
            f"{SIGNATURE} exists but was not checked; to check it, give the publisher's key (--key)"
        )
    else:
        from dpsynth.bundle.format import fingerprint, problem

        passed = (
            "the manifest is signed with the key that was given "
            f"(SHA-256 of the key: {fingerprint(public)})"
        )
        with findings.step(SIGNATURE, passed):
            fault = problem(content, read_plain_bytes(folder / SIGNATURE), public)
            if fault is not None:
                findings.add(SIGNATURE, fault)


def check_description(
    document: dict[str, Any],
    schema: AnySchema,
    heading: ManifestHeader,
    files: Mapping[str, BundleFile],
    findings: Findings,
) -> None:
    """Hold the manifest to what a release would have written, but for sizes and digests."""
    with findings.step(MANIFEST, "the manifest describes each file as the schema requires"):
        for path, (_, _, description) in listed_files(document, files).items():
            if description != files[path].described(schema):
                findings.add(MANIFEST, f"{path} is described otherwise than the schema requires")
        expected = heading.to_dict()
        differing = {
            key
            for key in {*document, *expected} - {"resources"}
            if document.get(key) != expected.get(key)
        }
        if differing:
            findings.add(MANIFEST, f"{len(differing)} entries are missing, unknown or changed")


@dataclass
class Findings:
    """Checks that passed, a sentence each, and differences."""

    checks: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @contextmanager
    def step(self, place: str, passed: str | None = None) -> Iterator[None]:
        """Turn an error of one check into a finding; note the check if it found nothing."""
        before = len(self.problems)
        try:
            yield
        except SchemaError as error:
            self.problems += [
                Problem(f"{place}: {problem.place}", problem.message) for problem in error.problems
            ]
        except DpsynthError as error:
            self.problems.append(Problem(place, str(error)))
        except (ArithmeticError, UnicodeError):
            self.problems.append(Problem(place, "has a number or a text that is not possible"))
        if passed is not None and len(self.problems) == before:
            self.checks.append(passed)

    def add(self, place: str, message: str) -> None:
        """Note a difference."""
        self.problems.append(Problem(place, message))

    def extend(self, other: Findings) -> None:
        """Add what another list of findings holds."""
        self.checks += other.checks
        self.problems += other.problems

    def raise_if_any(self) -> None:
        """End a verification that found differences, in words that no terminal obeys.

        Raises:
            VerificationError: with all of them, each once.
        """
        plain = [Problem(shown(problem.place), shown(problem.message)) for problem in self.problems]
        if plain:
            raise VerificationError(list(dict.fromkeys(plain)))


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
        for problem in quality.problems(schema, contents.certificate, drawing.size):
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
