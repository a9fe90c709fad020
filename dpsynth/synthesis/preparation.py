"""What a fit is before it sees any data: codec, generator, plan, all from public facts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast, overload

from dpsynth._util.dependencies import load_fitting
from dpsynth._util.messages import shown
from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import written
from dpsynth.encoding import Codec, HistoryCodec
from dpsynth.errors import InputError
from dpsynth.models import (
    Domain,
    Generator,
    Preset,
    check_linked,
    check_single,
    choose,
    generator_class,
    histories_class,
    most_bytes,
    planned_domain,
    shares_of,
    spec_of,
    with_discovery,
)
from dpsynth.models.histories import (
    HistoryDomain,
    PersonTable,
    domain_of,
    most_bytes_of_histories,
    planned_histories,
)
from dpsynth.models.histories.networks import LATENT, choose_linked, shares_of_linked
from dpsynth.models.histories.settings import HistorySettings
from dpsynth.models.registry import AUTO, DEFAULT
from dpsynth.privacy import (
    AttackRisk,
    PrivacyBudget,
    PrivacyPlan,
    Unit,
    gaussian_separation,
    highest_tpr,
    rounded_down,
    whom,
    with_quality,
)
from dpsynth.privacy.plan import MAX_EPSILON, BudgetTooSmall
from dpsynth.schema import (
    AnySchema,
    LinkedSchema,
    Schema,
    as_declared,
    declares,
    discovering,
    load_any,
    require_consistent_tables,
    tables_as_declared,
    tables_with_found,
    with_found,
)

if TYPE_CHECKING:
    from dpsynth.models.histories import HistoryGenerator


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
    def schema(self) -> Any:
        """The schema of the table, or of the linked tables."""

    @property
    def networks(self) -> bool:
        """Whether the fit uses torch beyond tensors."""
        return spec_of(self.model).measures_pairs

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
    def room(self) -> int:
        """Return more bytes than the run will take: a public fact."""

    @abstractmethod
    def with_codes(self, found: Mapping[str, Any]) -> Self:
        """Return the same fit, of a schema whose codes were found; the plan stays as it is.

        Columns of which nothing is said have their groups only.

        Args:
            found: codes by column, or of linked tables by table and column.
        """


@dataclass(frozen=True, repr=False)
class Prepared(Preparation[Codec, Domain]):
    """What is known of a fit of one table."""

    @property
    def schema(self) -> Schema:
        """The schema of the table."""
        return self.codec.published

    def generator(self) -> Generator:
        """Build the unfitted generator of one table."""
        load_fitting(networks=self.networks)
        unfitted: Any = generator_class(self.model)(self.domain)
        if spec_of(self.model).outside is not None:
            unfitted.rehearse(self.plan)
        return cast("Generator", unfitted)

    def settings(self) -> dict[str, Any]:
        """Return the preset of the model."""
        return asdict(Preset.of(self.model, self.domain, self.plan.budget))

    def room(self) -> int:
        """Return more bytes than the run will take: a public fact."""
        searched = (column.discovery for column in self.schema.modelled)
        words = len(written(self.schema.to_dict())) + CODE * sum(
            discovery.most for discovery in searched if discovery is not None
        )
        return most_bytes(self.model, self.domain, self.plan.budget) + 2 * words

    def with_codes(self, found: Mapping[str, Any]) -> Self:
        """Return the same fit, of a schema whose codes were found, by column."""
        codes = {name: tuple(listed) for name, listed in found.items()}
        complete = with_found(as_declared(self.schema), codes)
        codec = Codec(complete)
        return replace(self, codec=codec, domain=Domain.of(complete, codec))


def _prepare_table(
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
    model = check_single(model)
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


MAX_COLUMNS = 1414
"""Of a patient, in all tables: their pairs are a million at most, as an event counts them."""


@dataclass(frozen=True, repr=False)
class PreparedCohort(Preparation[HistoryCodec, HistoryDomain]):
    """What is known of a fit of linked tables."""

    @property
    def schema(self) -> LinkedSchema:
        """The schema of the tables."""
        return self.codec.schema

    def generator(self) -> HistoryGenerator:
        """Build the unfitted generator of histories."""
        load_fitting(networks=self.networks)
        kind: type[HistoryGenerator] = histories_class(self.model)
        return kind(self.domain)

    def settings(self) -> dict[str, Any]:
        """Return the settings of the counts; those of the training are events of the plan."""
        return {"histories": asdict(HistorySettings.of(self.domain, self.plan.budget))}

    def room(self) -> int:
        """Return more bytes than the run will take: a public fact."""
        arrays = most_bytes_of_histories(self.domain)
        codes = sum(
            column.discovery.most
            for one in discovering(self.schema)
            for column in one.columns
            if column.discovery is not None
        )
        return arrays + 2 * (len(written(self.schema.to_dict())) + CODE * codes)

    def with_codes(self, found: Mapping[str, Any]) -> Self:
        """Return the same fit, of a schema whose codes were found, by table and column."""
        codes = {
            table: {column: tuple(listed) for column, listed in columns.items()}
            for table, columns in found.items()
        }
        codec = HistoryCodec(tables_with_found(self.schema, codes))
        return replace(self, codec=codec, domain=domain_of(codec))


def _prepare_linked(
    schema: LinkedSchema, *, epsilon: float, delta: float, model: str = AUTO
) -> PreparedCohort:
    """Calibrate the plan of a fit of linked tables from public facts alone.

    Raises:
        InputError: the schema is a draft, its rules contradict each other, it declares what no
            generator keeps, the model is not one of linked tables, the tables have more columns
            than a fit can count in pairs, or the budget cannot be met.
    """
    schema.require_complete()
    require_consistent_tables(schema)
    budget = PrivacyBudget(epsilon=epsilon, delta=delta)
    declared = declares(schema)
    schema = tables_as_declared(schema)
    codec, domain = HistoryCodec(schema), planned_histories(schema)
    _require_few_columns(schema, domain)
    reason = "asked for"
    if model == AUTO:
        model, reason = choose_linked(
            domain, budget, declared=declared, found=bool(discovering(schema))
        )
    model = check_linked(model)
    _require_kept(schema, model, declared=declared)
    shares = with_discovery(shares_of_linked(model, domain, budget), schema, budget)
    plan = PrivacyPlan.calibrate(budget, shares)
    return PreparedCohort(codec, domain, model, plan, reason)


def _require_kept(schema: LinkedSchema, model: str, *, declared: bool) -> None:
    """Refuse a generator that does not keep what is declared, or needs codes that are not.

    Raises:
        InputError: it names the generator that does.
    """
    if declared and model != LATENT:
        raise InputError(
            f"schema {schema.name} declares what histories keep (inside, schedule, rows, implies, "
            f"last_day or cumulative), which model {model} does not; use --model {LATENT}, or "
            "remove these keys"
        )
    if model == LATENT and (tables := discovering(schema)):
        columns = ", ".join(shown(column.name) for one in tables for column in one.columns)
        raise InputError(
            f"schema {schema.name}: a fit discovers the codes of {columns}, and model {LATENT} "
            "learns declared codes alone; list their categories, or use --model distilled"
        )


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


@overload
def prepare(
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    model: str = AUTO,
    publish_quality: float | None = None,
) -> Prepared: ...


@overload
def prepare(
    schema: LinkedSchema,
    *,
    epsilon: float,
    delta: float,
    model: str = AUTO,
    publish_quality: float | None = None,
) -> PreparedCohort: ...


@overload
def prepare(
    schema: AnySchema,
    *,
    epsilon: float,
    delta: float,
    model: str = AUTO,
    publish_quality: float | None = None,
) -> Prepared | PreparedCohort: ...


def prepare(
    schema: AnySchema,
    *,
    epsilon: float,
    delta: float,
    model: str = AUTO,
    publish_quality: float | None = None,
) -> Prepared | PreparedCohort:
    """Calibrate the plan of a fit, of one table or of linked ones, from public facts alone.

    No generator's library is imported.

    Raises:
        InputError: the schema is a draft, its rules contradict each other, the model is unknown or
            for other tables, the budget cannot be met, linked tables have more columns than a fit
            can count in pairs, or the share for publishing quality is out of range, or for linked
            tables, which have no such figures.
    """
    if isinstance(schema, Schema):
        return _prepare_table(
            schema, epsilon=epsilon, delta=delta, model=model, publish_quality=publish_quality
        )
    if publish_quality is not None:
        raise InputError(
            "quality figures are published of a single table only; leave out publish-quality: of "
            "linked tables, `dpsynth evaluate` compares them with real ones inside the office"
        )
    return _prepare_linked(schema, epsilon=epsilon, delta=delta, model=model)


_DIGITS = 3  # of an epsilon that follows from a risk
_CLOSE = 0.01  # relative distance below the aim at which the search ends
_NEAR = 4.5  # epsilon over mu, about: where the search starts
_MAX_TRIALS = 30


def epsilon_for_risk(
    schema: AnySchema | str | Path,
    risk: str,
    *,
    delta: float,
    model: str = DEFAULT,
    publish_quality: float | None = None,
) -> float:
    """Return the epsilon at which a fit keeps to an attack rate, from public facts alone.

    The plan of a fit with this epsilon is calibrated, and the bound of all its events together
    (`dpsynth.privacy.attack_rates`) is at most the rate that was asked for: of the person whom the
    ledger counts, where one has several units. So the rate is kept for certain; another epsilon,
    about 1 % larger at most, may keep to it as well.

    Args:
        schema: a `Schema` or a `LinkedSchema`, the path of one, or the name of a shipped one.
        risk: the greatest true-positive rate at a false-positive rate: ``0.05@0.01`` for at most
            5 % found at 1 % false alarms.
        delta: of the fit; there is no default.
        model: of the fit.
        publish_quality: of the fit.

    Raises:
        InputError: the risk is no pair of rates, no noise can reach it, or `prepare` refuses.

    >>> epsilon = epsilon_for_risk("demo", "0.05@0.01", delta=1e-6, model="mixture")
    >>> 3.0 < epsilon < 3.2
    True
    """
    schema = load_any(schema) if isinstance(schema, str | Path) else schema
    asked, units = AttackRisk.parse(risk), Unit.of(schema).max_units

    def found(epsilon: float) -> float:
        prepared = prepare(
            schema, epsilon=epsilon, delta=delta, model=model, publish_quality=publish_quality
        )
        return highest_tpr(prepared.plan.events, asked.fpr, units)

    aim = (1 - _CLOSE / 2) * gaussian_separation(asked.tpr, asked.fpr)
    low, high = 0.0, math.inf  # the largest epsilon that keeps to the risk, the least that does not
    epsilon = _rounded(min(MAX_EPSILON, _NEAR * aim / units + aim**2 / 2))
    for _ in range(_MAX_TRIALS):
        try:
            rate = found(epsilon)
        except BudgetTooSmall:
            break
        seen = gaussian_separation(rate, asked.fpr)
        if rate <= asked.tpr:
            low = max(low, epsilon)
        else:
            high = min(high, epsilon)
        close = low == epsilon and seen >= (1 - _CLOSE) * aim
        if close or low == MAX_EPSILON or (low and _next_up(low) >= high):
            break
        epsilon = epsilon * aim / seen if 0 < seen < math.inf else math.inf
        if not low < epsilon < high:
            epsilon = math.sqrt(low * high) if low and high < math.inf else 2 * low or high / 2
        epsilon = max(_rounded(min(epsilon, MAX_EPSILON)), _next_up(low) if low else 0.0)
    if not low:
        raise InputError(
            f"risk {asked} at delta {delta:g} is too small: the noise would drown any table; allow "
            "a larger share found"
        )
    return low


def _rounded(epsilon: float) -> float:
    """Round an epsilon to three digits that matter, downwards."""
    return rounded_down(epsilon, _DIGITS)


def _next_up(epsilon: float) -> float:
    """Return the next epsilon with three digits that matter."""
    return float(f"{epsilon + 10.0 ** (math.floor(math.log10(epsilon)) - _DIGITS + 1):.{_DIGITS}g}")
