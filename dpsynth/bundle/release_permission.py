"""Permission to release a run: from the ledger that charged it, and entered there.

A release reads no row; it asks the office's ledger, which holds none.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsynth.errors import BudgetError, InputError
from dpsynth.ledger import LedgerFile, MeasuredNote, enter_release, permit, required_gates
from dpsynth.ledger.actions import ChargedRun


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

    def enter(self, manifest: str) -> None:
        """Record that a bundle is written; ``manifest`` is the SHA-256 of its manifest."""
        for entry in self.entries:
            enter_release(self.book, entry, manifest)


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
