"""Verification of a ledger: does its chain hold, and is it the one that certificates speak of.

What the chain alone shows: a record that was edited, removed from the middle, inserted or reordered
without writing all later hashes anew. What only a certificate shows: a chain that was written anew
from some record on, or that was cut off at its end, or a ledger that was put back from an old
backup. Each bundle (and each run) holds one, written when its fit began to read: the newest
protects all records up to that moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dpsynth.bundle import MANIFEST, PRIVACY
from dpsynth.certificate import Certificate
from dpsynth.charge import Charge
from dpsynth.documents import as_object, file_digest, read_document, text
from dpsynth.drawing import Drawing
from dpsynth.errors import BudgetError, InputError, Problem, VerificationError
from dpsynth.ledger_book import Book
from dpsynth.ledger_chain import Record, breaks
from dpsynth.ledger_entry import VOIDED, Disorder, Entry, Spent, replayed
from dpsynth.quality_file import quality_digest, read_quality

_RUN = "run.json"


def verify_ledger(book: Book, against: Sequence[str | Path] = ()) -> list[str]:
    """Check a ledger, and hold it against bundles or runs that it charged.

    Returns:
        The checks that passed, a sentence each.

    Raises:
        InputError: one of ``against`` is neither a bundle nor a run.
        VerificationError: with everything that was found.
    """
    claims = [(str(folder), Evidence.of(Path(folder))) for folder in against]
    records = book.records()
    findings = [Problem("chain", finding) for finding in breaks(book.facts.origin, records)]
    findings += _out_of_time(records)
    entries: Sequence[Entry] = ()
    try:
        entries = replayed(records)
        if not findings:
            book.read(records).past()
    except (Disorder, BudgetError) as disorder:
        findings.append(Problem("records", str(disorder)))
    for place, evidence in claims:
        messages = differences(book, records, entries, evidence)
        findings += [Problem(place, message) for message in messages]
    if findings:
        raise VerificationError(findings)
    counted = "1 record" if len(records) == 1 else f"{len(records)} records"
    checks = [f"the chain of {counted} is whole, and each follows from the one before"]
    return checks + [f"it holds all that {place} was charged for" for place, _ in claims]


@dataclass(frozen=True)
class Evidence:
    """What a run or a bundle says of the ledger that charged it.

    Attributes:
        certificate: its certificate.
        run: digest of the run.
        manifest: SHA-256 of a bundle's manifest; None for a run.
        figures: SHA-256 of public quality figures; None if it has none.
    """

    certificate: Certificate
    run: str
    manifest: str | None = None
    figures: str | None = None

    @classmethod
    def of(cls, folder: Path) -> Evidence:
        """Read a bundle or a run.

        Raises:
            InputError: the folder is neither, or its run has no certificate.
        """
        if (folder / PRIVACY).is_file():
            manifest = read_document(folder / MANIFEST)
            place = f"{folder / MANIFEST}: dpsynth"
            own = as_object(manifest.get("dpsynth"), place)
            drawing = Drawing.from_dict(own.get("drawing"), f"{place}.drawing")
            certificate = Certificate.from_dict(read_document(folder / PRIVACY), PRIVACY)
            manifest_sha256 = file_digest(folder / MANIFEST)
            return cls(certificate, drawing.run_sha256, manifest_sha256, _figures(folder))
        if (folder / _RUN).is_file():
            document = read_document(folder / _RUN)
            if document.get("certificate") is None:
                raise InputError(f"{folder} is a run without a certificate; no ledger charged it")
            certificate = Certificate.from_dict(document["certificate"], _RUN)
            sha256 = text(document.get("sha256"), f"{_RUN}: sha256")
            return cls(certificate, sha256, figures=_figures(folder))
        raise InputError(
            f"{folder} is neither a bundle nor a run; name a folder that a ledger charged"
        )


def differences(
    book: Book, records: Sequence[Record], entries: Sequence[Entry], evidence: Evidence
) -> list[str]:
    """Name every way in which a ledger is not the one that charged a run or a bundle.

    Args:
        book: the ledger.
        records: of it.
        entries: what they say.
        evidence: what the run or the bundle says.
    """
    certificate = evidence.certificate
    charge = certificate.ledger
    if charge is None:
        return ["no ledger was charged for it"]
    if charge.id != book.id:
        return [f"it was charged by another ledger, {charge.id}"]
    messages = _anchored(book, records, charge)
    entry = {one.id: one for one in entries}.get(charge.entry)
    if entry is None:
        return [*messages, f"its entry {charge.entry} is not in the ledger"]
    if entry.status == VOIDED:
        messages.append(f"its entry {charge.entry} was voided, though it was fitted")
    pairs = {
        "epsilon": (certificate.epsilon, entry.epsilon),
        "delta": (certificate.delta, entry.delta),
        "events": ([one.to_dict() for one in certificate.events], entry.plan.get("events")),
        "dataset": (charge.dataset, entry.dataset),
        "model": (certificate.model, entry.model),
        "schema": (certificate.schema_sha256, entry.schema_hash),
        "unit": (certificate.unit, entry.unit),
        "population": (certificate.population, entry.population),
        "policy": (charge.policy, entry.policy),
    }
    messages += [
        f"its entry {charge.entry} has another {name}"
        for name, (stated, kept) in pairs.items()
        if stated != kept
    ]
    if entry.run is not None and entry.run != evidence.run:
        messages.append(
            f"its entry {charge.entry} was charged for another run: this one was changed, or comes "
            "from another fit"
        )
    if evidence.manifest not in (None, *(one.manifest for one in entry.releases)):
        messages.append(f"its entry {charge.entry} holds no release of this bundle")
    recorded = None if entry.measured is None else entry.measured.figures
    if evidence.figures not in (None, recorded):
        messages.append(
            f"its entry {charge.entry} does not hold its quality figures: they were changed, or "
            "measured with another copy of the ledger"
        )
    return messages + _totals(records, charge)


def _figures(folder: Path) -> str | None:
    """Digest public quality figures as a release would write them; None if there are none."""
    quality = read_quality(folder)
    return None if quality is None else quality_digest(quality)


def _totals(records: Sequence[Record], charge: Charge) -> list[str]:
    """Compare the number of fits and their sums with the ledger as of the certificate."""
    try:
        known = replayed(records[: charge.record])
    except Disorder:
        return []  # told already
    spent = Spent.of(one for one in known if one.dataset.lower() in charge.scope)
    if (spent.fits, spent.epsilon_sum, spent.delta_sum) == (
        charge.fits,
        charge.epsilon_total,
        charge.delta_total,
    ):
        return []
    return ["it states other fits, or other sums, than the ledger held when it was certified"]


def _anchored(book: Book, records: Sequence[Record], charge: Charge) -> list[str]:
    """Compare the chain with the head that a certificate holds."""
    if len(records) < charge.record:
        return [
            f"the ledger ends at record {len(records)}, but had {charge.record} when this was "
            "certified: its end was cut off, or an old backup was put in its place"
        ]
    heads = [record.head for record in records if record.number == charge.record]
    if charge.seal not in {head.seal(book.key) for head in heads}:
        return [
            f"record {charge.record} has another hash than when this was certified: it, or one "
            "before it, was written anew"
        ]
    return []


def _out_of_time(records: Sequence[Record]) -> list[Problem]:
    """Records are in the order of their times, and none is of a day to come."""
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat(timespec="seconds")
    findings = [
        Problem("chain", f"record {after.number} is older than the one before it")
        for before, after in zip(records, records[1:], strict=False)
        if after.at < before.at
    ]
    ahead = [record.number for record in records if record.at > tomorrow]
    if ahead:
        findings.append(
            Problem("chain", f"record {ahead[0]} is of a time to come: a clock was set forward")
        )
    return findings
