"""How the tables of a bundle were drawn: with the run, enough to draw them again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpsynth._util.strict_json import check_keys, names, sha256_text, text, truth, whole
from dpsynth.errors import ArtifactError


@dataclass(frozen=True)
class Provenance:
    """How the table of a bundle was drawn; with the run, enough to draw it again.

    Attributes:
        model: the generator's name.
        run_sha256: digest of the run.
        rows: number of rows.
        seed: seed of the sampling; public, and apart from the noise of the fit.
        condition: the rows were kept to this condition, if any.
        plain: the rows are independent draws, not spread evenly.
    """

    model: str
    run_sha256: str
    rows: int
    seed: int
    condition: str | None = None
    plain: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Write the document that the manifest holds under ``dpsynth.drawing``."""
        return vars(self).copy()

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Provenance:
        """Read strictly what ``to_dict`` wrote.

        Raises:
            ArtifactError: a key is missing, unknown or of the wrong type.
        """
        check_keys(document, place, names(cls))
        condition = document["condition"]
        return cls(
            model=text(document["model"], f"{place}.model"),
            run_sha256=sha256_text(document["run_sha256"], f"{place}.run_sha256"),
            rows=whole(document["rows"], f"{place}.rows", minimum=1),
            seed=whole(document["seed"], f"{place}.seed", minimum=0),
            condition=None if condition is None else _line(condition, f"{place}.condition"),
            plain=truth(document["plain"], f"{place}.plain"),
        )


@dataclass(frozen=True)
class CohortProvenance:
    """How the linked tables of a bundle were drawn; with the run, enough to draw them again.

    Attributes:
        model: the generator's name.
        run_sha256: digest of the run.
        patients: how many were drawn, with all their rows.
        seed: as of `Provenance`.
        plain: the patients are independent draws, not spread evenly.
    """

    model: str
    run_sha256: str
    patients: int
    seed: int
    plain: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Write the document that the manifest holds under ``dpsynth.drawing``.

        Without ``plain`` where it is false, as earlier bundles have it.
        """
        return {name: value for name, value in vars(self).items() if name != "plain" or value}

    @classmethod
    def from_dict(cls, document: Any, place: str) -> CohortProvenance:
        """Read strictly what ``to_dict`` wrote.

        Raises:
            ArtifactError: a key is missing, unknown or of the wrong type.
        """
        check_keys(document, place, set(names(cls)) - {"plain"}, optional=["plain"])
        return cls(
            model=text(document["model"], f"{place}.model"),
            run_sha256=sha256_text(document["run_sha256"], f"{place}.run_sha256"),
            patients=whole(document["patients"], f"{place}.patients", minimum=1),
            seed=whole(document["seed"], f"{place}.seed", minimum=0),
            plain=truth(document.get("plain", False), f"{place}.plain"),
        )


Drawing = Provenance | CohortProvenance


def read_drawing(document: Any, place: str) -> Drawing:
    """Read how one table or linked ones were drawn: which of the two, the document says.

    Raises:
        ArtifactError: as `Provenance.from_dict`.
    """
    linked = isinstance(document, dict) and "patients" in document
    return (CohortProvenance if linked else Provenance).from_dict(document, place)


def _line(value: Any, place: str) -> str:
    if not text(value, place).isprintable():
        raise ArtifactError(f"{place} has a character that cannot be shown")
    return str(value)
