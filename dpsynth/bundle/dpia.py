"""The paragraph for a data protection impact assessment, of a run or a bundle in a folder."""

from __future__ import annotations

from pathlib import Path

from dpsynth._util.strict_json import read_document
from dpsynth.bundle.format import read_audits
from dpsynth.bundle.format.layout import PRIVACY, SCHEMA
from dpsynth.bundle.pages import dpia_paragraph
from dpsynth.bundle.verifier import verify
from dpsynth.certificate import Certificate
from dpsynth.errors import InputError
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
        schema = any_from_dict(read_document(folder / SCHEMA), source=SCHEMA)
        certificate = Certificate.from_dict(read_document(folder / PRIVACY))
    elif (folder / DOCUMENT).is_file():
        run = Run.load(folder)
        if run.certificate is None or run.stamps:
            raise InputError(
                f"{folder} is stamped {', '.join(run.stamps)}, so it has no guarantee to describe"
            )
        schema, certificate = run.schema, Certificate.from_dict(run.certificate)
    else:
        raise InputError(f"{folder} is neither a run nor a bundle")
    return dpia_paragraph(schema, certificate, read_audits(folder))
