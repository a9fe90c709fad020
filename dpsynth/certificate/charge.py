"""The charge of a fit: where a ledger keeps it, and what its dataset had spent by then.

The second of two registers whose pairs were counted: whose units it has, and who paid for them.

An answer about pairs of two registers hides the patients of both. Its certificate is about the
first register, as any certificate is about one table; what differs for the second is here.

An override: a person lets a release pass although a public gate stops it, and says why.

Only gates that judge evidence can be overridden: a finding of an audit may be a false alarm, paid
figures of quality may be lost to a power cut, and a limit of the office's policy is the office's.
What makes a bundle false (a cell outside the schema,
a broken rule, a claim that its events exceed, a stamped run) no reason can mend. Reason and name go
into the certificate, and with it to everybody who gets the bundle.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

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
from dpsynth.errors import ArtifactError, InputError
from dpsynth.privacy import Unit

if TYPE_CHECKING:
    from dpsynth.schema import AnySchema


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


@dataclass(frozen=True)
class OtherRegister:
    """What a certificate says of the second register.

    Attributes:
        unit: whose presence is hidden there.
        population: its public number.
        schema_sha256: of the schema that the ledger knows it by.
        ledger: the charge on its dataset; None if no ledger was charged. It is that of the first
            register where people may be in both, and both draw on one budget.
        own_records: why each pair follows from its own two records alone.
    """

    unit: Unit
    population: int
    schema_sha256: str
    ledger: Charge | None
    own_records: str = ""

    def __repr__(self) -> str:
        """Name the unit."""
        return short_repr(self, repr(self.unit))

    @classmethod
    def of(cls, schema: AnySchema, charge: Charge | None, own_records: str) -> Self:
        """Read it off the register's schema, its charge, and what the office declares of pairs."""
        return cls(Unit.of(schema), schema.population.value, schema.hash(), charge, own_records)

    def to_dict(self) -> dict[str, Any]:
        """Give it in JSON types."""
        ledger = None if self.ledger is None else self.ledger.to_dict()
        return vars(self) | {"unit": self.unit.to_dict(), "ledger": ledger}

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly what ``to_dict`` wrote.

        Raises:
            ArtifactError: anything is missing, unknown, of the wrong type or out of range.
        """
        check_keys(document, place, names(cls))
        charge = document["ledger"]
        return cls(
            unit=Unit.from_dict(document["unit"], f"{place}.unit"),
            population=whole(document["population"], f"{place}.population", minimum=1),
            schema_sha256=sha256_text(document["schema_sha256"], f"{place}.schema_sha256"),
            ledger=None if charge is None else Charge.from_dict(charge, f"{place}.ledger"),
            own_records=text(document["own_records"], f"{place}.own_records"),
        )


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
