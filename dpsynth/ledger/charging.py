"""How a fit uses the ledger: reserved, then reading, then closed whatever happens.

How a fit that stopped goes on within its own entry: from the last checkpoint, and only once.

A fit notes each checkpoint in its entry *before* its file is written: how many private steps it has
taken, and the SHA-256 of the file. Each note names the one before it. So the ledger accepts one
successor of a checkpoint, and what was drawn is in a file only if the ledger knows that file. An
older copy, or a file that was never recorded, is refused; of two processes that go on from the same
one, the second to get further stops.

A ledger also points out a source that was read under another name before.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import shutil
import socket
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from dpsynth._util.dependencies import load_fitting
from dpsynth.certificate import Charge
from dpsynth.errors import (
    BudgetError,
    ClosedEntryError,
    DpsynthError,
    DpsynthWarning,
    Note,
    RefusedCellError,
)
from dpsynth.files import OutputClaim, Saved, check_open_files
from dpsynth.ledger.book import LedgerFile
from dpsynth.ledger.entry import CHARGED, CHECKPOINT, READING, RESERVED, RESUMED, Entry
from dpsynth.ledger.ledger import Ledger, Reservation
from dpsynth.policy import Policy
from dpsynth.privacy import PrivacyPlan, Unit
from dpsynth.schema import AnySchema
from dpsynth.tables import Reference, Source, as_source


@dataclass(frozen=True)
class Use:
    """What a fit is for: the dataset it is counted under, the purpose, its tier, its policy.

    ``apart`` names datasets of which the fit assumes that they share no people with its own;
    ``joined`` those that may have the same people, and draw on the same budget.
    """

    dataset: str
    purpose: str = ""
    tier: str | None = None
    policy: Policy | None = None
    apart: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()


@dataclass
class Opened:
    """A fit's open entry, what its certificate says of it, and the digest of the run it made."""

    entry: Entry
    charge: Charge
    run: str | None = None


@dataclass
class Charges:
    """The open entries that pay for one result, and what guards it until they are closed.

    Attributes:
        ledger: that holds them; None where nothing is charged, and nothing is guarded.
        opened: one for each dataset, the first payer's first; none without a ledger.
    """

    ledger: Ledger | None = None
    opened: list[Opened] = field(default_factory=list)
    _places: list[Path] = field(default_factory=list)

    @property
    def first(self) -> Opened | None:
        """The first payer's."""
        return self.opened[0] if self.opened else None

    def require_open(self) -> None:
        """Ask the ledger whether the entries still stand: before the first event, and at the end.

        Raises:
            ClosedEntryError: somebody closed one meanwhile; see `require_open`.
        """
        if self.ledger is not None:
            require_open(self.ledger, *[one.entry for one in self.opened])

    def save(
        self, claim: OutputClaim | None, digest: str, write: Callable[[Path], object]
    ) -> Saved | None:
        """Save the result that was paid for, if the entries still stand.

        Args:
            claim: of the output; None if it is not saved.
            digest: of the result; no other is released in the name of these entries.
            write: writes all of it to the path that it is given.

        Returns:
            Where it was saved; None without a claim.

        Raises:
            ClosedEntryError: as `require_open`; then nothing is written.
        """
        self.require_open()
        for one in self.opened:
            one.run = digest
        saved = None if claim is None else claim.save(write)
        if saved is not None and saved.place is not None:
            self._places.append(saved.place)
        return saved

    def discard(self) -> None:
        """Remove what was saved."""
        for place in self._places:
            shutil.rmtree(place, ignore_errors=True)

    def close(self, stacklevel: int) -> None:
        """Record that the fit ended well.

        Raises:
            ClosedEntryError: somebody closed an entry since the result was saved; it is removed.

        Warns:
            DpsynthWarning: an entry could not be closed; it counts, and the result is valid.
        """
        if self.ledger is None:
            return
        for one in self.opened:
            try:
                self.ledger.charge(one.entry.id, run=one.run)
            except DpsynthError as lost:
                if self._charged(self.ledger, one):
                    continue
                warnings.warn(
                    _unclosed(self.ledger, one.entry, lost),
                    DpsynthWarning,
                    stacklevel=stacklevel + 1,
                )

    def _charged(self, ledger: Ledger, one: Opened) -> bool:
        """Whether an entry that could not be closed is closed for this result after all.

        Raises:
            ClosedEntryError: it is closed, and not for this result.
        """
        try:
            with ledger.looking() as view:
                entry = view.entry(one.entry.id)
        except DpsynthError:
            return False
        if entry.open:
            return False
        if entry.status == CHARGED and entry.run == one.run:
            return True
        self.discard()
        raise closed(entry)


class KeptFit(Protocol):
    """Where a fit keeps its checkpoints, as far as its entry in the ledger depends on them."""

    def resume(self, ledger: Ledger) -> Opened | None:
        """Go on with the entry of a fit that stopped; None if this is a new fit."""

    def reserved(self, ledger: Ledger, entry: Entry) -> None:
        """Note the entry of a new fit, before anything is read."""

    def stays_open(self, error: BaseException) -> bool:
        """Whether the fit may go on after it was stopped by this."""


def default_ledger(*, stacklevel: int) -> Ledger:
    """Open the default ledger; say so where it is made, for a new one knows of nothing spent.

    Raises:
        InputError: ``DPSYNTH_LEDGER`` names a place without a ledger, or the user's own is empty.
        BudgetError: the ledger cannot be made or reached.
    """
    book = Ledger.default()
    if book.made:
        warnings.warn(
            f"a new ledger was created: {book.place}; it knows nothing about budget spent before",
            DpsynthWarning,
            stacklevel=stacklevel,
        )
    return book


@contextmanager
def charged(
    ledger: Ledger | None,
    plan: PrivacyPlan,
    schema: AnySchema,
    model: str,
    use: Use,
    *,
    networks: bool,
    kept: KeptFit | None = None,
) -> Iterator[Charges]:
    """Reserve the budget before the first private read; close the entry whatever happens.

    What a certificate says of the ledger is read off it before the first private read as well: it
    cannot depend on how the fit went, and a ledger that is lost meanwhile loses no run.
    ``networks`` says whether the fit uses torch beyond tensors. A fit that is ``kept`` goes on with
    its own entry, which stays open if the fit is interrupted.

    Raises:
        InputError: a library is missing, or cannot be loaded, that the fit needs to be ended.
        BudgetError: the ledger or its policy refuses; then nothing may be read.
        ClosedEntryError: somebody closed the entry before the fit ended; its result is removed.
    """
    payers = [(schema, use)]
    options: dict[str, Any] = {"networks": networks, "kept": kept}
    with charged_all(ledger, plan, payers, model, stacklevel=5, **options) as charges:
        yield charges


@contextmanager
def charged_all(
    ledger: Ledger | None,
    plan: PrivacyPlan,
    payers: Sequence[tuple[AnySchema, Use]],
    model: str,
    *,
    networks: bool,
    kept: KeptFit | None = None,
    stacklevel: int = 3,
) -> Iterator[Charges]:
    """Charge the same plan to several datasets, all or none, as `charged` does to one.

    Nothing has been read when a reservation is refused, so those before it are not entered either.
    Datasets that are joined in one budget have one entry, which counts once. A fit that is ``kept``
    is of one dataset.

    Raises:
        InputError: as `charged`.
        BudgetError: as `charged`, for any of the datasets.
        ClosedEntryError: as `charged`, for any of the datasets.
    """
    load_fitting(networks=networks)
    check_open_files()
    if ledger is None:
        yield Charges()
        return
    kept_on = None if kept is None else kept.resume(ledger)
    opened = [kept_on] if kept_on is not None else _reserved(ledger, plan, payers, model, kept)
    charges = Charges(ledger, opened)
    try:
        yield charges
        charges.require_open()
    except BaseException as error:
        if isinstance(error, ClosedEntryError):
            charges.discard()
        if kept is None or not kept.stays_open(error):
            for one in opened:
                _fail(ledger, one.entry, error)
        raise
    charges.close(stacklevel)


def _unclosed(ledger: Ledger, entry: Entry, lost: DpsynthError) -> str:
    """Say why an entry could not be closed, and what to do before a release."""
    with suppress(DpsynthError):
        if all(one.id != entry.id for one in ledger.entries()):
            return (
                f"the fit completed, but ledger {ledger.place} no longer has its entry {entry.id}: "
                "while the fit ran, the ledger was restored from a backup or replaced. What was "
                "spent since that backup is forgotten there. Put back the ledger that has the "
                "entry, then run: dpsynth ledger close RUN. Without it the run cannot be released"
            )
    return (
        f"the fit completed, but its entry {entry.id} could not be closed ({lost}). "
        "The entry counts, and the run is valid. Before a release, run: dpsynth ledger close RUN"
    )


def _reserved(
    ledger: Ledger,
    plan: PrivacyPlan,
    payers: Sequence[tuple[AnySchema, Use]],
    model: str,
    kept: KeptFit | None,
) -> list[Opened]:
    """Enter a new fit on each dataset, and record that reading begins."""
    asked = [_asked(plan, schema, model, use) for schema, use in payers]
    return _begin(ledger, ledger.reserve_all(asked), kept)


def _asked(plan: PrivacyPlan, schema: AnySchema, model: str, use: Use) -> Reservation:
    """Say what a plan asks of the ledger for one dataset."""
    return Reservation(
        dataset=use.dataset,
        purpose=use.purpose,
        tier=use.tier,
        policy=use.policy,
        plan=plan.to_dict(),
        epsilon=plan.budget.epsilon,
        delta=plan.budget.delta,
        model=model,
        schema_hash=schema.hash(),
        unit=Unit.of(schema),
        allow_refuse=schema.may_refuse,
        population=schema.population.value,
        apart=use.apart,
        joined=use.joined,
    )


def _begin(ledger: Ledger, entries: Sequence[Entry], kept: KeptFit | None) -> list[Opened]:
    """Record that reading begins; where that fails, nothing was read."""
    try:
        if kept is not None:
            [entry] = entries
            kept.reserved(ledger, entry)
        ledger.begin(*[entry.id for entry in entries])
        return [Opened(entry, charge_of(ledger, entry)) for entry in entries]
    except BaseException as error:
        for entry in entries:
            error.add_note(
                Note(
                    f"no row was read; entry {entry.id} is reserved and counts until it is voided: "
                    f"dpsynth ledger void {entry.id[:12]} --reason ..."
                )
            )
        raise


def _fail(ledger: Ledger, entry: Entry, error: BaseException) -> None:
    """Close an entry after an error, and say on the error what it cost."""
    if isinstance(error, ClosedEntryError):  # which says it; another payer's may still be open
        with suppress(DpsynthError):
            ledger.fail(entry.id, type(error).__name__)
        return
    refused = isinstance(error, RefusedCellError)
    note = (
        f"rows may have been read: the ledger counts epsilon {entry.cost[0]:g} as spent on "
        f"dataset '{entry.dataset}'"
    )
    try:
        kind = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else type(error)
        ledger.fail(entry.id, "refused a cell" if refused else kind.__name__)
    except DpsynthError as lost:
        note = (
            f"rows may have been read: epsilon {entry.cost[0]:g} is spent on dataset "
            f"'{entry.dataset}', and entry {entry.id} could not be closed: {lost}"
        )
    error.add_note(Note(note))


def charge_of(book: LedgerFile, entry: Entry) -> Charge:
    """Read the charge of an entry off its ledger, for the certificate of its fit."""
    with book.looking() as view:
        scope, head = view.scope(entry.dataset), view.head
        spent = view.spent(scope)
    return Charge(
        id=book.id,
        dataset=entry.dataset,
        scope=scope,
        entry=entry.id,
        fits=spent.fits,
        epsilon_total=spent.epsilon_sum,
        delta_total=spent.delta_sum,
        record=head.number,
        seal=head.seal(book.key),
        policy=entry.policy,
    )


def require_open(book: LedgerFile, *entries: Entry) -> None:
    """Refuse to go on where somebody has closed an entry since it was read.

    A fit that was given up leaves the 365 days by the time of that record, so nothing may be drawn
    or kept afterwards. Its process may be on another machine than whoever gave it up.

    A ledger that is out of reach stops nothing here, so that it loses no run: such a run cannot be
    released before ``dpsynth ledger close``, which asks the ledger again.

    Args:
        book: the ledger that charged them.
        entries: as they were when they were opened.

    Raises:
        ClosedEntryError: one is closed, so what its fit made has to be discarded.
    """
    try:
        with book.looking() as view:
            now = [view.entry(entry.id) for entry in entries]
    except DpsynthError:
        return
    for entry, earlier in zip(now, entries, strict=True):
        if not entry.may_still_spend(earlier):
            raise closed(entry)


def closed(entry: Entry) -> ClosedEntryError:
    """Word what becomes of a fit whose entry was closed while it was at work."""
    last = entry.forfeited or entry.history[-1]
    how = "another process ended this fit" if entry.status == CHARGED else "it was given up"
    how = "its share was given up" if entry.forfeited else how
    return ClosedEntryError(
        f"entry {entry.id[:12]} was closed by {last.who} on {last.at[:10]}, while this process was "
        f"still at work: {how}. So what this process made is discarded. The entry counts as spent; "
        "the same work again is a new charge"
    )


def enter_checkpoint(
    book: LedgerFile, entry_id: str, *, step: int, sha256: str, previous: str | None
) -> None:
    """Record a checkpoint, before its file is written.

    Args:
        book: the ledger that charged it.
        entry_id: its entry.
        step: private steps that it has taken.
        sha256: of the checkpoint.
        previous: of the checkpoint that was recorded before; None for the first.

    Raises:
        ClosedEntryError: the entry is closed.
        BudgetError: the fit went on elsewhere meanwhile, or the ledger cannot be written to.
    """
    with book.writing() as pen:
        entry = pen.entry(entry_id)
        if not entry.open:
            raise closed(entry)
        if not entry.precedes(step, previous):
            raise BudgetError(
                f"the fit of entry {entry.id} went on in another process; this one has to stop"
            )
        body = {"step": step, "sha256": sha256, "previous": previous}
        pen.write(CHECKPOINT, entry.id, body)


def continued(book: LedgerFile, entry_id: str, *, sha256: str) -> Entry:
    """Record that a process goes on with a fit that stopped, and return its entry.

    Args:
        book: the ledger that charged it.
        entry_id: its entry.
        sha256: of the checkpoint, which has to be the last one that was recorded.

    Raises:
        BudgetError: the entry is closed, or the checkpoint is not the last one.
    """
    with book.writing() as pen:
        entry = pen.entry(entry_id)
        if not entry.open:
            raise BudgetError(
                f"entry {entry.id} is {entry.status}, so its fit cannot go on; for a new fit, name "
                "another folder of checkpoints"
            )
        if entry.checkpoint is None or entry.checkpoint.sha256 != sha256:
            raise BudgetError(
                f"this is not the last checkpoint of entry {entry.id}, and no other is continued. "
                "If the folder is an older copy, take the newest. If the fit was killed just while "
                "it wrote its last checkpoint, it cannot go on: its entry counts, and you can give "
                f"it up by `dpsynth ledger forfeit {entry.id[:12]}`"
            )
        if entry.status == RESERVED:
            entry = pen.write(READING, entry.id, {"note": ""})
        body = {"host": socket.gethostname(), "process": os.getpid()}
        return pen.write(RESUMED, entry.id, body)


def recorded(book: LedgerFile, entry_id: str, sha256: str) -> bool:
    """Whether a checkpoint is the last one in the ledger; False if that cannot be asked."""
    try:
        with book.looking() as view:
            last = view.entry(entry_id).checkpoint
    except DpsynthError:
        return False
    return last is not None and last.sha256 == sha256


def compare_source(ledger: Ledger, entry: Entry, source: Source) -> str | None:
    """Return the keyed digest of a source, and warn where it was read under another name.

    Who is in it has one budget. The file's bytes (or a frame's cells; of a database, its URL
    without credentials and the table's name or the query's text) enter an HMAC under the ledger's
    own key, which nobody without that key can compare with a file. It is private reading, so it
    comes after the charge, and it stays in the ledger, beside the chain: no seal depends on it.

    Warns:
        DpsynthWarning: the names, and what to do.
    """
    digest = source_digest(source, ledger.key)
    if digest is None:
        return None
    try:
        others = ledger.saw(entry.id, digest)
    except DpsynthError:
        return digest  # only a hint; a fit that has begun does not stop for it
    if others:
        names = ", ".join(f"'{name}'" for name in others)
        warnings.warn(
            f"the same data were fitted as dataset {names} before, and now as '{entry.dataset}': "
            "they hold the same people, so what both have spent adds up. Name both in one group of "
            "the policy's datasets",
            DpsynthWarning,
            stacklevel=4,
        )
    return digest


def source_digest(source: Source, key: bytes) -> str | None:
    """Return the HMAC-SHA-256 of a source; None for a frame of cells that cannot be hashed."""
    total = hmac.new(key, digestmod=hashlib.sha256)
    source = as_source(source)
    if isinstance(source, pd.DataFrame):
        try:
            cells = pd.util.hash_pandas_object(source, index=False)
        except Exception:  # of any column, of the schema or not; some of these quote the cell
            return None
        total.update(repr([str(name) for name in source.columns]).encode(errors="replace"))
        total.update(cells.to_numpy().tobytes())
        return total.hexdigest()
    for block in Reference.of(source).content():
        total.update(block)
    return total.hexdigest()
