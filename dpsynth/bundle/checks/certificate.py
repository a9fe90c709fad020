"""The certificate of a bundle: does it add up, and does it fit the schema and the table."""

from __future__ import annotations

from dpsynth._util.outside_names import outside_name
from dpsynth.bundle.format import Provenance
from dpsynth.certificate import (
    Certificate,
    attack_rates_of,
    bounds_of,
    exact_claims,
    floating_point_limits,
    not_covered,
)
from dpsynth.errors import DpsynthError, InputError, Problem
from dpsynth.models import (
    DISCOVERY,
    discovery_event,
    outside_events,
    planned_domain,
    shares_of,
)
from dpsynth.models.histories import planned_histories
from dpsynth.models.histories.networks import shares_of_linked
from dpsynth.models.presets import ONE_WAY, STEPS
from dpsynth.models.registry import LINKED, NAMES
from dpsynth.privacy import (
    ChosenHistograms,
    CodeDiscovery,
    Event,
    JointHistograms,
    PoissonSgd,
    PrivacyBudget,
    Share,
    Unit,
    quality_event,
)
from dpsynth.privacy import epsilon as composed
from dpsynth.privacy.public_quality import QUALITY
from dpsynth.schema import AnySchema, Schema

Counted = JointHistograms | ChosenHistograms | CodeDiscovery
_TOLERANCE = 1e-3  # relative; versions of the accountant differ by less


def check_certificate(
    certificate: Certificate, schema: AnySchema, drawing: Provenance | None
) -> list[Problem]:
    """List every way in which a certificate contradicts itself, the schema or the manifest."""
    return [
        Problem("privacy.json", message)
        for message in (
            *_against_schema(certificate, schema),
            *_events_paid(certificate, schema),
            *_accounted(certificate),
            *_charged(certificate),
            *_drawn(certificate),
            *_wording(certificate, schema),
            *_against_drawing(certificate, drawing),
        )
    ]


def _against_schema(certificate: Certificate, schema: AnySchema) -> list[str]:
    """Compare the public facts that both documents state."""
    pairs = {
        "schema_sha256": (certificate.schema_sha256, schema.hash()),
        "unit": (certificate.unit, Unit.of(schema)),
        "population": (certificate.population, schema.population.value),
        "tables": (certificate.tables, bounds_of(schema)),
    }
    return [
        f"{name} is not that of schema.json"
        for name, (stated, expected) in pairs.items()
        if stated != expected
    ]


def _drawn(certificate: Certificate) -> list[str]:
    """Refuse noise of another library, or of a version that is known to draw it wrongly."""
    return [f"noise: {source.fault}" for source in certificate.noise if source.fault is not None]


def _events_paid(certificate: Certificate, schema: AnySchema) -> list[str]:
    """Compare the events with those that the model runs on such tables, noise aside.

    An event that is missing from a certificate, or smaller than the one that was run, would make
    the claim smaller than the truth, and nothing else in the bundle would show it.
    """
    if isinstance(schema, Schema) and outside_name(certificate.model) is not None:
        return _outside_events_paid(certificate, schema)
    models = NAMES if isinstance(schema, Schema) else LINKED
    if certificate.model not in models:
        return [f"model is not one of {', '.join(models)}; its privacy cost cannot be checked"]
    try:
        planned = _planned(certificate, schema)
    except InputError as error:
        return [str(error)]
    needed = {share.event.name: share.event for share in planned}
    events = {event.name: event for event in certificate.events}
    if isinstance(schema, Schema) and QUALITY in events:
        needed[QUALITY] = quality_event(schema)
    needed |= _discovered(certificate, schema)
    messages = [
        f"event '{name}', which model {certificate.model} runs, is missing"
        for name in needed
        if name not in events
    ]
    unknown = len(set(events) - set(needed))
    if unknown:
        messages.append(f"model {certificate.model} does not run {unknown} of the events")
    return messages + [
        f"event '{name}' is not the one that model {certificate.model} runs on such a table"
        for name in needed
        if name in events and events[name].undecided() != needed[name]
    ]


def _planned(certificate: Certificate, schema: AnySchema) -> tuple[Share, ...]:
    """Return the events that the certificate's model runs, from public facts alone."""
    budget = PrivacyBudget(epsilon=certificate.epsilon, delta=certificate.delta)
    if isinstance(schema, Schema):
        return shares_of(certificate.model, planned_domain(schema), budget)
    return shares_of_linked(certificate.model, planned_histories(schema), budget)


def _outside_events_paid(certificate: Certificate, schema: Schema) -> list[str]:
    """Compare the events of another package's generator with those that it can be given.

    Its package is not needed, and not asked: nothing of a stranger's is run to verify. Whatever it
    states, dpsynth hands it only the events of its plan, each of which follows from the schema, but
    for the rate and number of steps. So an event that is missing here was not run by dpsynth.
    """
    possible: dict[str, Event] = dict(outside_events(planned_domain(schema)))
    possible[QUALITY] = quality_event(schema)
    possible |= (discovery := _discovered(certificate, schema))
    messages = []
    for event in certificate.events:
        if event.name == STEPS and isinstance(event, PoissonSgd):
            continue
        if possible.get(event.name) != event.undecided():
            messages.append(f"event '{event.name}' is none that dpsynth gives other packages")
    if ONE_WAY not in {event.name for event in certificate.events}:
        messages.append(f"event '{ONE_WAY}', which every generator of a package needs, is missing")
    if discovery and DISCOVERY not in {event.name for event in certificate.events}:
        messages.append(f"event '{DISCOVERY}', which found the codes of a column, is missing")
    return messages


def _discovered(certificate: Certificate, schema: AnySchema) -> dict[str, Event]:
    """Return the event that finds codes, where the schema has columns for it."""
    event = discovery_event(schema, PrivacyBudget(certificate.epsilon, certificate.delta))
    return {} if event is None else {DISCOVERY: event}


def _accounted(certificate: Certificate) -> list[str]:
    """Compose the events anew and compare with what is claimed."""
    try:
        cost = composed(certificate.events, certificate.delta)
        rates = attack_rates_of(certificate.events, certificate.unit, certificate.second)
    except (DpsynthError, ArithmeticError, ValueError, MemoryError):
        return ["its events cannot be accounted for at this delta"]
    messages = []
    if cost > certificate.epsilon * (1 + 1e-9):
        messages.append(
            f"its events compose to epsilon {cost:.4f}, above the claim of {certificate.epsilon:g}"
        )
    if abs(cost - certificate.composed_epsilon) > _TOLERANCE * max(cost, 1e-6):
        messages.append(
            f"its events compose to epsilon {cost:.4f}, not to the stated "
            f"{certificate.composed_epsilon:.4f}"
        )
    if certificate.composed_epsilon > certificate.epsilon:
        messages.append("composed_epsilon is above epsilon")
    if not certificate.attack_rates.agrees(rates):
        messages.append(
            f"attack_rates states {certificate.attack_rates.words}; its events allow {rates.words}"
        )
    return messages


def _charged(certificate: Certificate) -> list[str]:
    """Check that a ledger counted this fit."""
    charge = certificate.ledger
    if charge is None:
        return ["no ledger was charged; such a run is not released"]
    epsilon, delta = certificate.cost
    enough = charge.epsilon_total >= epsilon * (1 - 1e-9)
    if enough and charge.delta_total >= delta * (1 - 1e-9):
        return []
    return ["the ledger's total is below what this fit alone has spent"]


def _wording(certificate: Certificate, schema: AnySchema) -> list[str]:
    """Hold the sentences to those of this version: no claim more, no limit less."""
    model = certificate.model
    pairs = {
        "exact": (certificate.exact, exact_claims(certificate.events)),
        "floating_point": (certificate.floating_point, floating_point_limits(certificate.events)),
        "not_covered": (
            certificate.not_covered,
            not_covered(schema, certificate.ledger, model),
        ),
    }
    return [
        f"{name} is not worded as the events, the schema and the ledger require"
        for name, (stated, expected) in pairs.items()
        if stated != expected
    ]


def _against_drawing(certificate: Certificate, drawing: Provenance | None) -> list[str]:
    if drawing is None or certificate.model == drawing.model:
        return []
    return ["model is not that of datapackage.json"]
