"""The second of two registers whose pairs were counted: whose units it has, and who paid for them.

An answer about pairs of two registers hides the patients of both. Its certificate is about the
first register, as any certificate is about one table; what differs for the second is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import check_keys, names, sha256_text, text, whole
from dpsynth.certificate.charge import Charge
from dpsynth.privacy import Unit

if TYPE_CHECKING:
    from dpsynth.schema import AnySchema


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
