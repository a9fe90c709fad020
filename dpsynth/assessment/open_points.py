"""What is open before a bundle is signed: in the bundle itself, and in the internal results.

Nothing here decides. The internal points were computed from real rows, and stay with the person who
signs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsynth._util.formatting import shown
from dpsynth.errors import DpsynthError

if TYPE_CHECKING:
    from dpsynth.bundle.format import Audits
    from dpsynth.bundle.format.audits import PublicAudit


@dataclass(frozen=True)
class OpenPoints:
    """What a person should have read before signing.

    Attributes:
        public: what the bundle itself shows, a sentence each.
        internal: what the internal results say, a sentence each.
    """

    public: tuple[str, ...]
    internal: tuple[str, ...]

    @classmethod
    def of(cls, bundle: str | Path, internal: str | Path | None) -> OpenPoints:
        """Read a bundle and its internal results; what cannot be read is left to verification.

        Args:
            bundle: its folder.
            internal: the folder of its internal results; default: beside it, ``BUNDLE.internal``.
        """
        folder = Path(bundle)
        if not folder.is_dir():
            return cls((), ())
        named = Path(os.path.abspath(folder)) if folder.name in ("", "..") else folder
        beside = named.with_name(f"{folder.resolve().name}.internal")
        place = beside if internal is None else Path(internal)
        try:
            return cls(tuple(_public(folder)), tuple(_internal(folder, place)))
        except (DpsynthError, OSError, KeyError, TypeError, AttributeError, ValueError):
            return cls((), (f"{place} or the bundle could not be read",))

    def lines(self) -> list[str]:
        """Lay them out for a terminal."""
        if not self.public and not self.internal:
            return []
        points = [f"in the bundle: {one}" for one in self.public]
        points += [f"internal: {one}" for one in self.internal]
        return ["Open before signing:", *(f"  - {shown(point)}" for point in points)]

    def to_dict(self) -> dict[str, Any]:
        """Give them in JSON types."""
        return {"public": list(self.public), "internal": list(self.internal)}


def _public(folder: Path) -> list[str]:
    from dpsynth._util.strict_json import read_document
    from dpsynth.bundle.format import read_audits
    from dpsynth.bundle.format.layout import PRIVACY

    certificate = read_document(folder / PRIVACY)
    points = [
        f"the gate '{override['gate']}' was overridden by {override['by']}: {override['reason']}"
        for override in certificate.get("overrides") or []
    ]
    return points + _audits(read_audits(folder))


def _audits(audits: Audits | None) -> list[str]:
    if audits is None:
        return ["the training was not audited"]
    return [point for audit in audits.audits for point in _audits_of(audit)]


def _audits_of(audit: PublicAudit) -> list[str]:
    from dpsynth.bundle.pages.audit_cards import attackers

    blind = [f"{one.sees}: {one.blind}" for one in attackers(audit) if one.blind]
    return [*audit.failures, *blind]


def _internal(folder: Path, place: Path) -> list[str]:
    from dpsynth._util.strict_json import read_document
    from dpsynth.assessment.results_folder import AUDIT, EVALUATION, HISTORIES, PAGE
    from dpsynth.eval.report import answer

    paths = [place / name for name in (EVALUATION, HISTORIES, AUDIT)]
    flat, histories, audit = (dict(read_document(p)) if p.is_file() else None for p in paths)
    evaluation = flat if histories is None else histories
    if evaluation is None and audit is None:
        return [f"no results at {place}; name their folder (--internal), or evaluate and audit"]
    known = [sha for one in (evaluation, audit) if one and (sha := _table(one)) is not None]
    if not set(known) <= _digests(folder):
        return [f"{place} is about another table than the bundle's"]
    verdict = answer(evaluation, audit)
    if verdict.decision == "release":
        return []
    return [f"{verdict.headline} ({place / PAGE})", *verdict.reasons]


def _digests(folder: Path) -> set[str]:
    """Return the digests by which results may name the tables of a bundle.

    One table is its Parquet file; a cohort is all of its files of one kind, by table.
    """
    from dpsynth._util.strict_json import digest, file_digest
    from dpsynth.bundle.format.layout import PARQUET

    if (folder / PARQUET).is_file():
        return {file_digest(folder / PARQUET)}
    kinds = [sorted((folder / PARQUET).parent.glob(f"*{kind}")) for kind in (".csv", ".parquet")]
    return {digest({path.stem: file_digest(path) for path in paths}) for paths in kinds}


def _table(document: Mapping[str, Any]) -> str | None:
    """Return the SHA-256 of the table that a document is about, if it names one."""
    about = (document.get("tables") or {}).get("synthetic") or document.get("not_done") or {}
    return about.get("sha256")
