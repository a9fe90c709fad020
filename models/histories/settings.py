"""Events of a fit of histories, and how the budget is split among them: public facts alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpsynth.models import runs_again
from dpsynth.models.histories.domain import HistoryDomain, HistoryTable
from dpsynth.models.histories.persons.emphasis import FIRST
from dpsynth.models.histories.persons.table import NUMBERS, SERIES, PersonTable
from dpsynth.models.histories.row_grains import with_row_grains
from dpsynth.models.histories.steps.events import (
    AGAIN,
    GAPS,
    LINES,
    ONE_WAY,
    PAIRS,
    StepSettings,
    event_name,
)
from dpsynth.models.histories.steps.pairs import StepPlaces, step_pairs
from dpsynth.models.histories.steps.stack import levels_of
from dpsynth.models.histories.steps.table import MASS, Coarse, StepTable
from dpsynth.privacy import ChosenHistograms, JointHistograms, PrivacyBudget, Share, gaussian_mu
from dpsynth.privacy.events import UNDECIDED

PERSONS = "patients"

SPREAD, WIDEST = 4, 32
DOCUMENT = 2**20  # bytes
BINS, LEAST_AND_MOST = 0.6, (8, 16)
"""Of a smooth column of the person table: so many for each cube root of patients times mu."""

ONE_WAY_PART, OF_WIDE = 0.25, 0.15
"""Of the person table's budget: days of rare events and wide columns need it; the second one where
rows are wide, since the sums of many pairs tell each column again."""

CLEAR = 25_000
"""Patients times mu, above which a mixture takes several rounds to meet what was released; below
it meets noisy counts in one, which therefore has more steps."""

CLEARER = 80_000
"""Patients times mu, above which numbers of rows are drawn before first rows: pairs with them are
known so well that what interactions add is less than what a longer chain of columns loses."""

NOISY_FIRST = 1.45
"""Weight of a pair of the baseline with a value of a first row below `CLEAR`, where rows are wide:
noise is most of what such pairs are off by."""

WORTH_LONG = 5_000
"""Patients times mu, above which a longer fit of more components is nearer to patients, where rows
are not wide; below it, noise leaves nothing to gain, and a fit is short."""

LINES_PART, GAPS_PART = 0.06, 0.04  # of the budget of a table's steps

MAX_CONDITIONS = 4
"""Columns of the person table that the steps of a series depend on, at most."""


@dataclass(frozen=True)
class HistorySettings:
    """Settings of one fit.

    Attributes:
        person_bins: that a smooth column of the person table is cut into, about.
        components: of the person table's mixture.
        person_steps: of a round of its fit.
        steps: of the step tables.
        tie: of the person table's mixture: of the columns that say what became of a patient.
        loose_tie: of its other columns.
        first: weight of its pairs of the baseline with first values, where rows are wide.
        last: what a network of it draws last.
    """

    person_bins: int
    components: int
    person_steps: int
    tie: float
    loose_tie: float
    steps: StepSettings
    first: float = FIRST
    last: str = NUMBERS

    @classmethod
    def of(cls, domain: HistoryDomain, budget: PrivacyBudget) -> HistorySettings:
        """Return the settings, from public facts: more bins where noise leaves room for them."""
        signal = domain.population * gaussian_mu(budget.epsilon, budget.delta)
        bins = int(np.clip(BINS * signal ** (1 / 3), *LEAST_AND_MOST))
        fit = (1000, 1200, 1.0, 0.3) if signal > WORTH_LONG else (500, 300, 0.3, 0.3)
        if _has_wide_rows(domain):
            fit = (1000, 300 if signal > CLEAR else 800, 1.0, 1.0)
        first = FIRST if signal > CLEAR else NOISY_FIRST
        last = NUMBERS if signal <= CLEARER else SERIES
        return cls(bins, *fit, StepSettings(16, 400, 300, 1.0), first, last)


def person_event(kind: str) -> str:
    """Name an event of the person table."""
    return f"{PERSONS}: {kind}"


def shares_of_histories(domain: HistoryDomain, budget: PrivacyBudget) -> tuple[Share, ...]:
    """Name every mechanism of a fit, with its share of the budget.

    Args:
        domain: public facts.
        budget: of the fit.
    """
    person = PersonTable(domain)
    steps = _share_of_steps(domain)
    one_way = OF_WIDE if _has_wide_rows(domain) else ONE_WAY_PART
    own = 1.0 - steps
    columns = len(person.features)
    pairs = max(1, columns * (columns - 1) // 2)
    shares = [
        Share(
            JointHistograms(
                person_event(ONE_WAY),
                histograms=sum(len(feature.levels) for feature in person.features),
                rows_per_unit=1,
                sigma=UNDECIDED,
            ),
            one_way * own,
        )
    ]
    rounds = ((PAIRS, 0.35), (AGAIN, 0.65)) if runs_again(person.as_domain) else ((PAIRS, 1.0),)
    for kind, part in rounds:
        event = ChosenHistograms(person_event(kind), pairs, 1, UNDECIDED)
        shares.append(Share(event, part * (1.0 - one_way) * own))
    for table in domain.tables:
        shares += _shares_of_steps(domain, table, steps / len(domain.tables))
    return with_row_grains(shares, domain)


def most_bytes_of_histories(domain: HistoryDomain) -> int:
    """Return more bytes than the arrays of a fit will take, and its document less the schema.

    Each code of a column takes a bin, its share, and a probability in each component; a column has
    fewer bins than `SPREAD` times those that the settings ask for.
    """
    tables = [PersonTable(domain).features]
    for table in domain.tables:
        tables += [
            empty_step_table(domain, table, place).features for place in range(len(table.series))
        ]
    words = 0
    for features in tables:
        bins = sum(min(feature.size, SPREAD * WIDEST) for feature in features)
        words += 4 * sum(feature.size for feature in features) + bins * (2 * 1000 + bins)
    return 8 * words + DOCUMENT


def _share_of_steps(domain: HistoryDomain) -> float:
    """Return what the steps get: more where many columns are drawn at each."""
    if not domain.tables:
        return 0.0
    return 0.62 if _has_wide_rows(domain) else 0.38


def _has_wide_rows(domain: HistoryDomain) -> bool:
    return any(table.is_wide for table in domain.tables)


def most_steps(table: HistoryTable) -> int:
    """Return how many steps of a patient are counted at most: in all series of a table together.

    Each may move a cell of its own in each histogram, and the slack that accounting adds to delta
    counts the cells that move. A step beyond the mass weighs nothing.
    """
    return max(1, min(sum(series.max_rows - 1 for series in table.series), MASS))


def _shares_of_steps(domain: HistoryDomain, table: HistoryTable, share: float) -> Iterator[Share]:
    """Name the events of one table's steps."""
    tables = [empty_step_table(domain, table, place) for place in range(len(table.series))]
    rows = most_steps(table)
    left = share
    if changes := sum(table.changes):
        yield Share(
            JointHistograms(event_name(table, LINES), changes, rows, UNDECIDED, MASS),
            LINES_PART * share,
        )
        left -= LINES_PART * share
    if table.timed:
        yield Share(
            JointHistograms(event_name(table, GAPS), 1, rows, UNDECIDED, MASS), GAPS_PART * share
        )
        left -= GAPS_PART * share
    histograms = levels_of([one.features for one in tables])
    one_way = JointHistograms(event_name(table, ONE_WAY), histograms, rows, UNDECIDED, MASS)
    yield Share(one_way, 0.1 * left)
    most = len(step_pairs(StepPlaces.of(tables[0]), table.changes))
    for kind, part in ((PAIRS, 0.35), (AGAIN, 0.65)):
        event = ChosenHistograms(event_name(table, kind), most, rows, UNDECIDED, MASS)
        yield Share(event, part * 0.9 * left)


def conditions_of(domain: HistoryDomain) -> int:
    """Return how many columns of the person table the steps of a series depend on."""
    return min(MAX_CONDITIONS, PersonTable(domain).baseline)


def empty_step_table(domain: HistoryDomain, table: HistoryTable, place: int) -> StepTable:
    """Return a series' step table before anything is learned: its columns are known already."""
    nothing = tuple(Coarse(0, np.zeros(1, dtype=np.int64)) for _ in range(conditions_of(domain)))
    lines = (None,) * len(table.changes)
    return StepTable(domain, table, table.series[place], nothing, lines)
