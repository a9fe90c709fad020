"""A run or a bundle and the ledger that charged it: evidence, and permission to release.

A release reads no row; it asks the office's ledger, which holds none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpsynth._util.arguments import require_list
from dpsynth._util.strict_json import as_object, file_digest, read_document, text
from dpsynth.bundle.format import Provenance, quality_digest, read_quality
from dpsynth.bundle.format.layout import MANIFEST, PRIVACY
from dpsynth.certificate import AddedRule, Certificate
from dpsynth.errors import BudgetError, InputError
from dpsynth.ledger import (
    Evidence,
    LedgerFile,
    MeasuredNote,
    close,
    enter_release,
    permit,
    required_gates,
)
from dpsynth.ledger.actions import ChargedRun
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


@dataclass(frozen=True)
class Permission:
    """A run that may be released, and the ledger that says so.

    ``entries`` are the run's, one for each dataset that it was charged to. ``gates`` are those that
    the office's policy requires a release to pass.
    """

    book: LedgerFile
    entries: tuple[str, ...]
    measured: MeasuredNote | None
    gates: tuple[str, ...]

    @classmethod
    def of(cls, run: ChargedRun, book: LedgerFile | None) -> Permission:
        """Ask the ledger that charged a run; by default the one at hand.

        Raises:
            BudgetError: that ledger is not at hand, or does not allow the release.
        """
        book = ledger_of(run, book)
        entries = permit(book, run)
        gates = {gate for entry in entries for gate in required_gates(book, entry)}
        ids = tuple(entry.id for entry in entries)
        return cls(book, ids, entries[0].measured, tuple(sorted(gates)))

    def figures(self, place: str, table: str, sha256: str) -> None:
        """Refuse quality figures that are not those which the ledger saw being paid for.

        Args:
            place: of the file, for the message.
            table: SHA-256 of the table that they are about.
            sha256: of the file.

        Raises:
            BudgetError: the ledger knows of no such figures.
        """
        paid = self.measured
        if paid is None or (paid.table, paid.figures) != (table, sha256):
            raise BudgetError(
                f"{place} has figures that ledger {self.book.place} has no payment for: they were "
                "changed, or measured with another copy of the ledger; remove the file"
            )

    def rules(self, rules: Sequence[AddedRule]) -> None:
        """Refuse rules that were read off the data, as `require_allowed`."""
        require_allowed(rules, self.book)

    def enter(self, manifest: str) -> None:
        """Record that a bundle is written; ``manifest`` is the SHA-256 of its manifest."""
        for entry in self.entries:
            enter_release(self.book, entry, manifest)


def require_allowed(rules: Sequence[AddedRule], book: LedgerFile) -> None:
    """Refuse added rules that were read off the data, unless the policy in force allows them.

    Raises:
        BudgetError: it does not; the first of them is named.
    """
    read = [one for one in rules if not one.covered]
    if not read:
        return
    with book.looking() as view:
        policy = view.policy
    if policy is None or not policy.allow_rules_from_rows:
        raise BudgetError(
            f"rule {read[0].rule!r} was read off the data, which the guarantee does not cover; "
            "leave it out, or declare it from a document (source: declared). Only a policy with "
            "allow_rules_from_rows: true admits it"
        )


def ledger_of(run: ChargedRun, book: LedgerFile | None) -> LedgerFile:
    """Return the ledger that charged a run; by default the one at hand is tried.

    Raises:
        BudgetError: no ledger charged it, or that ledger is not at hand.
    """
    if run.certificate is None or run.certificate["ledger"] is None:
        raise BudgetError("no ledger charged this run; fit again with a ledger")
    ledger_id = run.certificate["ledger"]["id"]
    where = "no ledger was found here"
    try:
        book = book or LedgerFile.existing()
    except InputError as error:
        where = str(error)
    if book is None or book.id != ledger_id:
        where = where if book is None else f"{book.place} is another"
        raise BudgetError(
            f"ledger {ledger_id} charged this run and decides on its release, but {where}; set "
            "DPSYNTH_LEDGER to it"
        )
    return book
