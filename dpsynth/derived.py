"""The page of a bundle, from the bundle's own files: so that it can be written, and checked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from dpsynth.audit_file import Audits
from dpsynth.bundle import PARQUET, Drawing
from dpsynth.bundle_tables import typed_frames
from dpsynth.certificate import Certificate
from dpsynth.documents import file_digest
from dpsynth.errors import GateError
from dpsynth.profile import Profile
from dpsynth.public_gates import Verdict, judge
from dpsynth.quality_file import Quality
from dpsynth.schema import Schema

_HEAD = 2_000  # bytes of a page, within which it names its writer


@dataclass(frozen=True)
class BundlePage:
    """The page as bytes, and the verdicts of the public gates that it shows."""

    content: bytes
    verdicts: tuple[Verdict, ...]

    def require_passed(self) -> None:
        """Refuse a release if a gate failed that stops it.

        Raises:
            GateError: all such gates are named.
        """
        failed = [one for one in self.verdicts if one.stops and not one.passed]
        if failed:
            said = "; ".join(
                f"'{one.title}'" + f" ({one.detail})" * bool(one.detail) for one in failed
            )
            raise GateError(f"the release stops at what does not hold: {said}")


def bundle_page(
    folder: Path,
    schema: Schema,
    certificate: Certificate,
    drawing: Drawing,
    quality: Quality | None,
    audits: Audits | None = None,
) -> BundlePage:
    """Write the page of the bundle in ``folder``, from its Parquet table and public documents.

    Raises:
        TableError: a cell is not what the schema allows, or the table cannot be read.
    """
    from dpsynth.public_report import public_page

    profile = Profile.of(schema, typed_frames(folder / PARQUET, schema))
    verdicts = judge(certificate, profile, audits)
    page = public_page(
        schema,
        certificate,
        profile,
        verdicts,
        drawing,
        table_sha256=file_digest(folder / PARQUET),
        quality=quality,
        audits=audits,
    )
    return BundlePage(page.encode(), verdicts)


def writer_of(page: bytes) -> str | None:
    """Return the version of dpsynth that a page says wrote it; None if it does not say."""
    found = re.search(rb'<meta name="generator" content="dpsynth ([\w.+]{1,40})">', page[:_HEAD])
    return None if found is None else found[1].decode()
