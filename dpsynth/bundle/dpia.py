"""The text for a data protection impact assessment (DPIA), of a run or a bundle in a folder."""

from __future__ import annotations

from pathlib import Path

from dpsynth._util.arguments import path_of
from dpsynth._util.strict_json import read_document
from dpsynth.bundle.format import read_audits
from dpsynth.bundle.format.layout import PRIVACY, SCHEMA
from dpsynth.bundle.pages import dpia_paragraph
from dpsynth.bundle.verifier import verify
from dpsynth.certificate import Certificate
from dpsynth.errors import InputError
from dpsynth.files import check_no_bundle, write_new
from dpsynth.schema import any_from_dict
from dpsynth.synthesis import Run
from dpsynth.synthesis.run import DOCUMENT


def dpia_of(folder: Path) -> tuple[str, ...]:
    """Write the paragraph for a run or a bundle.

    Raises:
        InputError: the folder is neither, or its run claims nothing.
        ArtifactError: the run is damaged.
        VerificationError: the bundle does not verify.
    """
    if (folder / PRIVACY).is_file():
        verify(folder)
        return dpia_of_verified(folder)
    if (folder / DOCUMENT).is_file():
        run = Run.load(folder)
        if run.certificate is None or run.stamps:
            raise InputError(
                f"{folder} is stamped {', '.join(run.stamps)}, so it has no guarantee to describe"
            )
        certificate = Certificate.from_dict(run.certificate)
        return dpia_paragraph(run.schema, certificate, read_audits(folder))
    raise InputError(f"{folder} is neither a run nor a bundle")


def dpia_of_verified(bundle: Path) -> tuple[str, ...]:
    """Write the paragraphs for a bundle that has been verified."""
    schema = any_from_dict(read_document(bundle / SCHEMA), source=SCHEMA)
    certificate = Certificate.from_dict(read_document(bundle / PRIVACY))
    return dpia_paragraph(schema, certificate, read_audits(bundle))


def write_dpia(folder: str | Path, output: str | Path) -> None:
    """Write the paragraphs for a run or a bundle into a new text file; no real row is read.

    Raises:
        InputError: as `dpia_of`; or the file exists, lies in a bundle or cannot be written.
        ArtifactError: the run is damaged.
        VerificationError: the bundle does not verify.
    """
    check_no_bundle(output)
    write_new(output, dpia_text(dpia_of(path_of(folder, "the folder of a run or a bundle"))))


def dpia_text(paragraphs: tuple[str, ...]) -> bytes:
    """Set the paragraphs in a file: a blank line between two of them."""
    return ("\n\n".join(paragraphs) + "\n").encode()
