"""Audits of a run that may be published: they attack the training on synthetic rows only.

``audit.json`` beside ``run.json`` holds every audit that was made of the run with a background
drawn from the run itself, in the order in which they were made, and a bundle takes it along. The
canaries are uniform and the rest is drawn from what was released already, so nothing in it comes
from a private row. An audit of tables, ``internal/audit.json``, is another document.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from dpsynth._util.strict_json import (
    bytes_digest,
    check_format,
    check_keys,
    names,
    parsed,
    read_document,
    read_plain_bytes,
    several,
    sha256_text,
    text,
    written,
)
from dpsynth.bundle.format.audit import AuditClaim, AuditControl, PublicAudit
from dpsynth.bundle.format.audit_observer import View
from dpsynth.certificate import Certificate
from dpsynth.errors import ArtifactError, InputError
from dpsynth.files import updating, write_atomically
from dpsynth.synthesis.artifact import DOCUMENT as RUN

__all__ = [
    "Audits",
    "AuditClaim",
    "AuditControl",
    "PublicAudit",
    "View",
    "append_audit",
    "audits_digest",
    "read_audits",
]

FORMAT, VERSION = "dpsynth-audits", 1
INTERNAL = "dpsynth-audit"  # the format of audits that read private rows
DOCUMENT = "audit.json"
MAX_FILE = 32 * 2**20  # bytes
_MAX_AUDITS = 1_000


@dataclass(frozen=True)
class Audits:
    """All public audits of one run.

    Attributes:
        run_sha256: by which the run is known.
        audits: in the order in which they were made.
    """

    run_sha256: str
    audits: tuple[PublicAudit, ...]

    def to_dict(self) -> dict[str, Any]:
        """Write the document; the same audits give the same document."""
        head = {"format": FORMAT, "version": VERSION, "run_sha256": self.run_sha256}
        return head | {"audits": [audit.to_dict() for audit in self.audits]}

    @classmethod
    def from_dict(cls, document: Any, place: str = DOCUMENT) -> Self:
        """Read strictly what ``to_dict`` wrote.

        Raises:
            ArtifactError: anything is missing, unknown, of the wrong type or out of range, or it is
                an internal audit.
        """
        if isinstance(document, dict) and document.get("format") == INTERNAL:
            raise ArtifactError(
                f"{place} is an internal audit: it was computed from private rows and never leaves "
                "the office"
            )
        check_keys(document, place, ("format", "version", *names(cls)))
        check_format(document, place, FORMAT, VERSION)
        sha256 = sha256_text(document["run_sha256"], f"{place}: run_sha256")
        audits = several(
            PublicAudit.from_dict,
            document["audits"],
            f"{place}: audits",
            minimum=1,
            maximum=_MAX_AUDITS,
        )
        return cls(sha256, audits)

    def problems(self, certificate: Certificate, model: str) -> list[str]:
        """List what does not fit the run, for each audit."""
        return [
            f"audit {place}: {problem}"
            for place, audit in enumerate(self.audits, start=1)
            for problem in audit.problems(certificate, model)
        ]


def read_audits(folder: str | Path) -> Audits | None:
    """Read the public audits beside a run, or in a bundle; None if there are none.

    Raises:
        ArtifactError: they are damaged, internal, or of another version.
    """
    path = Path(folder) / DOCUMENT
    if not path.exists() and not path.is_symlink():
        return None
    content = read_plain_bytes(path, largest=MAX_FILE)
    return Audits.from_dict(parsed(content, str(path)), str(path))


def append_audit(run_folder: str | Path, audit: PublicAudit) -> Path:
    """Add an audit to those beside its run; the file is written whole or not at all.

    Raises:
        ArtifactError: the file there is damaged or belongs to another run, the run has no
            certificate, or the audit does not fit the run.
        InputError: the folder cannot be written to.
    """
    path, place = Path(run_folder) / DOCUMENT, Path(run_folder) / RUN
    run = read_document(place)
    sha256 = text(run.get("sha256"), f"{place}: sha256")
    if run.get("certificate") is None:
        raise ArtifactError(f"{place} has no certificate, so there is no claim to audit")
    certificate = Certificate.from_dict(run["certificate"], f"{place}: certificate")
    if problems := audit.problems(certificate, certificate.model):
        raise ArtifactError(f"the audit does not fit {place}: {problems[0]}")
    with updating(run_folder):
        before = read_audits(run_folder) or Audits(sha256, ())
        if before.run_sha256 != sha256:
            raise InputError(f"{path} belongs to another run; move it away, then audit again")
        audits = replace(before, audits=(*before.audits, audit))
        Audits.from_dict(audits.to_dict(), str(path))  # nothing is written that cannot be read
        write_atomically(path, written(audits.to_dict()))
    return path


def audits_digest(audits: Audits) -> str:
    """Return the SHA-256 (hex) of the file that holds the audits."""
    return bytes_digest(written(audits.to_dict()))
