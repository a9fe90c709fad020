"""What a run or a bundle in a folder says of the ledger that charged it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dpsynth._util.arguments import require_list
from dpsynth._util.strict_json import as_object, file_digest, read_document, text
from dpsynth.bundle.format import Provenance, quality_digest, read_quality
from dpsynth.bundle.format.layout import MANIFEST, PRIVACY
from dpsynth.certificate import Certificate
from dpsynth.errors import InputError
from dpsynth.ledger import Evidence, LedgerFile, close
from dpsynth.ledger.entry import Entry
from dpsynth.synthesis import Run
from dpsynth.synthesis.run import DOCUMENT


def evidence_of(folder: Path) -> Evidence:
    """Read a bundle or a run.

    Raises:
        InputError: the folder is neither, or its run has no certificate.
    """
    if (folder / PRIVACY).is_file():
        manifest = read_document(folder / MANIFEST)
        place = f"{folder / MANIFEST}: dpsynth"
        extension = as_object(manifest.get("dpsynth"), place)
        drawing = Provenance.from_dict(extension.get("drawing"), f"{place}.drawing")
        certificate = Certificate.from_dict(read_document(folder / PRIVACY), PRIVACY)
        manifest_sha256 = file_digest(folder / MANIFEST)
        return Evidence(certificate, drawing.run_sha256, manifest_sha256, _figures(folder))
    if (folder / DOCUMENT).is_file():
        document = read_document(folder / DOCUMENT)
        if document.get("certificate") is None:
            raise InputError(f"{folder} is a run without a certificate; no ledger charged it")
        certificate = Certificate.from_dict(document["certificate"], DOCUMENT)
        sha256 = text(document.get("sha256"), f"{DOCUMENT}: sha256")
        return Evidence(certificate, sha256, figures=_figures(folder))
    raise InputError(f"{folder} is neither a bundle nor a run; name a folder that a ledger charged")


def evidence_by_folder(folders: Iterable[str | Path]) -> dict[str, Evidence]:
    """Read several bundles and runs, by the names of their folders.

    Raises:
        InputError: one of them is neither.
    """
    return {
        str(folder): evidence_of(Path(folder))
        for folder in require_list(folders, "a list of folders")
    }


def close_entry(book: LedgerFile, run_folder: str | Path) -> Entry:
    """Close the entry of a run whose fit ended, but could not reach the ledger.

    Raises:
        InputError: nobody is named, or no ledger charged the run.
        ArtifactError: the run is damaged.
        BudgetError: the run is not the one that the ledger has an open entry for.
    """
    run = Run.load(run_folder)
    return close(book, run, figures=None if run.stamps else _figures(Path(run_folder)))


def _figures(folder: Path) -> str | None:
    """Digest public quality figures as a release would write them; None if there are none."""
    quality = read_quality(folder)
    return None if quality is None else quality_digest(quality)
