"""What a fit of linked tables is before it sees any data: codec, generator, plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from dpsynth._util.dependencies import load_fitting
from dpsynth._util.strict_json import written
from dpsynth.encoding import HistoryCodec
from dpsynth.errors import InputError
from dpsynth.models import check_linked, histories_class, with_discovery
from dpsynth.models.histories import (
    HistoryDomain,
    PersonTable,
    domain_of,
    most_bytes_of_histories,
    planned_histories,
)
from dpsynth.models.histories.networks import choose_linked, shares_of_linked
from dpsynth.models.histories.settings import HistorySettings
from dpsynth.models.registry import AUTO
from dpsynth.privacy import PrivacyBudget, PrivacyPlan
from dpsynth.schema import (
    AnySchema,
    LinkedSchema,
    Schema,
    discovering,
    require_consistent_tables,
    tables_as_declared,
    tables_with_found,
)
from dpsynth.synthesis.preparation import CODE, Preparation, Prepared, prepare

if TYPE_CHECKING:
    from dpsynth.models.histories import CohortGenerator

MAX_COLUMNS = 1414
"""Of a patient, in all tables: their pairs are a million at most, as an event counts them."""


@dataclass(frozen=True, repr=False)
class PreparedCohort(Preparation[HistoryCodec, HistoryDomain]):
    """What is known of a fit of linked tables."""

    @property
    def networks(self) -> bool:
        """Whether the fit uses torch beyond tensors."""
        return True

    def generator(self) -> CohortGenerator:
        """Build the unfitted generator of histories."""
        load_fitting(networks=self.networks)
        kind: type[CohortGenerator] = histories_class(self.model)  # torch, which no plan needs
        return kind(self.domain)

    def settings(self) -> dict[str, Any]:
        """Return the settings of the counts; those of the training are events of the plan."""
        return {"histories": asdict(HistorySettings.of(self.domain, self.plan.budget))}

    def room(self, schema: LinkedSchema) -> int:
        """Return more bytes than the run will take: a public fact."""
        arrays = most_bytes_of_histories(self.domain)
        codes = sum(
            column.discovery.most
            for one in discovering(schema)
            for column in one.columns
            if column.discovery is not None
        )
        return arrays + 2 * (len(written(schema.to_dict())) + CODE * codes)

    def with_codes(
        self, schema: LinkedSchema, found: Mapping[str, Mapping[str, tuple[str, ...]]]
    ) -> tuple[LinkedSchema, Self]:
        """Return the schema whose codes were found, and the same fit of it; the plan stays."""
        complete = tables_with_found(schema, found)
        codec = HistoryCodec(complete)
        return complete, replace(self, codec=codec, domain=domain_of(codec))


def prepare_cohort(
    schema: LinkedSchema, *, epsilon: float, delta: float, model: str = AUTO
) -> PreparedCohort:
    """Calibrate the plan of a fit of linked tables from public facts alone.

    Raises:
        InputError: the schema is a draft, its rules contradict each other, the model is not one of
            linked tables, the tables have more columns than a fit can count in pairs, or the budget
            cannot be met.
    """
    schema.require_complete()
    require_consistent_tables(schema)
    budget = PrivacyBudget(epsilon=epsilon, delta=delta)
    schema = tables_as_declared(schema)
    codec, domain = HistoryCodec(schema), planned_histories(schema)
    _require_few_columns(schema, domain)
    reason = "asked for"
    if model == AUTO:
        model, reason = choose_linked(domain, budget)
    model = check_linked(model)
    shares = with_discovery(shares_of_linked(model, domain, budget), schema, budget)
    plan = PrivacyPlan.calibrate(budget, shares)
    return PreparedCohort(codec, domain, model, plan, reason)


def _require_few_columns(schema: LinkedSchema, domain: HistoryDomain) -> None:
    """Refuse tables whose pairs of columns are more than a fit can count.

    Raises:
        InputError: it names the long table with most tests.
    """
    columns = len(PersonTable(domain).features)
    if columns <= MAX_COLUMNS:
        return
    table = max(schema.children, key=lambda child: len(child.tests))
    what = f"table {table.name} has {len(table.tests):,} tests: declare those that you need"
    if not table.tests:
        what = "declare fewer tables, or give columns that you do not need role drop"
    raise InputError(
        f"schema {schema.name}: a patient has {columns:,} columns in all tables together, and a "
        f"fit counts pairs of at most {MAX_COLUMNS:,}; {what}. What is not declared is left out, "
        "and what few patients have is lost in the noise in any case"
    )


def prepare_any(
    schema: AnySchema,
    *,
    epsilon: float,
    delta: float,
    model: str = AUTO,
    publish_quality: float | None = None,
) -> Prepared | PreparedCohort:
    """Calibrate the plan of a fit, of one table or of linked ones, from public facts alone.

    Raises:
        InputError: as `prepare` and `prepare_cohort`; or a share is to be set aside for publishing
            the quality of linked tables, which have no such figures.
    """
    if isinstance(schema, Schema):
        return prepare(
            schema, epsilon=epsilon, delta=delta, model=model, publish_quality=publish_quality
        )
    if publish_quality is not None:
        raise InputError(
            "quality figures are published of a single table only; leave out publish-quality: of "
            "linked tables, `dpsynth evaluate` compares them with real ones inside the office"
        )
    return prepare_cohort(schema, epsilon=epsilon, delta=delta, model=model)
