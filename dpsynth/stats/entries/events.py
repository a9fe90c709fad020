"""Entries of times to an event, or to one of several that preclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from math import prod
from typing import Any

import numpy as np

from dpsynth._util.messages import listed
from dpsynth.errors import InputError
from dpsynth.privacy.answers import NOWHERE
from dpsynth.stats.axes import Axis
from dpsynth.stats.comparisons import Competing, Survival
from dpsynth.stats.comparisons.competing import NO_EVENT
from dpsynth.stats.entries.columns import Columns
from dpsynth.stats.statistic import Statistic

MAX_KINDS = 10
_MAX_COMPARED = 400  # intervals of all groups and kinds together


def survival(reader: Columns, name: str, weight: float, entry: Mapping[str, Any]) -> Statistic:
    """Read times to an event, or to one of several: ``of: {death: [values], move: [values]}``."""
    of = entry["survival"]
    kinds = of.get("of") if isinstance(of, Mapping) else None
    if not isinstance(kinds, Mapping):
        return reader.survival(name, weight, entry)
    if not 2 <= len(kinds) <= MAX_KINDS or NO_EVENT in kinds:
        raise InputError(f"'of' names 2 to {MAX_KINDS} events, none of them '{NO_EVENT}'")
    if not all(isinstance(kind, str) and kind.isprintable() and kind.strip() for kind in kinds):
        raise InputError("each event in 'of' has a name and a list of values")
    values = [reader.values(of.get("event"), levels, "'of'")[1] for levels in kinds.values()]
    every = [value for levels in values for value in levels]
    if len(set(every)) < len(every):
        twice = listed(sorted({value for value in every if every.count(value) > 1}))
        raise InputError(f"'of' has a value of several events: {twice}")
    found = reader.survival(name, weight, {**entry, "survival": {**of, "of": every}})
    assert isinstance(found, Survival)
    if prod(axis.size for axis in found.axes) * len(found.cuts) * len(kinds) > _MAX_COMPARED:
        raise InputError(f"it has more than {_MAX_COMPARED} intervals of all groups and events")
    axis, _ = reader.values(of["event"], every, "'of'")
    labels, state = np.array(axis.labels, dtype=object)[axis.cell_of], found.state.cell_of
    state = np.where(state == NOWHERE, NOWHERE, len(kinds))
    for place, levels in enumerate(values):
        state = np.where(np.isin(labels, levels), place, state)
    kept = {one.name: getattr(found, one.name) for one in fields(found)}
    axis = Axis(axis.column, (*kinds, "censored"), state, axis.place)
    return Competing(**kept | {"state": axis})
