"""The policy of a ledger: what an office may still spend, as one public document.

A policy caps what fits may cost: each one, all of any 365 days, all together, for everybody and for
each *tier* (purpose) of its own. It says which names of datasets share people, which generators
may be fitted, and what a release needs. Every number has a reason, its basis.

The document is YAML or JSON; docs/governance.md explains each key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsynth._util.formatting import counted
from dpsynth._util.outside_names import allowances, outside_name
from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import digest
from dpsynth.policy.limits import VERSION, Caps, Group, Population, Tier
from dpsynth.policy.reader import read_document, read_policy


@dataclass(frozen=True)
class Policy:
    """What an office may spend, on what, and what a release needs.

    Attributes:
        name: for people.
        delta: every cap is a guarantee at this delta.
        caps: general ones, of which there is at least one.
        tiers: in the order of the document; where there are any, a fit names one.
        groups: datasets that share one budget; a dataset in none has a budget of its own.
        models: generators that may be fitted; None allows all of dpsynth, and of other packages
            none.
        minimum_population: of a dataset that may be fitted.
        allow_refuse: whether a column may refuse a cell, one bit outside the guarantee.
        gates: that a release must have passed.
        sign_off: how many people must sign a run's entry before its release.
        ledger: id of the only ledger that it is for; None for any.
    """

    name: str
    delta: float
    caps: Caps
    tiers: tuple[Tier, ...] = ()
    groups: tuple[Group, ...] = ()
    models: tuple[str, ...] | None = None
    minimum_population: Population | None = None
    allow_refuse: bool = True
    gates: tuple[str, ...] = ()
    sign_off: int = 0
    ledger: str | None = None

    def __repr__(self) -> str:
        """Name the policy."""
        return short_repr(
            self, self.name, f"delta {self.delta:g}", counted(len(self.tiers), "tier")
        )

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a policy file, YAML or JSON by its suffix.

        Raises:
            InputError: it cannot be read, or has mistakes; all of them are listed.
        """
        return cls(**read_policy(read_document(path), str(path)))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], source: str) -> Policy:
        """Read a policy from what YAML or JSON gave; ``source`` is what messages call it.

        Raises:
            InputError: it has mistakes; all of them are listed.
        """
        return cls(**read_policy(document, source))

    def allows(self, model: str) -> bool:
        """Whether a generator may be fitted; one of another package needs to be listed."""
        if self.models is None:
            return outside_name(model) is None
        return any(text in self.models for text in allowances(model))

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as JSON types; what is absent or at its default is left out."""
        document: dict[str, Any] = {
            "dpsynth_policy": VERSION,
            "name": self.name,
            "delta": self.delta,
            "caps": self.caps.to_dict(),
        }
        if self.tiers:
            document["tiers"] = {tier.name: tier.to_dict() for tier in self.tiers}
        if self.groups:
            document["datasets"] = {group.name: list(group.members) for group in self.groups}
        if self.models is not None:
            document["models"] = list(self.models)
        if self.minimum_population is not None:
            minimum = self.minimum_population
            document["minimum_population"] = {"value": minimum.value, "basis": minimum.basis}
        if not self.allow_refuse:
            document["allow_refuse"] = False
        if self.gates:
            document["gates"] = list(self.gates)
        if self.sign_off:
            document["sign_off"] = {"people": self.sign_off}
        if self.ledger is not None:
            document["ledger"] = self.ledger
        return document

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the policy; the same for documents that say the same."""
        return digest(self.to_dict())

    def group_of(self, name: str) -> str:
        """Give the name, in lower case, of the budget that a dataset draws on."""
        lowered = name.lower()
        for group in self.groups:
            if lowered in group.members:
                return group.name
        return lowered

    def members(self, name: str) -> tuple[str, ...]:
        """Give all names, in lower case, that share the budget of a dataset, its own included."""
        lowered = name.lower()
        for group in self.groups:
            if lowered in group.members:
                return group.members
        return (lowered,)

    def tier(self, name: str | None) -> Tier | None:
        """Give the tier of this name, whatever its case; None where there is none."""
        for tier in self.tiers:
            if name is not None and tier.name.lower() == name.lower():
                return tier
        return None
