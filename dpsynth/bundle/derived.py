"""The files of a bundle that follow from its others: the page, the card, the Croissant document.

They are written, and compared by `verify`, by the same function of the bundle's own files.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dpsynth._util.strict_json import file_digest
from dpsynth.bundle.files import FILES, Material
from dpsynth.bundle.format import Contents
from dpsynth.bundle.format.layout import PARQUET
from dpsynth.bundle.gates import Profile, Verdict, judge
from dpsynth.encoding import typed_frames
from dpsynth.schema import Schema


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
        certificate = contents.certificate
        verdicts = judge(
            certificate, profile, contents.audits, measured=contents.quality is not None
        )
        tables = {
            path: file_digest(folder / path)
            for path, file in FILES.items()
            if file.is_table and (folder / path).exists()
        }
        material = Material(contents, profile, verdicts, tables)
        derived = {path: file.derive(material) for path, file in FILES.items() if file.derive}
        return cls(derived, verdicts)
