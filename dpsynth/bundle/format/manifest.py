"""The manifest of a bundle: a Data Package v2 document, with dpsynth's own part read strictly.

With the other documents it makes the `Contents` of a bundle, from which derived files are made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dpsynth._util.strict_json import as_object, check_format, check_keys, file_digest, version_text
from dpsynth._version import __version__
from dpsynth.bundle.format.about import About
from dpsynth.bundle.format.audits import Audits
from dpsynth.bundle.format.layout import FORMAT, VERSION, BundleFile, size_key
from dpsynth.bundle.format.precision import Precision
from dpsynth.bundle.format.provenance import Provenance
from dpsynth.bundle.format.quality import Quality
from dpsynth.certificate import Certificate
from dpsynth.errors import ArtifactError, InputError
from dpsynth.schema import AnySchema, Schema, SyntheticTable, synthetic_tables

PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"


@dataclass(frozen=True)
class ManifestHeader:
    """All of a manifest but its list of files; written without reading any.

    Attributes:
        schema: public facts of the source.
        drawing: how the tables were drawn.
        about: what the office says of the release.
        writer: version of the dpsynth that wrote the bundle.
    """

    schema: AnySchema
    drawing: Provenance
    about: About
    writer: str = __version__

    @property
    def title(self) -> str:
        """Of the dataset: the office's, or the schema's."""
        kind = "Synthetic table" if isinstance(self.schema, Schema) else "Synthetic tables"
        return self.about.title or f"{kind}: {self.schema.title or self.schema.name}"

    @cached_property
    def tables(self) -> dict[str, SyntheticTable]:
        """The synthetic tables by name; one, unless the schema is of linked ones."""
        return synthetic_tables(self.schema)

    def to_dict(self) -> dict[str, Any]:
        """Write the properties that Data Package v2 knows, and dpsynth's own."""
        about, schema = self.about, self.schema
        document = {
            "$schema": PROFILE,
            "name": slug(schema.name),
            "title": self.title,
            "description": schema.description,
            "version": about.version,
            "created": f"{about.date}T00:00:00Z" if about.date else None,
            "homepage": about.homepage,
            "keywords": list(about.keywords),
            "licenses": _licences(about),
            "contributors": _contributors(about),
        }
        header = {"format": FORMAT, "version": VERSION, "writer": self.writer}
        header |= {"drawing": self.drawing.to_dict(), "about": about.to_dict()}
        return {key: value for key, value in document.items() if value} | {"dpsynth": header}

    @classmethod
    def of(cls, document: dict[str, Any], schema: AnySchema) -> ManifestHeader:
        """Read dpsynth's own part of a manifest strictly.

        Raises:
            ArtifactError: a key is missing, unknown or of the wrong type.
        """
        header = as_object(document.get("dpsynth"), "dpsynth")
        check_format(header, "dpsynth", FORMAT, VERSION)
        check_keys(header, "dpsynth", ("format", "version", "writer", "drawing", "about"))
        writer = version_text(header["writer"], "dpsynth.writer")
        try:
            about = About.from_dict(header["about"], "dpsynth.about")
        except InputError as error:
            raise ArtifactError(str(error)) from error
        drawing = Provenance.from_dict(header["drawing"], "dpsynth.drawing")
        return cls(schema, drawing, about, writer)


def manifest(
    folder: Path, heading: ManifestHeader, files: Mapping[str, BundleFile]
) -> dict[str, Any]:
    """Describe the files of a bundle; the same files give the same document.

    Args:
        folder: the bundle.
        heading: all of the manifest but its list of files.
        files: by path, those that a bundle may hold, in the order of the list.
    """
    resources = []
    for path, file in files.items():
        if (folder / path).exists():
            size = {size_key(path): (folder / path).stat().st_size}
            digest = {"hash": f"sha256:{file_digest(folder / path)}"}
            resources.append(file.described(heading.schema) | size | digest)
    return heading.to_dict() | {"resources": resources}


def _licences(about: About) -> list[dict[str, str]]:
    entries = {"name": about.licence, "path": about.licence_url}
    licence = {key: value for key, value in entries.items() if value}
    return [licence] if licence else []


def _contributors(about: About) -> list[dict[str, Any]]:
    if about.publisher is None:
        return []
    address = about.contact or ""
    kind = "path" if address.startswith("http") else "email"
    publisher = {"title": about.publisher, "roles": ["publisher"]}
    return [publisher | ({kind: address} if address else {})]


def slug(name: str) -> str:
    """Make a name that a data package may have."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-") or "table"


@dataclass(frozen=True)
class Contents:
    """The documents of a bundle.

    Attributes:
        heading: of its manifest, with the schema.
        certificate: what the fit guarantees, and which gates were overridden.
        quality: figures that the plan paid for, if any.
        audits: attacks on the training, on synthetic rows, if any.
        precision: how precisely columns, groups and pairs were measured, if the run says so.
    """

    heading: ManifestHeader
    certificate: Certificate
    quality: Quality | None = None
    audits: Audits | None = None
    precision: Precision | None = None
