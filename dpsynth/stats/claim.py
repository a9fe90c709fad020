"""Whether a certificate claims what its statistics cost: their events, and no less epsilon."""

from __future__ import annotations

from collections.abc import Sequence

from dpsynth.certificate import (
    Certificate,
    OtherRegister,
    bounds_of,
    exact_claims,
    floating_point_limits,
    not_covered,
)
from dpsynth.policy.policy import STATISTICS
from dpsynth.privacy import LaplaceCounts, Share, Unit, epsilon
from dpsynth.schema import AnySchema
from dpsynth.stats.planning import may_be_laplace, shares_of_request
from dpsynth.stats.request import Request

MODEL = STATISTICS
SEEDED, NO_LEDGER = "seeded-entropy", "no-ledger"


def claim_problems(request: Request, certificate: Certificate, stamps: Sequence[str]) -> list[str]:
    """Say what is wrong with a certificate of statistics; empty if nothing is."""
    laplace = may_be_laplace(request) and all(
        isinstance(event, LaplaceCounts) for event in certificate.events
    )
    shares = shares_of_request(request, certificate.delta, laplace=laplace)
    return problems_of_claim(request.facts, shares, MODEL, certificate, stamps)


def problems_of_claim(
    schema: AnySchema,
    shares: Sequence[Share],
    model: str,
    certificate: Certificate,
    stamps: Sequence[str],
    second: AnySchema | None = None,
    own_records: str = "",
) -> list[str]:
    """Say what is wrong with a certificate of these shares; empty if nothing is.

    Args:
        schema: of the table.
        shares: the events that are needed, all of them.
        model: what the certificate calls what was made.
        certificate: of it.
        stamps: reasons why it may not be released.
        second: of the other register, where the answer is about pairs of two.
        own_records: why the pairs follow from their own records alone.
    """
    problems = []
    planned = {share.event.name: share.event for share in shares}
    events = {event.name: event for event in certificate.events}
    if certificate.model != model:
        problems.append(f"the certificate is not about {model}")
    if set(planned) != set(events):
        problems.append("the certificate does not list exactly the events of the request")
    elif any(events[name].undecided() != planned[name] for name in planned):
        problems.append("an event of the certificate is not the one that the request needs")
    elif epsilon(certificate.events, certificate.delta) > certificate.composed_epsilon * (1 + 1e-9):
        problems.append("the certificate claims less than its events cost")
    if certificate.composed_epsilon > certificate.epsilon:
        problems.append("the certificate states a cost above its budget")
    if SEEDED not in stamps and any(noise.fault for noise in certificate.noise):
        problems.append("the noise is not from where dpsynth draws it, and no stamp says so")
    if any((one.ledger is None) != (NO_LEDGER in stamps) for one in certificate.registers):
        problems.append("the stamps are not those that the certificate requires")
    stated = (certificate.schema_sha256, certificate.unit, certificate.population)
    stated_of_tables = certificate.tables == tuple(bounds_of(schema))
    if stated != (schema.hash(), Unit.of(schema), schema.population.value) or not stated_of_tables:
        problems.append("the certificate is about another schema")
    other = certificate.second
    paid = None if other is None else other.ledger
    if other != (None if second is None else OtherRegister.of(second, paid, own_records)):
        problems.append("the certificate does not name both registers as the request does")
    words = (certificate.exact, certificate.floating_point, certificate.not_covered)
    if words != (
        exact_claims(certificate.events),
        floating_point_limits(certificate.events),
        not_covered(schema, certificate.ledger, model, other),
    ):
        problems.append("the certificate is not worded as its events and its ledger require")
    return problems
