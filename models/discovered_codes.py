"""Discovered codes in a plan: their event, and the domain that the other events are planned with.

A plan exists before any code is found. So what it depends on is as declared: a column whose codes
are discovered counts with as many codes as it may have at most, and with the same histograms that
it has afterwards, whatever is found. Both parts of the budget below are public and fixed;
bench/discovery.py shows what other parts would find.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dpsynth.models.base import Domain
from dpsynth.privacy import CodeDiscovery, Share
from dpsynth.privacy.events import UNDECIDED
from dpsynth.schema import Schema, as_declared

if TYPE_CHECKING:
    from dpsynth.privacy import PrivacyBudget

DISCOVERY = "code discovery"
SHARE = 0.1  # of a plan's mu squared
DELTA_PART = 0.1  # of the budget's delta; the threshold hardly depends on it


def discovery_event(schema: Schema, budget: PrivacyBudget) -> CodeDiscovery | None:
    """Return the event that finds codes, before its noise is set; None if no column asks for it."""
    columns = sum(column.discovers for column in schema.modelled)
    if not columns:
        return None
    delta = DELTA_PART * budget.delta
    return CodeDiscovery(DISCOVERY, columns, schema.unit.max_rows, delta, UNDECIDED)


def with_discovery(
    shares: Sequence[Share], schema: Schema, budget: PrivacyBudget
) -> tuple[Share, ...]:
    """Put discovery first, where the schema asks for it; other shares shrink in proportion."""
    event = discovery_event(schema, budget)
    if event is None:
        return tuple(shares)
    rest = [replace(share, fraction=share.fraction * (1 - SHARE)) for share in shares]
    return (Share(event, SHARE), *rest)


def planned_domain(schema: Schema) -> Domain:
    """Return the domain that a plan is made with: public, and the same before and after a fit."""
    from dpsynth.encoding import Codec

    declared = as_declared(schema)
    domain = Domain.of(declared, Codec(declared))
    most = {
        column.name: column.codes.discovery.most
        for column in declared.modelled
        if column.codes is not None and column.codes.discovery is not None
    }
    features = (
        replace(feature, size=feature.size + most.get(feature.name, 0))
        for feature in domain.features
    )
    return replace(domain, features=tuple(features))
