"""The quality figures of a table that may be published, because the plan of its fit paid for them.

``quality.json`` beside ``run.json`` holds them, and a bundle takes it along. It names the table
that was measured by its SHA-256, and the event of the plan that paid.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from dpsynth._util.strict_json import (
    HUGE,
    bytes_digest,
    check_format,
    check_keys,
    matching,
    names,
    number,
    read_document,
    several,
    sha256_text,
    text,
    whole,
    written,
)
from dpsynth.certificate import Certificate
from dpsynth.errors import ArtifactError
from dpsynth.files import write_atomically
from dpsynth.privacy import reserved
from dpsynth.privacy.public_quality import QUALITY
from dpsynth.schema import Schema, coded_schema

FORMAT, VERSION = "dpsynth-quality", 1
DOCUMENT = "quality.json"
_MAX_ENTRIES = 10_000  # entries of one list; far more than any table has columns


@dataclass(frozen=True)
class QualityFigure:
    """A figure with the interval that its noise leaves, and what chance alone would give."""

    key: str
    title: str
    value: float
    low: float
    high: float
    chance: float | None
    meaning: str

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly one figure."""
        check_keys(document, place, names(cls))
        return cls(
            key=matching(document["key"], f"{place}.key", "[a-z0-9_]{1,20}", "key of a figure"),
            title=text(document["title"], f"{place}.title"),
            chance=_perhaps(document["chance"], f"{place}.chance"),
            meaning=text(document["meaning"], f"{place}.meaning"),
            **_interval(document, place, "value"),
        )


@dataclass(frozen=True)
class ColumnDistance:
    """Total variation distance of a column to the source, with its interval."""

    column: str
    tvd: float
    low: float
    high: float
    chance: float | None

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly the figure of one column."""
        check_keys(document, place, names(cls))
        return cls(
            column=text(document["column"], f"{place}.column"),
            chance=_perhaps(document["chance"], f"{place}.chance"),
            **_interval(document, place, "tvd"),
        )


@dataclass(frozen=True)
class Calibration:
    """Among real rows with this predicted chance, the share for which it came true."""

    predicted: float
    observed: float

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly one point."""
        check_keys(document, place, names(cls))
        return cls(*(_figure(document[name], f"{place}.{name}") for name in names(cls)))


@dataclass(frozen=True)
class TargetQuality:
    """How well a model trained on the synthetic table predicts a class of a target in real rows."""

    target: str
    class_: str
    auc: float
    low: float
    high: float
    calibration: tuple[Calibration, ...]

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly the figures of one class."""
        check_keys(document, place, ("target", "class", "auc", "low", "high", "calibration"))
        return cls(
            target=text(document["target"], f"{place}.target"),
            class_=text(document["class"], f"{place}.class"),
            calibration=several(
                Calibration.from_dict,
                document["calibration"],
                f"{place}.calibration",
                maximum=_MAX_ENTRIES,
            ),
            **_interval(document, place, "auc"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Write what ``from_dict`` reads."""
        return {name.rstrip("_"): value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Quality:
    """The figures of one table.

    Attributes:
        table_sha256: of the table that was measured, as ``samples.json`` records it.
        rows: of that table.
        event: name of the event in the plan that paid.
        statistics: figures of the whole table.
        columns: a figure for each column.
        targets: predictions of each target.
        note: what a reader has to know of them.
    """

    table_sha256: str
    rows: int
    event: str
    statistics: tuple[QualityFigure, ...] = ()
    columns: tuple[ColumnDistance, ...] = ()
    targets: tuple[TargetQuality, ...] = ()
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Write the document; the same figures give the same document."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "table_sha256": self.table_sha256,
            "rows": self.rows,
            "event": self.event,
            "statistics": [asdict(statistic) for statistic in self.statistics],
            "columns": [asdict(column) for column in self.columns],
            "targets": [target.to_dict() for target in self.targets],
            "note": self.note,
        }

    @classmethod
    def from_dict(cls, document: Any, place: str = DOCUMENT) -> Self:
        """Read strictly what ``to_dict`` wrote.

        Raises:
            ArtifactError: anything is missing, unknown, of the wrong type or out of range.
        """
        check_keys(document, place, ("format", "version", *names(cls)))
        check_format(document, place, FORMAT, VERSION)
        sha256 = sha256_text(document["table_sha256"], f"{place}: table_sha256")
        return cls(
            table_sha256=sha256,
            rows=whole(document["rows"], f"{place}: rows", minimum=1),
            event=text(document["event"], f"{place}: event"),
            statistics=several(
                QualityFigure.from_dict,
                document["statistics"],
                f"{place}: statistics",
                maximum=_MAX_ENTRIES,
            ),
            columns=several(
                ColumnDistance.from_dict,
                document["columns"],
                f"{place}: columns",
                maximum=_MAX_ENTRIES,
            ),
            targets=several(
                TargetQuality.from_dict,
                document["targets"],
                f"{place}: targets",
                maximum=_MAX_ENTRIES,
            ),
            note=text(document["note"], f"{place}: note"),
        )

    def problems(self, schema: Schema, certificate: Certificate, rows: int) -> list[str]:
        """List what does not fit the schema or the table's number of rows, or was not paid for."""
        problems = []
        if self.rows != rows:
            problems.append("it is about a table with another number of rows")
        if self.event != QUALITY or reserved(certificate.events) is None:
            problems.append("the plan of the certificate set no budget aside for it")
        names = {column.name for column in coded_schema(schema).modelled}
        if not {one.column for one in self.columns} <= names:
            problems.append("it names a column that the synthetic table does not have")
        if not {target.target for target in self.targets} <= names:
            problems.append("it names a target that the synthetic table does not have")
        return problems


def read_quality(folder: str | Path) -> Quality | None:
    """Read the paid quality figures beside a run; None if there are none.

    Raises:
        ArtifactError: they are damaged or of another version.
    """
    path = Path(folder) / DOCUMENT
    if not path.exists() and not path.is_symlink():
        return None
    return Quality.from_dict(read_document(path), str(path))


def quality_digest(quality: Quality) -> str:
    """Return the SHA-256 (hex) of the file that holds the figures."""
    return bytes_digest(written(quality.to_dict()))


def write_quality(path: str | Path, quality: Quality) -> None:
    """Write the figures into a file, whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    write_atomically(path, written(quality.to_dict()))


def _interval(document: dict[str, Any], place: str, name: str) -> dict[str, float]:
    """Read a figure with the ends of its interval."""
    figures = {key: _figure(document[key], f"{place}.{key}") for key in (name, "low", "high")}
    if not figures["low"] <= figures["high"]:
        raise ArtifactError(f"{place}.low is above {place}.high")
    return figures


def _figure(value: Any, place: str) -> float:
    return number(value, place, above=-HUGE)


def _perhaps(value: Any, place: str) -> float | None:
    return None if value is None else _figure(value, place)
