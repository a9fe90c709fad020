"""Statistics leave the office: released by leave of the ledger, signed, and verified by anyone."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth._util.arguments import path_of, require_list
from dpsynth._util.strict_json import bytes_digest, read_plain_bytes
from dpsynth.bundle.checks import foreign
from dpsynth.bundle.evidence import Permission, evidence_of
from dpsynth.bundle.format import Passphrase, load_private, load_public, signed
from dpsynth.bundle.format.signature import SIGNATURE, problem
from dpsynth.bundle.gates import judge_statistics
from dpsynth.bundle.gates.public_gates import OF_TABLES
from dpsynth.errors import (
    ArtifactError,
    BudgetError,
    DpsynthError,
    GateError,
    InputError,
    Problem,
    VerificationError,
)
from dpsynth.files import (
    atomic_folder,
    check_vacant,
    claimed,
    remove_leftovers,
    write_atomically,
    write_new,
)
from dpsynth.ledger import Evidence
from dpsynth.ledger.actions import close
from dpsynth.stats.document import DOCUMENT, Statistics
from dpsynth.stats.labels import Labels
from dpsynth.stats.labels.document import DOCUMENT as LABELS
from dpsynth.stats.linkage import Linkage
from dpsynth.stats.linkage.document import DOCUMENT as LINKAGE
from dpsynth.stats.package import MANIFEST

if TYPE_CHECKING:
    from dpsynth.ledger import LedgerFile
    from dpsynth.ledger.entry import Entry


_KINDS: dict[str, type[Statistics] | type[Labels] | type[Linkage]] = {
    LABELS: Labels,
    LINKAGE: Linkage,
    DOCUMENT: Statistics,
}


def document_of(folder: str | Path) -> str | None:
    """Name the document of a folder of statistics, labels or linkage; None where there is none."""
    return next((name for name in _KINDS if (path_of(folder) / name).is_file()), None)


def is_statistics(folder: str | Path) -> bool:
    """Whether a folder holds statistics, labels or linkage, and no run or bundle of rows."""
    return document_of(folder) is not None


def load_statistics(folder: str | Path) -> Statistics | Labels | Linkage:
    """Read statistics, labels or linkage from their folder, as `Statistics.load` does.

    Raises:
        ArtifactError: they are damaged or were changed.
    """
    return _KINDS[document_of(folder) or DOCUMENT].load(folder)


def release_statistics(
    folder: str | Path, bundle: str | Path, *, ledger: LedgerFile | None = None
) -> Path:
    """Copy statistics into a new folder that may leave the office, and enter it in the ledger.

    Args:
        folder: the statistics.
        bundle: the folder to make.
        ledger: the ledger that charged them; default: the one at hand.

    Returns:
        The new folder.

    Raises:
        ArtifactError: they are damaged or were changed.
        GateError: they are stamped as such that may not be released, or a gate that the policy
            requires did not pass. Gates about synthetic tables have nothing to judge here.
        BudgetError: the ledger's policy does not allow it, or requires a gate that is unknown.
        InputError: the new folder exists or cannot be written.
    """
    check_vacant(bundle)
    found = load_statistics(folder)
    if found.stamps:
        raise GateError(
            f"the statistics are stamped {', '.join(found.stamps)} and must not be released; ask "
            "again with a ledger and the operating system's randomness"
        )
    permission = Permission.of(found.charged, ledger)
    _keep_gates(found, permission)
    files = found.files()
    with claimed(bundle), atomic_folder(bundle) as temporary:
        for name, content in files.items():
            (temporary / name).write_bytes(content)
        load_statistics(temporary)
        permission.enter(bytes_digest(files[MANIFEST]))
    return Path(bundle)


def _keep_gates(found: Statistics | Labels | Linkage, permission: Permission) -> None:
    """Refuse what a gate stops, whether by itself or because the office's policy requires it."""
    verdicts = judge_statistics(found.certificate, found.stamps)
    unknown = set(permission.gates) - {verdict.key for verdict in verdicts} - {*OF_TABLES}
    if unknown:
        raise BudgetError(
            "the policy requires gates that dpsynth does not have: " + ", ".join(sorted(unknown))
        )
    for verdict in verdicts:
        if not verdict.passed and (verdict.stops or verdict.key in permission.gates):
            raise GateError(
                f"the release is stopped by a check that did not pass: '{verdict.title}'; for "
                "statistics it cannot be overridden"
            )


def close_statistics(book: LedgerFile, folder: str | Path) -> Entry:
    """Close the entry of statistics that were written, but could not reach the ledger at the end.

    Args:
        book: the ledger that charged them.
        folder: the statistics.

    Raises:
        ArtifactError: they are damaged or were changed.
        InputError: nobody is named.
        BudgetError: they are not what the ledger has an open entry for.
    """
    return close(book, load_statistics(folder).charged)


def evidence_by_folder(folders: Iterable[str | Path]) -> dict[str, Evidence]:
    """Read what statistics, runs and bundles say of the ledger that charged them, by their folders.

    Raises:
        ArtifactError: statistics are damaged or were changed.
        InputError: a folder is none of these, or no ledger charged it.
    """
    return {
        str(folder): _evidence(folder) if is_statistics(folder) else evidence_of(Path(folder))
        for folder in require_list(folders, "a list of folders")
    }


def _evidence(folder: str | Path) -> Evidence:
    """Read statistics or labels; all of their files follow from what the digest covers."""
    found = load_statistics(folder)
    return Evidence(found.certificate, found.digest)


def verify_statistics(
    folder: str | Path, *, key: str | Path | None = None, ledger: LedgerFile | None = None
) -> list[str]:
    """Check all that statistics say of themselves, with nothing but their folder.

    Args:
        folder: of the statistics.
        key: file of the publisher's public key; the Data Package must be signed with it.
        ledger: the ledger that charged them; it must hold what the certificate says.

    Returns:
        The checks that passed, a sentence each.

    Raises:
        InputError: there is no such folder, or no such key.
        VerificationError: with what is wrong.
    """
    place = path_of(folder)
    if not place.is_dir():
        raise InputError(f"{place} is not a folder of statistics: there is no such folder")
    public = None if key is None else load_public(key)
    try:
        found = load_statistics(place)
    except ArtifactError as error:
        raise VerificationError([Problem(document_of(place) or DOCUMENT, str(error))]) from error
    expected = found.files()
    more = {path.name for path in place.iterdir()} - {*expected, SIGNATURE}
    if more:
        raise VerificationError(
            [foreign(name, "is not part of the statistics") for name in sorted(more)]
        )
    certificate = found.certificate
    checks = [
        f"all {len(expected)} files follow from the request and its noisy answers",
        f"the certificate's events are those of the request, and compose to at most epsilon "
        f"{certificate.epsilon:g} at delta {certificate.delta:g}",
    ]
    if public is not None:
        signature = place / SIGNATURE
        if not signature.is_file():
            raise VerificationError([Problem(SIGNATURE, "is missing: nobody signed this")])
        if wrong := problem(expected[MANIFEST], read_plain_bytes(signature), public):
            raise VerificationError([Problem(SIGNATURE, wrong)])
        checks.append("the Data Package is signed with this key, and lists every other file")
    if ledger is not None:
        try:
            Permission.of(found.charged, ledger)
        except DpsynthError as error:
            raise VerificationError([Problem("ledger", str(error))]) from error
        twice = " to the datasets of both registers" if certificate.second is not None else ""
        if certificate.is_joint:
            twice = " once, to the budget that both registers share"
        checks.append(f"the ledger charged these statistics{twice}")
    return checks


def sign_statistics(
    folder: str | Path, key: str | Path, passphrase: Passphrase = None, *, overwrite: bool = False
) -> Path:
    """Sign the Data Package of statistics that verify.

    Returns:
        The path of the signature.

    Raises:
        InputError: they are signed already, or the key or its passphrase is wrong.
        VerificationError: they are not what their certificate says; nothing was written.
    """
    remove_leftovers(Path(folder))
    target = Path(folder) / SIGNATURE
    if os.path.lexists(target) and not overwrite:
        raise InputError(f"{folder} is already signed; --force replaces its signature")
    private = load_private(key, passphrase)
    verify_statistics(folder)
    content = load_statistics(folder).files()[MANIFEST]
    write = write_atomically if overwrite else write_new
    write(target, signed(content, private))
    return target
