"""A plan in words for a terminal: its events, and what to expect before any data is opened."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from dpsynth._util.formatting import figure, percent

if TYPE_CHECKING:
    from dpsynth.privacy import AttackRates, CodeDiscovery, Event, PrivacyPlan
    from dpsynth.schema import AnySchema


def describe_event(event: Event, unit: str = "") -> str:
    """Say in a few words what noise an event adds.

    Of linked tables, ``unit`` is whom counts are of: there, each adds one row to a table of rows.
    """
    from dpsynth.certificate import noise_sd
    from dpsynth.privacy import (
        ChosenHistograms,
        CodeDiscovery,
        KeyCounts,
        LaplaceCounts,
        LinkCounts,
        PoissonSgd,
        RowSums,
        StaySums,
        TeacherVotes,
        TopChoice,
    )
    from dpsynth.privacy.pair_statistics import DEPARTURES, OF_PRODUCTS
    from dpsynth.privacy.public_quality import QUALITY

    if isinstance(event, PoissonSgd):
        steps = "1 step" if event.steps == 1 else f"{event.steps} steps"
        return (
            f"{steps}, sampling rate {event.sampling_rate:g}, "
            f"noise multiplier {event.noise_multiplier:.4g}"
        )
    if isinstance(event, CodeDiscovery):
        return f"numbers of {unit or 'units'} by code; {noise_of(event)}"
    if isinstance(event, RowSums):
        return f"sums over {unit or 'rows'}; discrete Gaussian, sd {event.sigma:.4g}"
    if isinstance(event, TeacherVotes):
        return (
            f"votes of {event.teachers} teachers on {event.queries} rows; discrete Gaussian, "
            f"sd {event.sigma:.4g}"
        )
    if isinstance(event, LinkCounts):
        return (
            f"linked pairs at {event.cells} thresholds, at most {event.cap} of a record; discrete "
            f"Gaussian, sd {event.sigma:.4g}"
        )
    if isinstance(event, LaplaceCounts):
        return f"counts; discrete Laplace, scale {event.scale:.4g}"
    if isinstance(event, KeyCounts):
        return f"counts of keys from {event.threshold} on; discrete Gaussian, sd {event.sigma:.4g}"
    if isinstance(event, StaySums):
        return (
            f"{unit or 'units'} in {event.periods} periods; discrete Gaussian, noise multiplier "
            f"{event.relative_noise:.4g} for all together"
        )
    if isinstance(event, TopChoice):
        return f"{event.chosen} of {event.candidates} values; Gumbel, scale {event.scale:.4g}"
    sd = noise_sd(event)
    of_rows = f"counts of {unit or 'rows'}"
    shared = f"counts of {unit or 'units'}, shared by rows"
    counted = of_rows if event.unit_mass is None else shared
    if isinstance(event, ChosenHistograms) and event.name == QUALITY:
        return f"{event.most} public quality figures; discrete Gaussian, sd about {sd:.4g} rows"
    if isinstance(event, ChosenHistograms) and event.name in OF_PRODUCTS:
        return (
            f"up to {event.most} sums of products of two columns' scores; discrete Gaussian, noise "
            f"multiplier {event.noise_multiplier:.4g} for all together"
        )
    if isinstance(event, ChosenHistograms) and event.name == DEPARTURES:
        return (
            f"{event.most} distances, one for each pair of columns; discrete Gaussian, sd {sd:.4g} "
            f"{unit or 'units'}"
        )
    if isinstance(event, ChosenHistograms):
        return (
            f"up to {event.most} histograms, {counted}; discrete Gaussian, sd {sd:.4g} if all are "
            "used"
        )
    noun = "histogram" if event.histograms == 1 else "histograms"
    return f"{event.histograms} {noun}, {counted}; discrete Gaussian, sd {sd:.4g}"


def epsilon_of_risk(
    schema: AnySchema, risk: str, delta: float, model: str, quality: float | None
) -> tuple[float, str]:
    """Return the epsilon that follows from a risk, and a sentence that says so."""
    from dpsynth.privacy import AttackRisk
    from dpsynth.synthesis import epsilon_for_risk

    found = epsilon_for_risk(schema, risk, delta=delta, model=model, publish_quality=quality)
    return found, f"{AttackRisk.parse(risk).words}: epsilon {found:g} follows"


def attack_lines(rates: AttackRates, schema: AnySchema) -> list[str]:
    """Say what any membership attack can reach, and on which condition."""
    from dpsynth.certificate import attack_conditions
    from dpsynth.privacy import Unit

    first, *others = wrap(attack_conditions(Unit.of(schema)), 86)
    indent = " " * 12
    return [f"attacks     {rates.words}", *(f"{indent}{line}" for line in (first, *others))]


PART_OF_CAP = 0.25  # of a patient's rows in a table, which only figures in print depend on


def noise_of(event: CodeDiscovery) -> str:
    """Say in a few words what noise numbers of units get, and from where on a code is found."""
    from dpsynth.privacy import Outlook

    outlook = Outlook(event)
    return (
        f"discrete Gaussian, sd {outlook.spread:.4g}; codes with {outlook.threshold:.4g} or more "
        "are found"
    )


def discovery_values(plan: PrivacyPlan, schema: AnySchema) -> dict[str, Any]:
    """Return the outlook of a plan in JSON types; empty where no code is discovered."""
    from dpsynth.privacy import CodeDiscovery, Outlook, Unit, units_of
    from dpsynth.schema import LinkedSchema

    events = [event for event in plan.events if isinstance(event, CodeDiscovery)]
    if not events:
        return {}
    event, outlook, unit = events[0], Outlook(events[0]), Unit.of(schema)
    is_linked, searched = isinstance(schema, LinkedSchema), _searched(schema)
    together = sum(one.rows for one in searched)
    columns = []
    for one in searched:
        expected = outlook.expected(
            one.expected, schema.population.value, one.rows, codes_each=together
        )
        columns.append(
            {
                "column": one.name,
                "assumed_codes": one.expected,
                "assumed_rows": round(one.rows, 2),
                "found": round(expected.found, 1),
                "missed": round(expected.missed, 1),
                "cells_missed": round(expected.cells, 4),
            }
        )
    return {
        "units": units_of(unit) if unit.person or unit.name is None else "units",
        "threshold": outlook.threshold,
        "sd": outlook.spread,
        "delta": event.delta,
        "most_codes": event.most_codes,
        "half": [outlook.units_needed(0.5, codes) for codes in (1, event.most_codes)],
        "almost_sure": [outlook.units_needed(0.95, codes) for codes in (1, event.most_codes)],
        "columns": columns,
        "linked": is_linked,
    }


@dataclass(frozen=True)
class _Searched:
    """A column whose codes are discovered, with how many codes and rows of a unit are assumed."""

    name: str
    expected: int
    rows: float


def _searched(schema: AnySchema) -> list[_Searched]:
    """List the columns whose codes are discovered; in linked tables with the name of their table.

    How many rows a patient has in a table is private there, and not declared: a part of the cap is
    assumed, and one row at least.
    """
    from dpsynth.schema import Schema, discovering

    if isinstance(schema, Schema):
        rows = schema.rows.value / schema.population.value
        rows = min(rows, schema.unit.max_rows)
        return [
            _Searched(column.name, column.discovery.expected, rows)
            for column in schema.modelled
            if column.discovery is not None
        ]
    return [
        _Searched(
            f"{table.schema.name}.{column.name}",
            column.discovery.expected,
            max(1.0, PART_OF_CAP * table.rows),
        )
        for table in discovering(schema)
        for column in table.columns
        if column.discovery is not None
    ]


def discovery_lines(values: dict[str, Any]) -> list[str]:
    """Lay the outlook out."""
    who, most = values["units"], values["most_codes"]
    lines = [
        f"discovery   a code is published if the noisy number of {who} that have it is at least "
        f"{figure(values['threshold'])}",
        f"            found with probability 50 %: {values['half'][0]} {who} with this code; "
        f"95 %: {values['almost_sure'][0]}",
    ]
    if most > 1:
        lines.append(
            f"            if each of them has {most} different codes, the most that count: "
            f"{values['half'][1]} and {values['almost_sure'][1]}"
        )
    lines.append(
        "            false codes: 0 (a code that nobody has is never found). A code that only one "
        f"of them has is found with probability at most {figure(values['delta'])}"
    )
    lines += [
        f"            {one['column']}: of {one['assumed_codes']:,} codes, about "
        f"{one['found']:.0f} found and {one['missed']:.0f} missed, which are "
        f"{percent(one['cells_missed'])} of the cells"
        for one in values["columns"]
    ]
    lines.append(
        "            assumed for the last lines: this many codes occur (codes.expected), the i-th "
        "commonest in a share of the cells proportional to 1/i"
    )
    rows = {one["column"].rpartition(".")[0]: one["assumed_rows"] for one in values["columns"]}
    if values["linked"]:
        several = ", ".join(f"{number:g} in {name}" for name, number in rows.items())
        lines.append(f"            and rows of a patient, a quarter of the cap: {several}")
    return lines


def found_lines(
    schema: AnySchema, epsilon: float, delta: float, model: str, quality: float | None
) -> list[str]:
    """Say before a fit what it will find; nothing where it discovers no codes."""
    from dpsynth.synthesis import prepare

    if not _searched(schema):
        return []
    prepared = prepare(schema, epsilon=epsilon, delta=delta, model=model, publish_quality=quality)
    return discovery_lines(discovery_values(prepared.plan, schema))


def found_codes(schema: AnySchema) -> dict[str, int]:
    """Return how many codes a fit has found, by column."""
    from dpsynth.schema import Schema, discovering

    tables = [("", schema.modelled)] if isinstance(schema, Schema) else []
    if not isinstance(schema, Schema):
        tables = [(f"{one.schema.name}.", one.columns) for one in discovering(schema)]
    return {
        f"{table}{column.name}": len(column.discovery.found)
        for table, columns in tables
        for column in columns
        if column.discovery is not None and column.discovery.found is not None
    }


def unit_noun(schema: AnySchema) -> str:
    """Say whom the counts of linked tables are of, such as patients; nothing of one table."""
    from dpsynth.privacy import Unit, units_of
    from dpsynth.schema import Schema

    return "" if isinstance(schema, Schema) else units_of(Unit.of(schema))


def unit_text(schema: AnySchema) -> str:
    """Word the privacy unit of a schema."""
    from dpsynth.privacy import Unit, described
    from dpsynth.schema import Schema

    unit = schema.unit
    text = described(Unit.of(schema))
    if unit.column is None:
        return text
    if not isinstance(schema, Schema):
        return f"{text}; each with her rows in all tables"
    rows = "row" if unit.max_rows == 1 else "rows"
    return f"{text}; at most {unit.max_rows} {rows} each ({unit.keep})"


def cost_text(schema: AnySchema, epsilon: float, delta: float) -> str:
    """Say what a fit costs whom the ledger counts, where that is not a unit of the schema."""
    from dpsynth.privacy import Unit

    unit = Unit.of(schema)
    if unit.max_units == 1:
        return ""
    epsilon, delta = unit.cost(epsilon, delta)
    return f"; for a {unit.person} the ledger counts epsilon {epsilon:g}, delta {delta:.4g}"
