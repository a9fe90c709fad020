"""The tables that were drawn from a run: file name, SHA-256, rows, seed, condition, plainness.

``samples.json`` beside ``run.json`` is how a release knows that a table came from the run, so that
the table which was evaluated is the table which is released.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from dpsynth._util.strict_json import (
    check_format,
    check_keys,
    file_digest,
    names,
    read_document,
    require_plain_file,
    several,
    text,
    truth,
    whole,
    written,
)
from dpsynth.errors import GateError, InputError
from dpsynth.files import updating, write_atomically

FORMAT, VERSION = "dpsynth-samples", 1
DOCUMENT = "samples.json"


@dataclass(frozen=True)
class Sample:
    """One table drawn from a run. ``file`` is a name without its folder: runs may be shared."""

    file: str
    sha256: str
    rows: int
    seed: int
    condition: str | None
    plain: bool

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly one record."""
        check_keys(document, place, names(cls))
        condition = document["condition"]
        return cls(
            file=text(document["file"], f"{place}.file"),
            sha256=text(document["sha256"], f"{place}.sha256"),
            rows=whole(document["rows"], f"{place}.rows", minimum=1),
            seed=whole(document["seed"], f"{place}.seed", minimum=0),
            condition=None if condition is None else text(condition, f"{place}.condition"),
            plain=truth(document["plain"], f"{place}.plain"),
        )


def record_sample(
    folder: str | Path,
    table: str | Path,
    *,
    rows: int,
    seed: int,
    condition: str | None = None,
    plain: bool = False,
    sha256: str | None = None,
) -> str:
    """Record a table that was just drawn from the run in ``folder``; several may do so at once.

    Args:
        folder: the run.
        table: the file.
        rows: of it.
        seed: of the sampling.
        condition: that its rows satisfy.
        plain: whether they are independent draws.
        sha256: of what was written, if it is known: the file may have been replaced since.

    Returns:
        The table's SHA-256 (hex).

    Raises:
        ArtifactError: the table is missing, or an earlier ``samples.json`` is damaged.
        InputError: the run folder cannot be written to.
    """
    folder, table = Path(folder), Path(table)
    require_plain_file(table)
    drawn = Sample(table.name, sha256 or file_digest(table), rows, seed, condition, plain)
    with updating(folder):
        document = {
            "format": FORMAT,
            "version": VERSION,
            "samples": [asdict(sample) for sample in (*read_samples(folder), drawn)],
        }
        write_atomically(folder / DOCUMENT, written(document))
    return drawn.sha256


def read_samples(folder: str | Path) -> tuple[Sample, ...]:
    """List the tables drawn from a run, oldest first.

    Raises:
        ArtifactError: ``samples.json`` is damaged or of another version.
    """
    path = Path(folder) / DOCUMENT
    if not path.exists():
        return ()
    document = read_document(path)
    check_format(document, str(path), FORMAT, VERSION)
    check_keys(document, str(path), ("format", "version", "samples"))
    return several(Sample.from_dict, document["samples"], f"{path}: samples")


def drawn_from(folder: str | Path, table: str | Path) -> Sample:
    """Return the record of a table that was drawn from a run.

    Raises:
        InputError: there is no such table.
        GateError: it is not recorded in the run, or was changed since.
    """
    path = Path(table)
    if not path.is_file():
        raise InputError(f"{path}: there is no such table")
    sha256 = file_digest(path)
    for sample in reversed(read_samples(folder)):
        if sample.sha256 == sha256:
            return sample
    raise GateError(
        f"{path} is not recorded in {folder}/samples.json as drawn from this run, or was changed "
        "since; draw it again with `dpsynth sample`, or give the schema instead of the run"
    )
