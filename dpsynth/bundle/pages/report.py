"""report.html: the page of a bundle for those who receive it and those whose data are behind it.

A pure function of public things: the schema, the certificate, a profile of the synthetic table, the
verdicts of public gates, what the office says of it, quality figures if the plan paid for them, and
audits on synthetic rows if any were made. The same inputs give the same bytes; there is no clock
and no machine in it. One file, without script, which asks no network for anything. Every text that
a person wrote is escaped, set apart from its surroundings, and rid of invisible characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from jinja2 import Environment
from markupsafe import Markup

from dpsynth._util import svg
from dpsynth._util.formatting import (
    figure,
    figure_at_most,
    one_in,
    percent,
    percent_at_least,
    percent_at_most,
    shown,
)
from dpsynth._util.html import environment
from dpsynth.bundle.format import Contents, Quality, audits_digest
from dpsynth.bundle.format.layout import TYPED
from dpsynth.bundle.gates import HistoryProfile, Profile, Verdict
from dpsynth.bundle.gates.public_gates import NOT_AUDITED
from dpsynth.bundle.pages.audit_cards import audit_cards
from dpsynth.bundle.pages.history_pictures import history_pictures
from dpsynth.bundle.pages.limits import is_stratified
from dpsynth.bundle.pages.precision_section import precision_section
from dpsynth.bundle.pages.table_section import sections_of
from dpsynth.certificate import (
    BudgetLine,
    budget_lines,
    for_person,
    protected,
    readings,
    what_it_is_not,
)
from dpsynth.models import description_of
from dpsynth.privacy import counted_several, reserved, short_of, source_unit, units_of, whom
from dpsynth.schema import Schema

_SHARES = frozenset({"cells", "rules"})  # gates whose figure is a share

_OF_EVENT = re.compile(r"event ('[^']+'): (.+)")  # a statement of a certificate


def public_page(
    contents: Contents,
    profiles: Sequence[Profile],
    verdicts: Sequence[Verdict],
    tables: Mapping[str, str],
    histories: HistoryProfile | None = None,
) -> str:
    """Return the public page of a bundle as HTML.

    Args:
        contents: the documents of the bundle.
        profiles: of each synthetic table.
        verdicts: of the public gates.
        tables: SHA-256 of each table in the bundle, in hex, by path.
        histories: what patients of linked tables look like in time; None of a single table.
    """
    heading, certificate = contents.heading, contents.certificate
    quality, audits = contents.quality, contents.audits
    lines = budget_lines(certificate, quality=quality is not None)
    return (
        _environment()
        .get_template("report.html")
        .render(
            version=heading.writer,
            schema=heading.schema,
            about=heading.about,
            title=heading.about.title or heading.schema.title or heading.schema.name,
            certificate=certificate,
            sections=sections_of(heading, tuple(profiles), contents.precision),
            single=isinstance(heading.schema, Schema),
            histories=None if histories is None else history_pictures(histories),
            stratified=is_stratified(heading.drawing),
            verdicts=verdicts,
            overridden={override.gate: override for override in certificate.overrides},
            drawing=heading.drawing,
            model=description_of(heading.drawing.model),
            typed={path: one for path, one in tables.items() if path.endswith(TYPED)},
            quality=quality,
            precision=None if contents.precision is None else precision_section(contents.precision),
            audits=None if audits is None else audit_cards(audits),
            audits_sha256=None if audits is None else audits_digest(audits),
            reserved=reserved(certificate.events) is not None,
            readings=readings(certificate),
            protected=protected(certificate.unit, certificate.tables),
            what_it_is_not=what_it_is_not(several=not isinstance(heading.schema, Schema)),
            arithmetic=_together(
                [*certificate.exact, *certificate.floating_point], len(certificate.events)
            ),
            lines=lines,
            budget_picture=_budget_picture(lines),
            distances=None if quality is None else _distances(quality),
            agreements=() if quality is None else _agreements(quality),
        )
    )


def _together(statements: Sequence[str], events: int) -> list[str]:
    """Say once what holds of several events, and without their names if it holds of all.

    >>> several = ["event 'a': exact", "event 'b': exact", "event 'c': near", "the sum is near"]
    >>> _together(several, 3)
    ["events 'a' and 'b': exact", "event 'c': near", 'the sum is near']
    >>> _together(several[:2], 2)
    ['each of the 2 events below: exact']
    """
    groups: dict[str, list[str]] = {}
    for statement in statements:
        of_event = _OF_EVENT.fullmatch(statement)
        names = groups.setdefault(statement if of_event is None else of_event[2], [])
        names += [] if of_event is None else [of_event[1]]
    return [
        f"{_events(names, events)}: {rest}" if names else rest for rest, names in groups.items()
    ]


def _events(names: Sequence[str], events: int) -> str:
    if len(names) == 1:
        return f"event {names[0]}"
    if len(set(names)) == events:
        return f"each of the {events} events below"
    return f"events {', '.join(names[:-1])} and {names[-1]}"


@cache
def _environment() -> Environment:
    pages = environment(__package__)
    pages.filters |= {
        "figure": figure,
        "percent": lambda share: _unbroken(percent(share)),
        "at_least": lambda share: _unbroken(percent_at_least(share)),
        "bound": figure_at_most,
        "at_most": lambda share: _unbroken(percent_at_most(share)),
        "unbroken": _unbroken,
        "one_in": one_in,
        "sentence": _sentence,
    }
    words = (counted_several, for_person, short_of, source_unit, units_of, whom)
    pages.globals |= {word.__name__: word for word in words}
    pages.globals |= {
        "hundred": svg.hundred,
        "not_audited": NOT_AUDITED,
        "found": lambda verdict: _judged(verdict, verdict.value),
        "share": lambda rows, all_rows: _unbroken(percent(rows / all_rows)) if all_rows else "none",
        "word": _word,
        "limit": lambda verdict: _judged(verdict, verdict.limit),
    }
    return pages


def _sentence(text: str) -> str:
    """Begin with a capital, end with a full stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _unbroken(text: str) -> Markup:
    """Keep the sign of per cent beside its number."""
    return Markup("&nbsp;%").join(shown(part) for part in text.split(" %"))


def _word(verdict: Verdict) -> str:
    """Say in a word or two what a check came to."""
    if verdict.passed:
        return "passed"
    if verdict.detail == NOT_AUDITED:
        return NOT_AUDITED
    return "failed" if verdict.stops else "over its limit"


def _judged(verdict: Verdict, value: float) -> str:
    return _unbroken(percent(value)) if verdict.key in _SHARES else figure(value)


def _budget_picture(lines: Sequence[BudgetLine]) -> Markup:
    rows = [(line.name, line.share, percent(line.share)) for line in lines]
    return svg.shares_of("budget-picture", "Share of the privacy budget that each event has", rows)


def _distances(quality: Quality) -> Markup:
    """Draw the distance of each column, on one scale."""
    rows = [
        (column.column, column.tvd, column.low, column.high, figure(column.tvd))
        for column in quality.columns
    ]
    maximum = max([column.high for column in quality.columns] + [0.1])
    title = f"Distance of each column to the source, with its interval, from 0 to {figure(maximum)}"
    return svg.intervals("distances-picture", title, rows, maximum)


def _agreements(quality: Quality) -> list[Markup]:
    """Draw the calibration of each target's class."""
    return [
        svg.agreement(
            f"target-{place}",
            f"Predicted and observed chance of {target.target} being {target.class_}",
            [(point.predicted, point.observed) for point in target.calibration],
        )
        for place, target in enumerate(quality.targets, start=1)
    ]
