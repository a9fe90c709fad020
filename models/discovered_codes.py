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

from dpsynth.models.base import Domain, Feature
from dpsynth.privacy import CodeDiscovery, Share
from dpsynth.privacy.events import UNDECIDED
from dpsynth.schema import AnySchema, Schema, as_declared, discovering

if TYPE_CHECKING:
    from dpsynth.privacy import PrivacyBudget

DISCOVERY = "code discovery"
SHARE = 0.1  # of a plan's mu squared
DELTA_PART = 0.1  # of the budget's delta; the threshold hardly depends on it


def discovery_event(schema: AnySchema, budget: PrivacyBudget) -> CodeDiscovery | None:
    """Return the event that finds codes, before its noise is set; None if no column asks for it.

    Of linked tables, it is one event for all columns of all tables: a patient has at most as many
    different codes as there are such columns, times the most rows of hers in any of the tables.
    """
    if isinstance(schema, Schema):
        columns, rows = sum(column.discovers for column in schema.modelled), schema.unit.max_rows
    else:
        tables = discovering(schema)
        columns = sum(len(one.columns) for one in tables)
        rows = max((one.rows for one in tables), default=1)
    if not columns:
        return None
    return CodeDiscovery(DISCOVERY, columns, rows, DELTA_PART * budget.delta, UNDECIDED)


def with_discovery(
    shares: Sequence[Share], schema: AnySchema, budget: PrivacyBudget
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
    return replace(domain, features=with_most(domain.features, declared))


def with_most(features: Sequence[Feature], schema: Schema) -> tuple[Feature, ...]:
    """Return the columns of a table with as many codes as each may have at most.

    Args:
        features: as declared.
        schema: of the table.
    """
    most = {
        column.name: column.discovery.most
        for column in schema.modelled
        if column.discovery is not None
    }
    return tuple(replace(one, size=one.size + most.get(one.name, 0)) for one in features)
