"""The files of a bundle that follow from its others: the page, the card, the Croissant document.

They are written, and compared by `verify`, by the same function of the bundle's own files.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dpsynth._util.strict_json import file_digest, written
from dpsynth.bundle.format import Contents
from dpsynth.bundle.format.layout import CARD, CROISSANT, CSV, PARQUET, REPORT
from dpsynth.bundle.gates import Profile, Verdict, judge
from dpsynth.bundle.pages.card import card
from dpsynth.bundle.pages.croissant import croissant
from dpsynth.encoding import typed_frames
from dpsynth.schema import Schema

DERIVED = (REPORT, CARD, CROISSANT)


def profile_of(folder: Path, schema: Schema) -> Profile:
    """Summarise the table of the bundle in ``folder``.

    Raises:
        TableError: a cell is not what the schema allows, or the table cannot be read.
    """
    return Profile.of(schema, typed_frames(folder / PARQUET, schema))


@dataclass(frozen=True)
class Derived:
    """The derived files by path, and the verdicts that they show."""

    files: dict[str, bytes]
    verdicts: tuple[Verdict, ...]

    @classmethod
    def of(cls, folder: Path, contents: Contents, profile: Profile) -> Derived:
        """Write them from the documents of a bundle and a profile of its table."""
        from dpsynth.bundle.pages import public_page

        certificate = contents.certificate
        verdicts = judge(
            certificate, profile, contents.audits, measured=contents.quality is not None
        )
        tables = {
            path: file_digest(folder / path) for path in (PARQUET, CSV) if (folder / path).exists()
        }
        page = public_page(contents, profile, verdicts, table_sha256=tables[PARQUET])
        document = croissant(contents.heading, certificate, tables)
        made = {
            REPORT: page.encode(),
            CARD: card(contents, verdicts, tables).encode(),
            CROISSANT: written(document),
        }
        return cls(made, verdicts)
