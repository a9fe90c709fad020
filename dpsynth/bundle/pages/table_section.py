"""A table of the report: what its rows are, and a card for each column or test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from dpsynth._util import svg
from dpsynth._util.formatting import percent
from dpsynth.bundle.format import ManifestHeader, Precision
from dpsynth.bundle.format.precision import COLUMN
from dpsynth.bundle.gates import ColumnProfile, Profile
from dpsynth.bundle.pages.data_dictionary import Fact, facts_of, summary_of
from dpsynth.bundle.pages.table_words import words_of
from dpsynth.schema import SyntheticTable, kind_of

_MAX_BARS = 12  # of a picture of categories; the table beside it has more


@dataclass(frozen=True)
class ColumnCard:
    """A column of the data dictionary, or a test of a long table."""

    key: str
    profile: ColumnProfile
    is_test: bool
    kind: str
    summary: str
    facts: tuple[Fact, ...]
    picture: Markup
    left_out: int


@dataclass(frozen=True)
class TableSection:
    """One table of the report.

    Attributes:
        table: its declaration.
        profile: what it holds.
        words: how it hangs together with the others; nothing of a single table.
        cards: of its columns.
    """

    table: SyntheticTable
    profile: Profile
    words: tuple[str, ...]
    cards: tuple[ColumnCard, ...]


def sections_of(
    heading: ManifestHeader, profiles: tuple[Profile, ...], precision: Precision | None = None
) -> tuple[TableSection, ...]:
    """Prepare every table, in order.

    Args:
        heading: with the tables.
        profiles: what each holds.
        precision: of the counts of columns, if it is known.
    """
    tables = heading.tables.values()
    lines = () if precision is None else precision.of(COLUMN)
    errors = {line.column: line.standard_error or 0.0 for line in lines}
    return tuple(
        _section(place, table, profile, heading, errors)
        for place, (table, profile) in enumerate(zip(tables, profiles, strict=True), start=1)
    )


def _section(
    place: int,
    table: SyntheticTable,
    profile: Profile,
    heading: ManifestHeader,
    errors: Mapping[str, float],
) -> TableSection:
    key = f"table-{place}-column" if profile.table else "column"
    tests = [test is not None for _, test in table.variables()]
    cards = tuple(
        _card(f"{key}-{number}", one, is_test, errors.get(one.column.name))
        for number, (one, is_test) in enumerate(zip(profile.columns, tests, strict=True), start=1)
    )
    return TableSection(table, profile, words_of(table, heading.schema), cards)


def _card(key: str, profile: ColumnProfile, is_test: bool, error: float | None) -> ColumnCard:
    column = profile.column
    bins, left_out = profile.bins, 0
    if column.is_categorical and profile.rows:
        if len(bins) > _MAX_BARS:
            bins = tuple(sorted(bins, key=lambda item: -item.rows)[:_MAX_BARS])
            left_out = len(profile.bins) - len(bins)
        rows = [(b.label, b.rows / profile.rows, percent(b.rows / profile.rows)) for b in bins]
        picture = svg.shares_of(f"{key}-picture", f"Shares of the values of {column.name}", rows)
    elif profile.five:
        title = (
            f"Distribution of {column.name} in {len(bins)} ranges from {profile.five[0]} to "
            f"{profile.five[-1]}"
        )
        shares = [item.rows / profile.rows for item in bins]
        ends = bins[0].label.split(" to ")[0], bins[-1].label.split(" to ")[-1]
        picture = svg.histogram(f"{key}-picture", title, shares, *ends)
    else:
        picture = Markup("")
    return ColumnCard(
        key=key,
        profile=profile,
        is_test=is_test,
        kind=kind_of(column),
        summary=summary_of(profile),
        facts=facts_of(profile, error),
        picture=picture,
        left_out=left_out,
    )
