"""The files of a bundle that follow from its others: the page, the card, the Croissant document.

They are written, and compared by `verify`, by the same function of the bundle's own files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from dpsynth._util.strict_json import file_digest
from dpsynth.bundle.files import Material, files_of
from dpsynth.bundle.format import Contents, table_path
from dpsynth.bundle.gates import HistoryProfile, Profile, Verdict, judge, temporal_counts
from dpsynth.encoding import typed_frames
from dpsynth.schema import AnySchema, Schema, synthetic_tables


def profiles_of(folder: Path, schema: AnySchema) -> tuple[Profile, ...]:
    """Summarise each table of the bundle in ``folder``; temporal rules are with that of patients.

    Raises:
        TableError: a cell is not what the schema allows, or a table cannot be read.
    """
    first, *others = (
        Profile.of(table, typed_frames(folder / table_path(name), table))
        for name, table in synthetic_tables(schema).items()
    )
    return (replace(first, rules=first.rules + temporal_counts(folder, schema)), *others)


@dataclass(frozen=True)
class Derived:
    """The derived files by path, and the verdicts that they show."""

    files: dict[str, bytes]
    verdicts: tuple[Verdict, ...]

    @classmethod
    def of(cls, folder: Path, contents: Contents, profiles: tuple[Profile, ...]) -> Derived:
        """Write them from the documents of a bundle and the profiles of its tables."""
        schema = contents.heading.schema
        certificate, files = contents.certificate, files_of(schema)
        verdicts = judge(
            certificate,
            profiles,
            contents.audits,
            measured=contents.quality is not None,
            condition=contents.heading.drawing.condition,
        )
        tables = {
            path: file_digest(folder / path)
            for path, file in files.items()
            if file.is_table and (folder / path).exists()
        }
        histories = None if isinstance(schema, Schema) else HistoryProfile.of(folder, schema)
        material = Material(contents, profiles, verdicts, tables, histories)
        derived = {path: file.derive(material) for path, file in files.items() if file.derive}
        return cls(derived, verdicts)
