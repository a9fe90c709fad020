"""The public files of a bundle, each in one entry: release, verify and the manifest loop over them.

To add a file, write what makes it in a file of its own, and add its entry to `FILES`. Those are the
files of a bundle of a single table; `files_of` gives those of any schema.

Some files follow from the others: the page, the card, the Croissant document. They are written, and
compared by `verify`, by the same function of the bundle's own files (`DerivedFiles`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dpsynth._util.strict_json import file_digest, written
from dpsynth.bundle.checks import check_audits, check_precision, check_quality
from dpsynth.bundle.format import BundleFile, Contents
from dpsynth.bundle.format.layout import (
    AUDIT,
    CARD,
    CROISSANT,
    NOTE,
    PRECISION,
    PRIVACY,
    QUALITY,
    REPORT,
    SCHEMA,
    TEXT,
    TYPED,
    resource_names,
    table_path,
)
from dpsynth.bundle.gates import GateResult, HistoryProfile, Profile, judge, temporal_counts
from dpsynth.bundle.pages.card import card
from dpsynth.bundle.pages.croissant import croissant
from dpsynth.bundle.pages.limits import formula_columns
from dpsynth.encoding import typed_frames
from dpsynth.schema import SINGLE, AnySchema, Schema, synthetic_tables

_JSON = ("json", "application/json")


@dataclass(frozen=True)
class Material:
    """What derived files are made from: public facts of the bundle, and nothing else.

    Attributes:
        contents: the documents of the bundle.
        profiles: what its tables hold.
        verdicts: of the public gates.
        tables: SHA-256 of each table in the bundle, by path.
        histories: what patients of linked tables look like in time; None of a single table.
    """

    contents: Contents
    profiles: tuple[Profile, ...]
    verdicts: tuple[GateResult, ...]
    tables: Mapping[str, str]
    histories: HistoryProfile | None = None

    @property
    def profile(self) -> Profile:
        """What the table holds, or of linked ones that of patients."""
        return self.profiles[0]


def _report(material: Material) -> bytes:
    from dpsynth.bundle.pages import public_page

    page = public_page(
        material.contents,
        material.profiles,
        material.verdicts,
        material.tables,
        material.histories,
    )
    return page.encode()


def _card(material: Material) -> bytes:
    return card(material.contents, material.verdicts, material.tables).encode()


def _note(material: Material) -> bytes:
    """Say what the tables beside it are, for a recipient who passes on this folder alone."""
    return (
        f"{material.contents.heading.title}\n\n"
        "The tables in this folder are synthetic. A generator drew them; no row describes a real "
        "person.\nThe files ../privacy.json and ../report.html say how the people in the source "
        "are protected.\nKeep this note with the tables when you pass them on.\n"
        f"{_spreadsheets(material)}"
    ).encode()


def _spreadsheets(material: Material) -> str:
    """Warn of cells that a spreadsheet would run."""
    columns = formula_columns(material.contents.heading)
    if not columns:
        return ""
    return (
        "\nDo not open the CSV files with a double click: cells of "
        f"{', '.join(columns)} begin like a formula, and a spreadsheet may run them. Import them "
        "as text.\n"
    )


def _croissant(material: Material) -> bytes:
    contents = material.contents
    return written(croissant(contents.heading, contents.certificate, material.tables))


def _pair(table: str, names: Mapping[str, str], words: str) -> list[BundleFile]:
    """Give a table's two files."""
    typed = BundleFile(
        table_path(table, TYPED),
        names[TYPED],
        words,
        "parquet",
        "application/vnd.apache.parquet",
        encoding=None,
        required=True,
        table=table,
    )
    text = BundleFile(
        table_path(table, TEXT), names[TEXT], f"{words}, as text", "csv", "text/csv", table=table
    )
    return [typed, text]


_ALL = (
    *_pair(SINGLE, resource_names([SINGLE])[SINGLE], "Synthetic table"),
    BundleFile(
        NOTE,
        "note",
        "A note beside the tables: they are synthetic",
        "txt",
        "text/plain",
        required=True,
        derive=_note,
    ),
    BundleFile(
        SCHEMA,
        "schema",
        "Schema of the source table: public facts",
        *_JSON,
        required=True,
        document=lambda contents: contents.heading.schema.to_dict(),
    ),
    BundleFile(
        PRIVACY,
        "privacy",
        "Privacy certificate",
        *_JSON,
        required=True,
        document=lambda contents: contents.certificate.to_dict(),
    ),
    BundleFile(
        QUALITY,
        "quality",
        "Quality figures that the budget paid for",
        *_JSON,
        document=lambda contents: contents.quality and contents.quality.to_dict(),
        check=check_quality,
    ),
    BundleFile(
        AUDIT,
        "audit",
        "Attacks on the training, on nobody's rows",
        *_JSON,
        document=lambda contents: contents.audits and contents.audits.to_dict(),
        check=check_audits,
    ),
    BundleFile(
        PRECISION,
        "precision",
        "How precisely columns, groups and pairs of columns were measured",
        "csv",
        "text/csv",
        document=lambda contents: contents.precision and contents.precision.to_csv(),
        check=check_precision,
    ),
    BundleFile(
        REPORT,
        "report",
        "What was guaranteed, and the data dictionary: a page for people",
        "html",
        "text/html",
        required=True,
        derive=_report,
    ),
    BundleFile(
        CARD,
        "card",
        "Card of the model and of the table: what they are for, and their limits",
        "md",
        "text/markdown",
        required=True,
        derive=_card,
    ),
    BundleFile(
        CROISSANT,
        "croissant",
        "The tables for machine-learning tools (Croissant)",
        "json",
        "application/ld+json",
        required=True,
        derive=_croissant,
    ),
)
FILES: dict[str, BundleFile] = {file.path: file for file in _ALL}


def files_of(schema: AnySchema | None) -> Mapping[str, BundleFile]:
    """Return the files that a bundle may hold, by path; of a single table where none is known.

    Linked tables have two files each. They have no quality figures and no figures of precision yet.
    """
    if schema is None or isinstance(schema, Schema):
        return FILES
    tables = synthetic_tables(schema)
    names = resource_names(tables)
    pairs = [
        file for name in tables for file in _pair(name, names[name], f"Synthetic table {name}")
    ]
    single = (QUALITY, PRECISION)
    others = [file for file in FILES.values() if not file.is_table and file.path not in single]
    return {file.path: file for file in (*pairs, *others)}


def documents_of(contents: Contents) -> dict[str, bytes]:
    """Write every document of a bundle, by path; the manifest is not among them."""
    files = files_of(contents.heading.schema)
    documents = {
        path: file.document(contents) for path, file in files.items() if file.document is not None
    }
    return {
        path: document if isinstance(document, bytes) else written(document)
        for path, document in documents.items()
        if document is not None
    }


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
class DerivedFiles:
    """The derived files by path, and the verdicts that they show."""

    files: dict[str, bytes]
    verdicts: tuple[GateResult, ...]

    @classmethod
    def of(cls, folder: Path, contents: Contents, profiles: tuple[Profile, ...]) -> DerivedFiles:
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
