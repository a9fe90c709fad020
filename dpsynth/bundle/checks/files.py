"""The files of a bundle against its manifest: none missing, none more, none changed, and signed."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsynth._util.messages import plain
from dpsynth._util.strict_json import file_digest, parsed, read_plain_bytes
from dpsynth.bundle.checks.findings import Findings
from dpsynth.bundle.format import BundleFile, ManifestHeader, listed_files
from dpsynth.bundle.format.layout import MANIFEST, SIGNATURE, SIGNATURE_BYTES
from dpsynth.errors import Problem
from dpsynth.files import is_leftover
from dpsynth.schema import AnySchema

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
