"""croissant.json: the tables of a bundle for machine-learning tools.

MLCommons Croissant 1.0 (a JSON-LD vocabulary over schema.org), with the properties of its
responsible-AI extension (RAI 1.0) that can be told from public documents. Categories with labels
are enumerations, which the columns refer to. Nothing in it is computed from data but the SHA-256
of the files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsynth.bundle.format import ManifestHeader, slug
from dpsynth.bundle.format.layout import TEXT, TYPED, table_path
from dpsynth.bundle.pages.limits import collected, limits_of, personal
from dpsynth.bundle.pages.table_words import place_of, words_of
from dpsynth.certificate import Certificate
from dpsynth.schema import Column, SyntheticTable, category_value, relation_of, unit_of

CONFORMS_TO = ("http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0")
ROWS = "rows"  # name of the record set of a single table
_FORMATS = {TYPED: "application/x-parquet", TEXT: "text/csv"}
_NAMES = (  # of Croissant that stand for a property of its own vocabulary
    *("citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject"),
    *("fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField"),
    *("path", "recordSet", "references", "regex", "repeated", "replace", "samplingRate"),
    *("separator", "source", "subField", "transform"),
)
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
} | {name: f"cr:{name}" for name in _NAMES}


def croissant(
    heading: ManifestHeader, certificate: Certificate, files: Mapping[str, str]
) -> dict[str, Any]:
    """Describe the tables of a bundle.

    Args:
        heading: of its manifest.
        certificate: of the run.
        files: SHA-256 of each table in the bundle, by path.
    """
    schema, about = heading.schema, heading.about
    document: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": list(CONFORMS_TO),
        "name": slug(schema.name),
        "alternateName": heading.title,
        "description": schema.description or heading.title,
        "license": about.licence_url or about.licence,
        "url": about.homepage,
        "version": about.version,
        "datePublished": about.date,
        "citeAs": about.citation,
        "keywords": list(about.keywords),
        "publisher": _organisation(heading),
        "creator": _organisation(heading),
        "isLiveDataset": False,
        "rai:dataCollection": collected(heading.drawing),
        "rai:dataCollectionType": "Others",
        "rai:dataUseCases": about.intended_use,
        "rai:dataLimitations": " ".join(limits_of(heading)),
        "rai:dataBiases": "Rare values, and so small groups of people, are reproduced less "
        "faithfully than common ones. Biases of the source are reproduced too.",
        "rai:personalSensitiveInformation": personal(certificate),
    }
    filled = {key: value for key, value in document.items() if value not in (None, [], "")}
    sets = [_RecordSet.of(table, heading) for table in heading.tables.values()]
    return filled | {
        "distribution": [_file(path, sha256) for path, sha256 in files.items()],
        "recordSet": [one for own in sets for one in (own.rows(), *own.enumerations())],
    }


def _organisation(heading: ManifestHeader) -> dict[str, str] | None:
    about = heading.about
    if about.publisher is None:
        return None
    organisation = {"@type": "sc:Organization", "name": about.publisher}
    address = about.contact or ""
    if address:
        organisation["url" if address.startswith("http") else "email"] = address
    return organisation


def _file(path: str, sha256: str) -> dict[str, str]:
    return {
        "@type": "cr:FileObject",
        "@id": path.rpartition("/")[2],
        "name": path.rpartition("/")[2],
        "contentUrl": path,
        "encodingFormat": _FORMATS[Path(path).suffix],
        "sha256": sha256,
    }


def _ids(columns: Sequence[Column]) -> dict[str, str]:
    """Name each column in a way that an identifier may: no blanks, none twice.

    mlcroissant refuses identifiers with blanks, escaped or not. The name itself is told as it is.
    """
    ids: dict[str, str] = {}
    for place, column in enumerate(columns, 1):
        plain = re.sub(r"[^\w.-]+", "_", column.name)
        clashes = plain != column.name and plain in {*ids.values(), *(c.name for c in columns)}
        ids[column.name] = f"{plain}~{place}" if clashes else plain
    return ids


@dataclass(frozen=True)
class _RecordSet:
    """A table as a record set.

    Attributes:
        table: the table.
        heading: of the manifest.
        name: of the record set.
        ids: identifiers of the columns, by name.
    """

    table: SyntheticTable
    heading: ManifestHeader
    name: str
    ids: Mapping[str, str]

    @classmethod
    def of(cls, table: SyntheticTable, heading: ManifestHeader) -> _RecordSet:
        """Name a table and its columns."""
        return cls(table, heading, table.label or ROWS, _ids(table.schema.modelled))

    def rows(self) -> dict[str, Any]:
        """Describe the rows."""
        drawing, key = self.heading.drawing, self.table.key
        text = " ".join(words_of(self.table, self.heading.schema))
        if key is None:
            text = f"{drawing.size} synthetic rows, not linked to each other."
        record: dict[str, Any] = {"@type": "cr:RecordSet", "@id": self.name, "name": self.name}
        record["description"] = text
        if key is not None and self.table.child is None:
            record["key"] = {"@id": f"{self.name}/{self.ids[key]}"}
        return record | {"field": [self._field(one) for one in self.table.schema.modelled]}

    def _field(self, column: Column) -> dict[str, Any]:
        """Describe a column; it is read from the Parquet file, which has types."""
        name = self.ids[column.name]
        words = [column.title or column.name, column.description]
        if column.ucum:
            words.append(f"Unit: {unit_of(column) or 'none'} (UCUM {column.ucum})")
        if relation := relation_of(column):
            words.append(f"Relation: {relation}")
        if column.several is not None:
            words.append(f"Each cell: {column.several.words}")
        if place := place_of(self.table, column.name):
            words.append(place[:1].upper() + place[1:])
        if self.table.is_measured(column):
            words.append("Its kind, unit and bounds are those of the test")
        if not column.required:
            words.append("May be missing")
        field: dict[str, Any] = {
            "@type": "cr:Field",
            "@id": f"{self.name}/{name}",
            "name": column.name,
            "description": ". ".join(word.rstrip(".") for word in words if word) + ".",
            "dataType": column.kind.croissant,
            "source": {
                "fileObject": {"@id": table_path(self.table.name).rpartition("/")[2]},
                "extract": {"column": column.name},
            },
        }
        if column.several is not None:
            field["repeated"] = True
            field["source"]["transform"] = {"separator": column.several.separator}
        if self.table.child is not None and column.name == self.table.key:
            patients = _RecordSet.of(next(iter(self.heading.tables.values())), self.heading)
            key = patients.ids[patients.table.key or ""]
            field["references"] = {"field": {"@id": f"{patients.name}/{key}"}}
        elif column.labels:
            field["references"] = {"field": {"@id": f"{self._values_of(column)}/value"}}
        return field

    def enumerations(self) -> list[dict[str, Any]]:
        """List what the values of columns mean, where they have labels."""
        columns = self.table.schema.modelled
        return [_enumeration(one, self._values_of(one)) for one in columns if one.labels]

    def _values_of(self, column: Column) -> str:
        """Name the enumeration of a column."""
        own = f"{self.table.label}-" if self.table.label else ""
        return f"{own}{self.ids[column.name]}-values"


def _enumeration(column: Column, name: str) -> dict[str, Any]:
    """List the values of a column, each with its label."""
    typed = column.kind.croissant
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"What the values of {column.name} mean.",
        "dataType": "sc:Enumeration",
        "key": {"@id": f"{name}/value"},
        "field": [
            {"@type": "cr:Field", "@id": f"{name}/value", "name": "value", "dataType": typed},
            {"@type": "cr:Field", "@id": f"{name}/label", "name": "label", "dataType": "sc:Text"},
        ],
        "data": [
            {
                f"{name}/value": category_value(column, text),
                f"{name}/label": column.labels.get(text, text),
            }
            for text in column.levels
        ],
    }
