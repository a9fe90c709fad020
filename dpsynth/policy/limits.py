"""What a policy is made of: caps on epsilon, tiers, groups of datasets, a least population."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

VERSION = 1
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # of a dataset, a group, a tier


@dataclass(frozen=True)
class Cap:
    """A bound on epsilon and the reason for it: a cap, or the floor of a tier."""

    epsilon: float
    basis: str

    def to_dict(self) -> dict[str, Any]:
        """Return the bound as JSON types."""
        return {"epsilon": self.epsilon, "basis": self.basis}


@dataclass(frozen=True)
class Caps:
    """Caps on epsilon, at the policy's delta; None where there is none.

    Attributes:
        release: of one fit.
        year: of all fits of any 365 days, together.
        total: of all fits, together.
    """

    release: Cap | None = None
    year: Cap | None = None
    total: Cap | None = None

    def __bool__(self) -> bool:
        """Whether there is any cap."""
        return bool(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the caps that there are as JSON types."""
        caps = {"release": self.release, "year": self.year, "total": self.total}
        return {key: cap.to_dict() for key, cap in caps.items() if cap is not None}


@dataclass(frozen=True)
class Tier:
    """A purpose for which data are released.

    Attributes:
        name: as written; case does not tell two tiers apart.
        caps: of the fits of this tier, beside the general ones.
        releases_a_year: how many are planned; None where nothing is said.
        least: epsilon below which a release does not serve the purpose.
    """

    name: str
    caps: Caps = Caps()
    releases_a_year: int | None = None
    least: Cap | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the tier, without its name, as JSON types."""
        document: dict[str, Any] = {"caps": self.caps.to_dict()} if self.caps else {}
        if self.releases_a_year is not None:
            document["releases_a_year"] = self.releases_a_year
        if self.least is not None:
            document["least"] = self.least.to_dict()
        return document


@dataclass(frozen=True)
class DatasetGroup:
    """Names of datasets that share people, in lower case and sorted, the group's own included."""

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True)
class Population:
    """The least number of privacy units of a dataset, and the reason for it."""

    value: int
    basis: str
