"""Perturbed answers on disk: a CSV table of reports, and beside it the public settings as JSON.

A cell of randomised response is the label of the reported category; one of unary encoding is text
of 0 and 1, a bit for each category in their order. The settings (``NAME.csv.json``) hold what was
public before anyone answered: columns, categories, randomisers and epsilons.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpsynth._util.arguments import path_of
from dpsynth._util.formatting import counted
from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import (
    as_object,
    check_format,
    check_keys,
    matching,
    number,
    read_document,
    several,
    text,
    texts,
    written,
)
from dpsynth._util.whole_files import csv_cells_up_to
from dpsynth.errors import ArtifactError, DpsynthError, TableError
from dpsynth.files import atomic_file, cannot_read, check_vacant, write_new
from dpsynth.local.randomiser import RESPONSE, UNARY, Randomiser
from dpsynth.privacy import exactly
from dpsynth.tables.checks import check_file

FORMAT, VERSION = "dpsynth-local", 1
SEEDED = "seeded-entropy"
_KEYS = ("format", "version", "schema", "epsilon", "columns", "stamps")
_ROOM = 10_000_000  # letters of a cell; unary encoding has a few thousand

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LocalColumn:
    """What is public of a perturbed column.

    Attributes:
        name: of the column.
        labels: of its categories, in order.
        randomiser: how it was perturbed.
    """

    name: str
    labels: tuple[str, ...]
    randomiser: Randomiser


@dataclass(frozen=True)
class Settings:
    """What is public of perturbed answers.

    Attributes:
        schema: its name.
        epsilon: what a person spends on all columns together.
        columns: in order.
        stamps: why the answers protect nobody, such as ``seeded-entropy``.
    """

    schema: str
    epsilon: float
    columns: tuple[LocalColumn, ...]
    stamps: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Name the columns and the cost."""
        return short_repr(self, counted(len(self.columns), "column"), f"epsilon {self.epsilon:g}")

    def to_dict(self) -> dict[str, Any]:
        """Give the settings in JSON types."""
        columns = [
            {
                "name": one.name,
                "mechanism": one.randomiser.kind,
                "epsilon": one.randomiser.epsilon,
                "categories": list(one.labels),
            }
            for one in self.columns
        ]
        head = {"format": FORMAT, "version": VERSION, "schema": self.schema}
        stamps = list(self.stamps)
        return head | {"epsilon": self.epsilon, "columns": columns, "stamps": stamps}

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read settings strictly.

        Raises:
            ArtifactError: they are missing, damaged, or their columns cost more than they say.
        """
        path = path_of(path)
        document = read_document(path)
        check_format(document, str(path), FORMAT, VERSION)
        check_keys(document, str(path), _KEYS)
        try:
            columns = several(_column, document["columns"], f"{path}: columns", minimum=1)
        except ArtifactError:
            raise
        except DpsynthError as error:
            raise ArtifactError(f"{path}: {error}") from None
        epsilon = number(document["epsilon"], f"{path}: epsilon", above=0)
        if sum(exactly(one.randomiser.epsilon) for one in columns) > exactly(epsilon):
            raise ArtifactError(f"{path}: its columns cost more than its epsilon")
        if len({one.name for one in columns}) < len(columns):
            raise ArtifactError(f"{path}: two columns have the same name")
        stamps = texts(document["stamps"], f"{path}: stamps")
        return cls(text(document["schema"], f"{path}: schema"), epsilon, columns, stamps)


def _column(value: Any, place: str) -> LocalColumn:
    check_keys(as_object(value, place), place, ("name", "mechanism", "epsilon", "categories"))
    labels = texts(value["categories"], f"{place}.categories")
    kind = matching(value["mechanism"], f"{place}.mechanism", f"{RESPONSE}|{UNARY}", "mechanism")
    if len(set(labels)) < len(labels):
        raise ArtifactError(f"{place}.categories: two are alike")
    epsilon = number(value["epsilon"], f"{place}.epsilon", above=0)
    return LocalColumn(
        text(value["name"], f"{place}.name"), labels, Randomiser(kind, len(labels), epsilon)
    )


@dataclass(frozen=True, eq=False, repr=False)
class Reports:
    """Perturbed answers with their settings.

    Attributes:
        settings: public.
        reports: of each column: places ``[people]``, or bits ``[people, categories]``.
    """

    settings: Settings
    reports: tuple[Ints, ...]

    def __repr__(self) -> str:
        """Show no answer."""
        return short_repr(self, counted(len(self.settings.columns), "perturbed column"))

    @property
    def people(self) -> int:
        """How many answered."""
        return len(self.reports[0])

    def csv(self) -> bytes:
        """Return the table of reports."""
        cells = [
            _written(one, reports)
            for one, reports in zip(self.settings.columns, self.reports, strict=True)
        ]
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([one.name for one in self.settings.columns])
        writer.writerows(zip(*cells, strict=True))
        return file.getvalue().encode()

    def write(self, path: str | Path) -> None:
        """Write the table, and its settings beside it; both appear whole, the table last.

        Raises:
            InputError: one of them exists, or the folder cannot be written to.
        """
        beside = settings_path(path)
        check_vacant(path)
        check_vacant(beside)
        content = self.csv()
        with atomic_file(path, new=True) as temporary:
            temporary.write_bytes(content)
            write_new(beside, written(self.settings.to_dict()))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read reports and their settings strictly; messages quote no cell.

        Raises:
            ArtifactError: the settings are missing or damaged.
            TableError: the table is not one of these settings.
        """
        path = path_of(path)
        settings = Settings.load(settings_path(path))
        check_file(path)
        try:
            with csv_cells_up_to(_ROOM), path.open(encoding="utf-8", newline="") as file:
                rows = list(csv.reader(file, strict=True))
        except OSError as error:
            raise TableError(f"{path} cannot be read: {cannot_read(error)}") from error
        except (ValueError, csv.Error):
            raise TableError(f"{path} is damaged: it is no CSV table in UTF-8") from None
        if not rows or rows[0] != [one.name for one in settings.columns]:
            raise TableError(f"{path} does not have the columns of {settings_path(path)}")
        if len(rows) == 1:
            raise TableError(f"{path} has no rows")
        if any(len(row) != len(settings.columns) for row in rows):
            raise TableError(f"{path} is damaged: a row is shorter or longer than its header")
        cells = list(zip(*rows[1:], strict=True))
        found = [
            _read(one, list(texts), path)
            for one, texts in zip(settings.columns, cells, strict=True)
        ]
        return cls(settings, tuple(found))


def settings_path(path: str | Path) -> Path:
    """Return where the settings of a table of reports lie."""
    return Path(f"{path}.json")


def _written(column: LocalColumn, reports: Ints) -> list[str]:
    if column.randomiser.kind == RESPONSE:
        return [column.labels[place] for place in reports.tolist()]
    letters = (reports + ord("0")).astype(np.uint8)
    return [row.tobytes().decode() for row in letters]


def _read(column: LocalColumn, cells: list[str], path: Path) -> Ints:
    size = column.randomiser.size
    if column.randomiser.kind == RESPONSE:
        place_of = {label: place for place, label in enumerate(column.labels)}
        places = [place_of.get(cell, -1) for cell in cells]
        if min(places) >= 0:
            return np.array(places, dtype=np.int64)
    elif all(len(cell) == size and not cell.strip("01") for cell in cells):
        bits = np.frombuffer("".join(cells).encode(), dtype=np.uint8) - ord("0")
        return bits.reshape(-1, size).astype(np.int64)
    raise TableError(f"{path}: a cell of column '{column.name}' is no report of its settings")
