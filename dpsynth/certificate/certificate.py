"""The privacy certificate: what was spent on whose protection, and what that does not cover.

It is written from public facts and the ledger alone; nothing in it depends on private rows. The
strict reader takes exactly what the writer gives, so a certificate with a key more, a key less or a
number out of range is no certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Self

from dpsynth._util.dependencies import installed
from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import (
    as_object,
    check_format,
    check_keys,
    digest,
    number,
    several,
    text,
    texts,
    truth,
    version_text,
    whole,
)
from dpsynth.certificate.added_rules import MAX_RULES, AddedRule
from dpsynth.certificate.charge import Charge, OtherRegister, Overridden
from dpsynth.certificate.statements import exact_claims, floating_point_limits, not_covered
from dpsynth.certificate.table_bound import TableBound, bounds_of
from dpsynth.errors import ArtifactError, InputError
from dpsynth.privacy import (
    AttackRates,
    Event,
    LinkCounts,
    NoiseSource,
    Unit,
    event_from_dict,
    kinds,
    noise_sources,
    worst_case_rates,
)

if TYPE_CHECKING:
    from dpsynth.privacy import PrivacyPlan
    from dpsynth.schema import AnySchema

FORMAT, VERSION = "dpsynth-certificate", 1
ADJACENCY = "add or remove one unit with all its rows"
ACCOUNTANT = "dp_accounting PLD"


@dataclass(frozen=True)
class Certificate:
    """The claim of a fit: unit, adjacency, budget, every event, accountant, and the limits.

    ``overrides`` is empty in a run; in a bundle it tells which public gates a person overrode.
    ``added_rules`` is empty in a run, too; in a bundle it has the rules that people added after the
    fit, and says which of them the guarantee does not cover.
    ``tables`` says what counts of each of several linked tables; it is empty for a single one.
    ``second`` is the other register, where the answer is about pairs of two; None elsewhere.
    """

    model: str
    unit: Unit
    epsilon: float
    delta: float
    composed_epsilon: float
    attack_rates: AttackRates
    events: tuple[Event, ...]
    accountant_version: str
    noise: tuple[NoiseSource, ...]
    exact: tuple[str, ...]
    floating_point: tuple[str, ...]
    not_covered: tuple[str, ...]
    ledger: Charge | None
    population: int
    schema_sha256: str
    overrides: tuple[Overridden, ...] = ()
    added_rules: tuple[AddedRule, ...] = ()
    tables: tuple[TableBound, ...] = ()
    second: OtherRegister | None = None

    def __repr__(self) -> str:
        """Say what was fitted at what cost."""
        return short_repr(
            self, f"model {self.model}", f"epsilon {self.epsilon:g}", f"delta {self.delta:g}"
        )

    @property
    def registers(self) -> tuple[OtherRegister, ...]:
        """Whose units are hidden and who paid: of one table, or of two registers."""
        first = OtherRegister(self.unit, self.population, self.schema_sha256, self.ledger)
        return (first,) if self.second is None else (first, self.second)

    @property
    def is_joint(self) -> bool:
        """Whether one charge counts for people who may be in both of two registers."""
        if self.second is None or self.ledger is None or self.second.ledger != self.ledger:
            return False
        linked = [event for event in self.events if isinstance(event, LinkCounts)]
        return len(self.ledger.scope) > 1 and all(event.records == 2 for event in linked)

    @property
    def cost(self) -> tuple[float, float]:
        """Epsilon and delta of the claim for whom the ledger counts; see `Unit.cost`."""
        return self.unit.cost(self.epsilon, self.delta)

    @property
    def plan_sha256(self) -> str:
        """Digest over the budget and every event: two fits with one plan have the same."""
        return digest(
            {
                "epsilon": self.epsilon,
                "delta": self.delta,
                "events": [event.to_dict() for event in self.events],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Write the document; the same certificate gives the same document."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "model": self.model,
            "unit": self.unit.to_dict(),
            "adjacency": ADJACENCY,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "composed_epsilon": self.composed_epsilon,
            "attack_rates": asdict(self.attack_rates),
            "events": [event.to_dict() for event in self.events],
            "plan_sha256": self.plan_sha256,
            "accountant": {"name": ACCOUNTANT, "version": self.accountant_version},
            "noise": [asdict(one) for one in self.noise],
            "exact": list(self.exact),
            "floating_point": list(self.floating_point),
            "not_covered": list(self.not_covered),
            "ledger": None if self.ledger is None else self.ledger.to_dict(),
            "population": self.population,
            "schema_sha256": self.schema_sha256,
            "overrides": [asdict(override) for override in self.overrides],
            "added_rules": [one.to_dict() | {"covered": one.covered} for one in self.added_rules],
            "tables": [asdict(one) for one in self.tables],
            "second": None if self.second is None else self.second.to_dict(),
        }

    @classmethod
    def from_dict(cls, document: Any, place: str = "certificate") -> Self:
        """Read strictly what ``to_dict`` wrote.

        Raises:
            ArtifactError: anything is missing, unknown, of the wrong type or out of range, or the
                digest of the plan does not fit the events.
        """
        check_keys(document, place, _KEYS)
        check_format(document, place, FORMAT, VERSION)
        _require(document["adjacency"] == ADJACENCY, f"{place}.adjacency is not '{ADJACENCY}'")
        check_keys(document["accountant"], f"{place}.accountant", ("name", "version"))
        _require(
            document["accountant"]["name"] == ACCOUNTANT,
            f"{place}.accountant.name is not '{ACCOUNTANT}'",
        )
        charge, second = document["ledger"], document["second"]
        certificate = cls(
            model=text(document["model"], f"{place}.model"),
            unit=Unit.from_dict(document["unit"], f"{place}.unit"),
            epsilon=number(document["epsilon"], f"{place}.epsilon", above=0),
            delta=number(document["delta"], f"{place}.delta", above=0),
            composed_epsilon=number(
                document["composed_epsilon"], f"{place}.composed_epsilon", above=-1e-300
            ),
            attack_rates=AttackRates.from_dict(document["attack_rates"], f"{place}.attack_rates"),
            events=_events(document["events"], f"{place}.events"),
            accountant_version=version_text(
                document["accountant"]["version"], f"{place}.accountant.version"
            ),
            noise=several(NoiseSource.from_dict, document["noise"], f"{place}.noise", maximum=2),
            exact=texts(document["exact"], f"{place}.exact"),
            floating_point=texts(document["floating_point"], f"{place}.floating_point"),
            not_covered=texts(document["not_covered"], f"{place}.not_covered"),
            overrides=_overrides(document["overrides"], f"{place}.overrides"),
            added_rules=several(
                _added, document["added_rules"], f"{place}.added_rules", maximum=MAX_RULES
            ),
            ledger=None if charge is None else Charge.from_dict(charge, f"{place}.ledger"),
            population=whole(document["population"], f"{place}.population", minimum=1),
            schema_sha256=text(document["schema_sha256"], f"{place}.schema_sha256"),
            tables=several(TableBound.from_dict, document["tables"], f"{place}.tables"),
            second=None if second is None else OtherRegister.from_dict(second, f"{place}.second"),
        )
        _require(certificate.delta < 1, f"{place}.delta is not below 1")
        _require(
            tuple(one.noise for one in certificate.noise) == kinds(certificate.events),
            f"{place}.noise does not name the noise of the events",
        )
        _require(
            document["plan_sha256"] == certificate.plan_sha256,
            f"{place}.plan_sha256 does not fit the budget and the events",
        )
        return certificate


_KEYS = (
    "format",
    "version",
    "model",
    "unit",
    "adjacency",
    "epsilon",
    "delta",
    "composed_epsilon",
    "attack_rates",
    "events",
    "plan_sha256",
    "accountant",
    "noise",
    "exact",
    "floating_point",
    "not_covered",
    "ledger",
    "population",
    "schema_sha256",
    "overrides",
    "added_rules",
    "tables",
    "second",
)


def certify(
    schema: AnySchema,
    plan: PrivacyPlan,
    *,
    model: str,
    charge: Charge | None,
    seeded: bool = False,
    second: OtherRegister | None = None,
) -> dict[str, Any]:
    """Write the certificate of a fit from public facts and its charge in the ledger.

    Args:
        schema: the public facts of the table, or of linked tables.
        plan: the calibrated plan; every event of the fit is in it.
        model: the generator's name.
        charge: what the ledger says of it; None if no ledger was charged.
        seeded: whether the noise was not the operating system's.
        second: the other register, of an answer about pairs of two.
    """
    return Certificate(
        model=model,
        unit=Unit.of(schema),
        epsilon=float(plan.budget.epsilon),  # 3 and 3.0 are one budget, but two texts
        delta=float(plan.budget.delta),
        composed_epsilon=float(plan.epsilon),
        attack_rates=attack_rates_of(plan.events, Unit.of(schema), second),
        events=tuple(plan.events),
        accountant_version=installed("dp-accounting"),
        noise=noise_sources(plan.events, seeded=seeded),
        exact=exact_claims(plan.events),
        floating_point=floating_point_limits(plan.events),
        not_covered=not_covered(schema, charge, model, second),
        ledger=charge,
        population=schema.population.value,
        schema_sha256=schema.hash(),
        tables=bounds_of(schema),
        second=second,
    ).to_dict()


def attack_rates_of(
    events: Sequence[Event], unit: Unit, second: OtherRegister | None = None
) -> AttackRates:
    """Bound the attack rates of events for whom the ledger counts.

    Args:
        events: of a plan, or of a certificate.
        unit: of the table.
        second: the other register, of an answer about pairs of two.
    """
    several = max(unit.max_units, 1 if second is None else second.unit.max_units)
    return worst_case_rates(tuple(events), several)


def json_schema() -> str:
    """Return the JSON Schema of the document, as text; it describes every entry."""
    return (files("dpsynth.certificate") / "privacy.schema.json").read_text(encoding="utf-8")


def _events(value: Any, place: str) -> tuple[Event, ...]:
    _require(isinstance(value, list) and bool(value), f"{place}: a list of events is expected")
    try:
        events = tuple(event_from_dict(item) for item in value)
    except InputError as error:
        raise ArtifactError(f"{place}: {error}") from error
    _require(len({event.name for event in events}) == len(events), f"{place}: a name occurs twice")
    return events


def _overrides(value: Any, place: str) -> tuple[Overridden, ...]:
    _require(isinstance(value, list), f"{place}: a list is expected")
    excuses = tuple(
        Overridden.from_dict(item, f"{place}[{index}]") for index, item in enumerate(value)
    )
    _require(len({one.gate for one in excuses}) == len(excuses), f"{place}: a gate occurs twice")
    return excuses


def _added(value: Any, place: str) -> AddedRule:
    """Read an added rule; whether it is covered follows from its source."""
    document = dict(as_object(value, place))
    covered = truth(document.pop("covered", None), f"{place}.covered")
    rule = AddedRule.from_dict(document, place)
    _require(covered == rule.covered, f"{place}.covered does not fit its source")
    return rule


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ArtifactError(message)
