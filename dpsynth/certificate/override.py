"""An override: a person lets a release pass although a public gate stops it, and says why.

Only gates that judge evidence can be overridden: a finding of an audit may be a false alarm, paid
figures of quality may be lost to a power cut, and a limit of the office's policy is the office's.
What makes a bundle false (a cell outside the schema,
a broken rule, a claim that its events exceed, a stamped run) no reason can mend. Reason and name go
into the certificate, and with it to everybody who gets the bundle.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from dpsynth._util.strict_json import check_keys, names, text
from dpsynth.errors import ArtifactError, InputError

OVERRIDABLE = ("audit", "quality", "epsilon", "constant")  # keys of public gates
_MAX_LENGTH = 1_000


@dataclass(frozen=True)
class Override:
    """Who answers for a release that a gate stops, and why; public.

    Attributes:
        reason: why it is released all the same.
        by: the name of who decides.
    """

    reason: str
    by: str

    def __post_init__(self) -> None:
        """Refuse what nobody could read or answer for.

        Raises:
            InputError: reason or name is missing, too long, or not one line of plain text.
        """
        for name, value in (("a reason", self.reason), ("a name", self.by)):
            if not value.strip():
                raise InputError(f"an override needs {name}: --override REASON --by NAME")
            if len(value) > _MAX_LENGTH or not value.isprintable():
                raise InputError(
                    f"{name} for an override must be one line of plain text, at most {_MAX_LENGTH} "
                    "characters"
                )

    def of(self, gates: Iterable[str]) -> tuple[Overridden, ...]:
        """Apply it to gates that stop a release."""
        return tuple(Overridden(gate, self.reason.strip(), self.by.strip()) for gate in gates)


@dataclass(frozen=True)
class Overridden:
    """One gate that was overridden, as a certificate tells it."""

    gate: str
    reason: str
    by: str

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly one entry of a certificate.

        Raises:
            ArtifactError: a key is missing or unknown, or the gate is none that can be overridden.
        """
        check_keys(document, place, names(cls))
        gate, reason, by = (
            text(document[name], f"{place}.{name}") for name in ("gate", "reason", "by")
        )
        if gate not in OVERRIDABLE:
            raise ArtifactError(f"{place}.gate cannot be overridden")
        try:
            Override(reason, by)
        except InputError as error:
            raise ArtifactError(f"{place}: {error}") from error
        return cls(gate, reason, by)
