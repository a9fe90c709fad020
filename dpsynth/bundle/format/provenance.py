"""How the tables of a bundle were drawn: with the run, enough to draw them again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpsynth._util.strict_json import check_keys, names, several, sha256_text, text, truth, whole
from dpsynth.certificate import AddedRule
from dpsynth.certificate.added_rules import MAX_RULES
from dpsynth.errors import ArtifactError


@dataclass(frozen=True)
class Provenance:
    """How the tables of a bundle were drawn; with the run, enough to draw them again.

    Attributes:
        model: the generator's name.
        run_sha256: digest of the run.
        size: number of rows of one table; of linked ones, of patients with all their rows.
        seed: seed of the sampling; public, and apart from the noise of the fit.
        condition: all rows, or patients, meet this condition, if there is one.
        plain: they are independent draws, not spread evenly.
        rules: that people added after the fit; all rows keep them.
    """

    model: str
    run_sha256: str
    size: int
    seed: int
    condition: str | None = None
    plain: bool = False
    rules: tuple[AddedRule, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Write the document that the manifest holds under ``dpsynth.drawing``."""
        return vars(self) | {"rules": [one.to_dict() for one in self.rules]}

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
            size=whole(document["size"], f"{place}.size", minimum=1),
            seed=whole(document["seed"], f"{place}.seed", minimum=0),
            condition=None if condition is None else _line(condition, f"{place}.condition"),
            plain=truth(document["plain"], f"{place}.plain"),
            rules=several(
                AddedRule.from_dict, document["rules"], f"{place}.rules", maximum=MAX_RULES
            ),
        )


def _line(value: Any, place: str) -> str:
    if not text(value, place).isprintable():
        raise ArtifactError(f"{place} has a character that cannot be shown")
    return str(value)
