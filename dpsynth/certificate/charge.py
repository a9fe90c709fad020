"""The charge of a fit: where a ledger keeps it, and what its dataset had spent by then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import (
    check_keys,
    matching,
    names,
    number,
    sha256_text,
    text,
    texts,
    whole,
)
from dpsynth.errors import ArtifactError

_ID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


@dataclass(frozen=True)
class Charge:
    """What a certificate says of the ledger.

    Attributes:
        id: of the ledger.
        dataset: the name under which the fit was charged.
        scope: all names, in lower case, that share the dataset's budget.
        entry: the fit's entry.
        fits: on the scope, this one included, when it was certified.
        epsilon_total: of those fits, by basic composition, for one of those whom they all count.
        delta_total: likewise.
        record: number of the ledger's last record by then.
        seal: keyed hash over all records up to it; the ledger alone can check it.
        policy: digest of the policy that admitted the fit; None if there was none.
    """

    id: str
    dataset: str
    scope: tuple[str, ...]
    entry: str
    fits: int
    epsilon_total: float
    delta_total: float
    record: int
    seal: str
    policy: str | None

    def __repr__(self) -> str:
        """Name the dataset and the entry."""
        return short_repr(self, f"dataset {self.dataset}", f"entry {self.entry[:12]}")

    def to_dict(self) -> dict[str, Any]:
        """Give the charge in JSON types."""
        return vars(self) | {"scope": list(self.scope)}

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly what ``to_dict`` wrote.

        Raises:
            ArtifactError: anything is missing, unknown, of the wrong type or out of range.
        """
        check_keys(document, place, names(cls))
        policy = document["policy"]
        charge = cls(
            id=matching(document["id"], f"{place}.id", _ID, "id of a ledger"),
            dataset=text(document["dataset"], f"{place}.dataset"),
            scope=texts(document["scope"], f"{place}.scope"),
            entry=matching(document["entry"], f"{place}.entry", "[0-9a-f]{32}", "id of an entry"),
            fits=whole(document["fits"], f"{place}.fits", minimum=1),
            epsilon_total=number(document["epsilon_total"], f"{place}.epsilon_total", above=0),
            delta_total=number(document["delta_total"], f"{place}.delta_total", above=0),
            record=whole(document["record"], f"{place}.record", minimum=1),
            seal=sha256_text(document["seal"], f"{place}.seal"),
            policy=None if policy is None else sha256_text(policy, f"{place}.policy"),
        )
        if charge.dataset.lower() not in charge.scope:
            raise ArtifactError(f"{place}.scope does not hold the dataset")
        return charge
