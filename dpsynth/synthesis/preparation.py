"""What a fit is before it sees any data: codec, generator, plan, all from public facts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Generic, Self, TypeVar

from dpsynth._util.dependencies import load_fitting
from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import written
from dpsynth.encoding import Codec
from dpsynth.errors import InputError
from dpsynth.models import (
    Domain,
    Generator,
    Preset,
    choose,
    generator_class,
    most_bytes,
    planned_domain,
    rehearsed,
    shares_of,
    spec_of,
    with_discovery,
)
from dpsynth.models.registry import AUTO, COHORT, DEFAULT
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, Unit, whom, with_quality
from dpsynth.schema import AnySchema, Schema, as_declared, require_consistent_tables, with_found

CODE = 32  # bytes of a discovered code in a run's document, at most

AnyCodec = TypeVar("AnyCodec")
AnyDomain = TypeVar("AnyDomain")


@dataclass(frozen=True, repr=False)
class Preparation(ABC, Generic[AnyCodec, AnyDomain]):
    """What is known before any data is opened, of one table or of linked ones.

    Attributes:
        codec: of the schema.
        domain: what a generator knows of it.
        model: the generator's name.
        plan: calibrated from public facts.
        reason: why the model is the one it is.
    """

    codec: AnyCodec
    domain: AnyDomain
    model: str
    plan: PrivacyPlan
    reason: str

    def __repr__(self) -> str:
        """Say what will be fitted."""
        return short_repr(self, f"model {self.model}", f"epsilon {self.plan.epsilon:.4g}")

    @property
    @abstractmethod
    def networks(self) -> bool:
        """Whether the fit uses torch beyond tensors."""

    @abstractmethod
    def generator(self) -> Any:
        """Build the unfitted generator; imports its libraries, also those that it uses later.

        Raises:
            InputError: one is missing or cannot be loaded, or the generator fails its rehearsal.
        """

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the settings of the training, as plain JSON values: public facts."""

    @abstractmethod
    def room(self, schema: Any) -> int:
        """Return more bytes than the run will take: a public fact."""


@dataclass(frozen=True, repr=False)
class Prepared(Preparation[Codec, Domain]):
    """What is known of a fit of one table."""

    @property
    def networks(self) -> bool:
        """Whether the fit uses torch beyond tensors."""
        return spec_of(self.model).measures_pairs

    def generator(self) -> Generator:
        """Build the unfitted generator of one table."""
        load_fitting(networks=self.networks)
        return rehearsed(generator_class(self.model)(self.domain), self.plan)

    def settings(self) -> dict[str, Any]:
        """Return the preset of the model."""
        return asdict(Preset.of(self.model, self.domain, self.plan.budget))

    def room(self, schema: Schema) -> int:
        """Return more bytes than the run will take: a public fact."""
        words = len(written(schema.to_dict())) + CODE * sum(
            column.discovery.most for column in schema.modelled if column.discovery is not None
        )
        return most_bytes(self.model, self.domain, self.plan.budget) + 2 * words

    def with_codes(self, schema: Schema, found: Mapping[str, tuple[str, ...]]) -> Self:
        """Return the same fit, of a schema whose codes were found; the plan stays as it is.

        Columns of which nothing is said have their groups only.
        """
        complete = with_found(as_declared(schema), found)
        codec = Codec(complete)
        return replace(self, codec=codec, domain=Domain.of(complete, codec))


def prepare(
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    model: str = DEFAULT,
    publish_quality: float | None = None,
) -> Prepared:
    """Calibrate the plan of a fit from public facts alone; no generator's library is imported.

    Raises:
        InputError: the schema is a draft, its rules contradict each other, the model is unknown,
            the budget cannot be met, or the share for publishing quality is out of range.
    """
    schema.require_complete()
    require_consistent_tables(schema)
    budget = PrivacyBudget(epsilon=epsilon, delta=delta)
    schema = as_declared(schema)
    codec, domain = Codec(schema), planned_domain(schema)
    reason = "asked for"
    if model == AUTO:
        model, reason = choose(domain, budget)
    if model == COHORT.name:
        raise InputError(
            f"model '{model}' is for linked tables; schema {schema.name} has one table"
        )
    model = spec_of(model).name
    shares = shares_of(model, domain, budget)
    if publish_quality is not None:
        shares = with_quality(shares, schema, publish_quality)
    shares = with_discovery(shares, schema, budget)
    plan = PrivacyPlan.calibrate(budget, shares)
    return Prepared(codec, domain, model, plan, reason)


def require_small_delta(schema: AnySchema, epsilon: float, delta: float) -> None:
    """Refuse a delta that the publication of a random unit, whole, would satisfy.

    Where a person may have several units, the delta of the person counts: it grows with epsilon.

    Raises:
        InputError: delta is not below one over the public number of units.
    """
    units, unit = schema.population.value, Unit.of(schema)
    chance = unit.cost(epsilon, delta)[1]
    if chance * units >= 1:
        several = f" ({chance:.3g} for {whom(unit)})" if unit.max_units > 1 else ""
        raise InputError(
            f"delta {delta:g}{several} is not below 1 over the population of {units}: such a delta "
            "would permit publishing one unit's full record; use a much smaller value"
        )
