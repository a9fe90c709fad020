"""Facts of patients' rows: values by place, tests taken together, days, and what rows lie within.

Each is defined for any linked tables: which tests, tables and events there are follows from the
schema, and which of them enough patients have, from train.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise, permutations

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import NEVER
from dpsynth.eval.core import PartResult, plain
from dpsynth.eval.longitudinal.cohort import (
    Cohort,
    Compared,
    Field,
    Floats,
    HistoryFacts,
    Ints,
    SeriesView,
    ratio,
)
from dpsynth.eval.longitudinal.named_facts import (
    MIN_SHOWN,
    ORDINALS,
    FactSet,
    NamedFact,
    distinct,
    enough,
    is_few,
    measured,
    quantiles,
)
from dpsynth.schema import ChildTable, LinkedSchema, is_length
from dpsynth.schema.relations import SECONDS

Bools = npt.NDArray[np.bool_]

PLACES = (0, 1, 2, 4, 9)  # of rows in a patient's series whose values are compared
ENDS = ((0.01, "1st percentile"), (0.5, "median"), (0.99, "99th percentile"))
BETWEEN_TENTHS = 2.563  # standard deviations from the 10th to the 90th percentile of a normal one
MOST_OFF = 5.0  # standard deviations

VALUES = (
    "Mean difference of the median and the outer values (1st and 99th percentile) of each number "
    "in a patient's first, second, third, fifth and tenth row, in standard deviations of the real "
    "values: 0.1 is small, 0.5 is large, 5 is as far as can be. It shows values that drift, freeze "
    "or thin out from row to row."
)


def values(compared: Compared) -> PartResult:
    """Compare values by their place in a patient's series."""
    facts: list[NamedFact] = []
    scales: list[float] = []
    asked: list[tuple[int, int, tuple[int, ...]]] = []
    for number, view in enumerate(compared.train.series):
        for place, field in enumerate(view.facts.fields):
            spread = _spread(view, place) if field.ordered else 0.0
            if not spread:
                continue
            known = np.isfinite(view.numbers(place))
            counts = np.bincount(view.index[known], minlength=PLACES[-1] + 1)
            rows = tuple(row for row in PLACES if enough(compared, int(counts[row])))
            if not rows:
                continue
            asked.append((number, place, rows))
            title = title_of(view, field)
            for row in rows:
                for share, word in ENDS:
                    name = f"{title}, {ORDINALS[row + 1]} value: {word}"
                    outer = min(share, 1 - share) * counts[row]
                    facts.append(NamedFact(name, field.unit, title, outer >= MIN_SHOWN))
                    scales.append(spread)
    if not facts:
        return PartResult()

    def statistic(cohort: Cohort) -> Floats:
        return np.hstack([_by_place(cohort, *one) for one in asked])

    found = FactSet(
        "values",
        "Values, by place in a patient's series",
        VALUES,
        facts,
        statistic,
        np.array(scales),
        MOST_OFF,
    )
    return _result(compared, found)


def title_of(view: SeriesView, field: Field) -> str:
    """Name a value of rows for people."""
    facts = view.facts
    return facts.title if len(facts.fields) == 1 else f"{facts.title}, {field.title}"


def _by_place(cohort: Cohort, number: int, place: int, rows: tuple[int, ...]) -> Floats:
    view = cohort.series[number]
    field = view.facts.fields[place]
    numbers = np.flatnonzero(np.isfinite(field.numbers))
    found = []
    for row in rows:
        at = np.flatnonzero(view.index == row)
        codes = view.values[at, place].astype(np.int64)
        counts = cohort.sums(np.ones(len(at)), view.patients[at], codes, field.size)
        shares = [share for share, _ in ENDS]
        found.append(quantiles(counts[:, numbers], field.numbers[numbers], shares))
    return np.hstack(found)


def _spread(view: SeriesView, place: int) -> float:
    """Return a standard deviation that few outer values hardly move; 0 where values are equal."""
    field = view.facts.fields[place]
    counts = np.bincount(view.values[:, place], minlength=field.size)[None].astype(float)
    numbers = np.flatnonzero(np.isfinite(field.numbers))
    if not counts[0, numbers].any():
        return 0.0
    shares = (0.02, 0.1, 0.9, 0.98)
    least, low, high, most = quantiles(counts[:, numbers], field.numbers[numbers], shares)[0]
    if high > low:
        return float((high - low) / BETWEEN_TENTHS)
    known = view.numbers(place)
    return float(np.clip(known[np.isfinite(known)], least, most).std() / 2)


PANEL_PATIENTS = 20_000  # of a cohort at most, for tests that are taken together
MAX_TESTS = 60  # of a table, for the same
MIN_TIMES = 100  # of train at which both are taken

PANELS = (
    "How tests of one day, or numbers of one row, belong together: the mean difference of the rank "
    "correlation of each pair, and of the share of a test's days on which the other one is taken, "
    "too. Each patient weighs one. 0.05 is small; 0.3 means that systolic and diastolic pressure "
    "of one minute hardly know of each other."
)


@dataclass(frozen=True)
class _Panel:
    """Numbers that stand side by side: tests of a long table, or columns of a wide one.

    Attributes:
        table: its number.
        columns: each one's series and place in it.
        titles: of the columns.
        long: whether they are tests, which a day may have or lack.
    """

    table: int
    columns: tuple[tuple[int, int], ...]
    titles: tuple[str, ...]
    long: bool


def panels(compared: Compared) -> PartResult:
    """Compare numbers of one day, or of one row."""
    facts: list[NamedFact] = []
    asked: list[tuple[_Panel, Ints, Ints]] = []
    notes: list[str] = []
    kinds: list[str] = []
    for panel in _panels(compared, notes):
        n, weight, _ = (one[0] for one in _together(compared.train, panel, counted=True))
        pairs = list(combinations(range(len(panel.columns)), 2))
        own = np.diag(weight)
        seen = [enough(compared, int(weight[pair])) for pair in pairs]
        strong = [
            pair for pair, often in zip(pairs, seen, strict=True) if often and n[pair] >= MIN_TIMES
        ]
        taken = [
            (i, j) for i, j in pairs if panel.long and enough(compared, int(min(own[i], own[j])))
        ]
        asked.append((panel, np.array(strong, int), np.array(taken, int)))
        for i, j in strong:
            both = f"{panel.titles[i]} and {panel.titles[j]}"
            facts.append(NamedFact(f"{both}: rank correlation", "", panel.titles[i]))
        for i, j in taken:
            first, second = (i, j) if own[i] <= own[j] else (j, i)
            name = f"days of {panel.titles[first]} with {panel.titles[second]}, too"
            # a patient weighs one at most, so that fewer than 10 patients weigh less than 10
            few = (is_few(round(float(weight[i, j]), 1), round(float(own[first]), 1)),)
            facts.append(NamedFact(name, "share", panel.titles[first], few=few))
        kinds += ["r"] * len(strong) + ["both"] * len(taken)
    if not facts:
        return PartResult(notes=tuple(notes))
    if max(len(compared.train), compared.n) > PANEL_PATIENTS:
        notes.append(f"tests taken together: of {PANEL_PATIENTS:,} patients of each cohort at most")
    kind = np.array(kinds)
    weights = sum((kind == one) / (kind == one).sum() for one in set(kinds)) / len(set(kinds))

    def statistic(cohort: Cohort) -> Floats:
        found = []
        for panel, strong, taken in asked:
            _, weight, r = _together(cohort, panel)
            found.append(np.nan_to_num(r[:, strong[:, 0], strong[:, 1]]) if len(strong) else None)
            own = np.diagonal(weight, axis1=1, axis2=2)
            if len(taken):
                i, j = taken.T
                least = np.minimum(own[:, i], own[:, j])
                found.append(np.nan_to_num(ratio(weight[:, i, j], least)))
        return np.hstack([one for one in found if one is not None])

    ones = np.ones(len(facts))
    title = "Tests and values of one day together"
    result = _result(
        compared,
        FactSet("panels", title, PANELS, facts, statistic, ones, 2.0, weights=weights),
    )
    return replace(result, notes=tuple(notes))


def _panels(compared: Compared, notes: list[str]) -> Iterator[_Panel]:
    train = compared.train
    for table, name in enumerate(compared.facts.tables):
        own = [n for n, one in enumerate(compared.facts.series) if one.place[0] == table]
        long = len(own) > 1
        places = [0] if long else range(len(train.series[own[0]].facts.fields)) if own else []
        columns = [(n, p) for n in own for p in places if train.series[n].facts.fields[p].ordered]
        if long and not train.series[own[0]].facts.timed:
            continue
        if len(columns) > MAX_TESTS:
            notes.append(f"{name}: tests taken together, of the {MAX_TESTS} that most rows have")
            most = sorted(columns, key=lambda one: -len(train.series[one[0]].patients))
            columns = sorted(most[:MAX_TESTS])
        if len(columns) > 1:
            fields = [train.series[n].facts.fields[p] for n, p in columns]
            titles = tuple(field.title for field in fields)
            yield _Panel(table, tuple(columns), titles, long)


def _together(
    cohort: Cohort, panel: _Panel, *, counted: bool = False
) -> tuple[Floats, Floats, Floats]:
    """Return what pairs of numbers have together, each ``[variants, columns, columns]``.

    Returns:
        The number of times at which both are there (1s unless it is ``counted``), the weight of
        these times, in which each patient weighs one, and the rank correlation at them.
    """
    patients, times, cells = _sparse(cohort, panel)
    size, groups = len(panel.columns), max(1, cohort.groups)
    own = np.bincount(patients, minlength=len(cohort))
    weight_of = 1.0 / np.maximum(own, 1)
    sums = np.zeros((4, groups, size, size))
    number = np.zeros((groups, size, size))
    order = np.argsort(cohort.seats[patients], kind="stable")
    starts = np.searchsorted(cohort.seats[patients][order], np.arange(groups + 1))
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    for group, (start, end) in enumerate(pairwise(starts)):
        x = np.full((end - start, size), np.nan, dtype=np.float32)
        for column, (at, ranks) in enumerate(cells):
            where = position[at]
            inside = (where >= start) & (where < end)
            x[where[inside] - start, column] = ranks[inside]
        there = np.isfinite(x).astype(np.float32)
        x = np.nan_to_num(x)
        w = weight_of[patients[order[start:end]]].astype(np.float32)[:, None]
        sums[0, group] = (there * w).T @ there
        sums[1, group] = (x * w).T @ there
        sums[2, group] = (x * x * w).T @ there
        sums[3, group] = (x * w).T @ x
        if counted:
            number[group] = there.T @ there
    total = sums.sum(axis=1, keepdims=True)
    if cohort.groups:
        sums = np.concatenate([total, total - sums], axis=1)
    n, first, square, product = sums
    mean, spread = ratio(first, n), ratio(square, n)
    other = mean.transpose(0, 2, 1)
    variance = (spread - mean**2) * (spread - mean**2).transpose(0, 2, 1)
    r = ratio(ratio(product, n) - mean * other, np.sqrt(np.maximum(variance, 0.0)))
    return number.sum(axis=0, keepdims=True), n, r


def _sparse(cohort: Cohort, panel: _Panel) -> tuple[Ints, Ints, list[tuple[Ints, Floats]]]:
    """Return patient and day of each time, and for each column at which times it has which rank."""
    size = len(cohort)
    kept = np.ones(size, dtype=bool)
    if size > PANEL_PATIENTS:
        kept = np.zeros(size, dtype=bool)
        kept[np.linspace(0, size - 1, PANEL_PATIENTS).astype(np.int64)] = True
    span = cohort.facts.last - cohort.facts.first + 1
    chosen = []
    for number, place in panel.columns:
        view = cohort.series[number]
        field = view.facts.fields[place]
        codes = view.values[:, place]
        rows = np.flatnonzero(kept[view.patients] & (codes != field.missing))
        days = np.clip(view.days[rows] - cohort.facts.first, 0, span - 1)
        key = view.patients[rows] * span + days if panel.long else rows
        chosen.append((key, view.patients[rows], _ranks(codes[rows], field.size)))
    keys = distinct(np.concatenate([key for key, _, _ in chosen]))
    if panel.long:
        patients, days = keys // span, keys % span
    else:
        view = cohort.series[panel.columns[0][0]]
        patients, days = view.patients[keys], keys
    return patients, days, [(np.searchsorted(keys, key), ranks) for key, _, ranks in chosen]


def _ranks(codes: npt.NDArray[np.uint16], size: int) -> Floats:
    """Return ranks from -0.5 to 0.5; equal values share the mean of theirs."""
    counts = np.bincount(codes, minlength=size)
    middle = np.cumsum(counts) - counts / 2
    return np.asarray(middle[codes] / max(len(codes), 1) - 0.5)


DAYS_OF = (0, 1, 2, 4)  # rows of a patient in a table
TENTHS = ((0.1, "10th percentile"), (0.5, "median"), (0.9, "90th percentile"))
SAME = 0.9  # share of patients with the same number of rows
NARROW = 0.03  # of the window, in which 8 of 10 rows lie that seem to be on a schedule

CALENDAR = (
    "Mean difference of days: of a patient's first, second, third and fifth day with a row of each "
    "table, and of the days from one to the next (10th, 50th and 90th percentile, as shares of the "
    "window); and of the shares of gaps of a day at most, and of patients who are followed to the "
    "last day. 0.01 of a window of ten years is 5 weeks."
)


def calendar(compared: Compared) -> PartResult:
    """Compare the days of rows, the gaps between them, and the last day of follow-up."""
    facts, train = compared.facts, compared.train
    named: list[NamedFact] = []
    scales: list[float] = []
    statistics: list[Callable[[Cohort], Floats]] = []
    window = float(max(1, facts.last - facts.first))
    declared = _children(facts)

    def ask(more: list[NamedFact], scale: float, statistic: Callable[[Cohort], Floats]) -> None:
        named.extend(more)
        scales.extend([scale] * len(more))
        statistics.append(statistic)

    if facts.timed and facts.end >= 0:
        told = facts.schema.last_day
        help = "" if told else "Declare `last_day: true`: many patients are followed to the end."
        few = (is_few(int((train.histories.ends >= facts.last).sum()), len(train)),)
        text = "patients followed to the last day"
        last = NamedFact(text, "share", "end", few=few, help=help)
        ask([last], 1.0, _to_the_last_day)
    for table, name in enumerate(facts.tables):
        timed = any(one.timed for one in facts.series if one.place[0] == table)
        child = declared[name]
        counts = np.sum([_rows_of(train, one, table) for one in train.series], axis=0)
        if len(counts) and (same := int(np.bincount(counts).argmax())):
            if (counts == same).mean() >= SAME:
                help = f"Declare `rows: {{exactly: {same}}}` for table {name}."
                help = help if child.exactly is None and child.kind == "wide" else ""
                few = (is_few(int((counts == same).sum()), len(train)),)
                text = f"patients with {same} rows of {name}"
                fact = NamedFact(text, "share", name, few=few, help=help)
                ask([fact], 1.0, _exactly(table, same))
        if timed:
            more, widths, rows, gaps = _days_facts(compared, table, window, child)
            named += more
            scales += widths
            if more:
                statistics.append(partial(_days_of, table=table, rows=rows, gaps=gaps))
    if not named:
        return PartResult()
    found = FactSet(
        "calendar",
        "Days of rows, gaps, and the last day",
        CALENDAR,
        named,
        lambda cohort: np.hstack([one(cohort) for one in statistics]),
        np.array(scales),
        1.0,
    )
    return _result(compared, found)


def _children(facts: HistoryFacts) -> dict[str, ChildTable]:
    return {child.name: child for child in facts.schema.children}


def _rows_of(cohort: Cohort, view: SeriesView, table: int) -> Ints:
    return view.counts * (view.facts.place[0] == table)


def _to_the_last_day(cohort: Cohort) -> Floats:
    hit = cohort.histories.ends >= cohort.facts.last
    return ratio(cohort.sums(hit), cohort.sums(np.ones(len(cohort))))


def _exactly(table: int, number: int) -> Callable[[Cohort], Floats]:
    def statistic(cohort: Cohort) -> Floats:
        counts = np.sum([_rows_of(cohort, one, table) for one in cohort.series], axis=0)
        return ratio(cohort.sums(counts == number), cohort.sums(np.ones(len(cohort))))

    return statistic


def _table_days(cohort: Cohort, table: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the different days of each patient: patient, place and day; and all gaps."""
    facts = cohort.facts
    span = facts.last - facts.first + 1
    own = [one for one in cohort.series if one.facts.place[0] == table]
    keys = [
        one.patients * span + np.clip(one.days - facts.first, 0, span - 1)
        for one in own
        if len(one.patients)
    ]
    key = distinct(np.concatenate(keys)) if keys else np.zeros(0, dtype=np.int64)
    patients, days = key // span, key % span + facts.first
    starts = np.searchsorted(patients, patients)
    index = np.arange(len(key)) - starts
    return patients, index, days, days[1:][index[1:] > 0] - days[:-1][index[1:] > 0]


def _days_facts(
    compared: Compared, table: int, window: float, child: ChildTable
) -> tuple[list[NamedFact], list[float], tuple[int, ...], bool]:
    """Name the days and gaps of a table that enough patients have; with what scales them."""
    _, index, days, _ = _table_days(compared.train, table)
    named: list[NamedFact] = []
    scales: list[float] = []
    rows: list[int] = []
    for row in DAYS_OF:
        at = days[index == row]
        if not enough(compared, len(at)):
            continue
        low, high = np.quantile(at, (0.1, 0.9))
        help = ""
        if row and high - low <= NARROW * window and child.schedule is None:
            help = (
                f"Declare the `schedule` of table {child.name}, the days on which its rows are "
                "due, if it has one."
            )
        rows.append(row)
        text = f"{child.name}, {ORDINALS[row + 1]} day with rows"
        shown = len(at) >= 10 * MIN_SHOWN
        named += [NamedFact(f"{text}: {word}", "d", text, shown, help=help) for _, word in TENTHS]
        scales += [window] * len(TENTHS)
    repeated = int((index == 1).sum())
    has_gaps = enough(compared, repeated)
    if has_gaps:
        text = f"{child.name}, days from one day with rows to the next"
        shown = repeated >= 10 * MIN_SHOWN
        named += [NamedFact(f"{text}: {word}", "d", text, shown) for _, word in TENTHS]
        named.append(NamedFact(f"{text}: at most 1", "share", text))
        scales += [*[window] * len(TENTHS), 1.0]
    return named, scales, tuple(rows), has_gaps


def _days_of(cohort: Cohort, table: int, rows: tuple[int, ...], gaps: bool) -> Floats:
    """Return percentiles of the days of some rows of a table, and of the gaps between days."""
    patients, index, days, between = _table_days(cohort, table)
    cells = cohort.facts.last - cohort.facts.first + 1
    shares = [share for share, _ in TENTHS]
    steps = np.arange(cells, dtype=np.float64)
    found = []
    for row in rows:
        at = np.flatnonzero(index == row)
        where = days[at] - cohort.facts.first
        counts = cohort.sums(np.ones(len(at)), patients[at], where, cells)
        found.append(quantiles(counts, steps + cohort.facts.first, shares))
    if gaps:
        who = patients[index > 0]
        counts = cohort.sums(np.ones(len(who)), who, between, cells)
        found.append(quantiles(counts, steps, shares))
        found.append(
            ratio(counts[:, :2].sum(axis=1, keepdims=True), counts.sum(axis=1, keepdims=True))
        )
    return np.hstack(found)


HELD = 0.9  # share of rows, or of patients, from which on train is said to hold a rule
BEYOND = 0.1  # that share beyond what lengths of other rows, or all patients, would give
MIN_EVENTS = 50  # patients of train with an event that may imply another one

LINKS = (
    "Mean difference of shares that tie tables to each other: rows on the last day of follow-up "
    "(rows beyond it are read as rows on it), rows that lie on a day of a row of another table, "
    "such as of a stay or a visit, and patients who had another event on the day of an event or "
    "before. A row or an event that stands alone shows every clinician that the patient is made up."
)
UNDECLARED = "the source holds that, and nothing keeps it that is not declared."


def links(compared: Compared) -> PartResult:
    """Compare what ties rows to the end, rows to rows, and events to events."""
    named: list[NamedFact] = []
    statistics: list[Callable[[Cohort], Floats]] = []
    if not compared.facts.timed:
        return PartResult()
    for fact, statistic in (*_at_the_end(compared), *_insides(compared), *_implied(compared)):
        named.append(fact)
        statistics.append(statistic)
    if not named:
        return PartResult()
    found = FactSet(
        "links",
        "Rows within follow-up and stays, and events that imply each other",
        LINKS,
        named,
        lambda cohort: np.hstack([one(cohort) for one in statistics]),
        np.ones(len(named)),
        1.0,
    )
    return _result(compared, found)


Linked = Iterator[tuple[NamedFact, Callable[[Cohort], Floats]]]


def _at_the_end(compared: Compared) -> Linked:
    facts = compared.facts
    if facts.end < 0:
        return
    for table, name in enumerate(facts.tables):
        rows = _dated(compared.train, table)
        if rows is not None and enough(compared, len(distinct(rows[0]))):
            text = f"rows of {name} on the last day of follow-up, or after it"
            few = (_hit_few(compared.train, *rows, _ended),)
            yield NamedFact(text, "share", name, few=few), _share_of_rows(table, _ended)


Hit = Callable[[Cohort, Ints, Ints], Bools]


def _hit_few(cohort: Cohort, patients: Ints, days: Ints, hit: Hit) -> bool:
    """Whether few patients have a row that hits, or few have one that does not."""
    hits = hit(cohort, patients, days)
    sides = [len(distinct(patients[one])) for one in (hits, ~hits)]
    return any(0 < side < MIN_SHOWN for side in sides)


def _ended(cohort: Cohort, patients: Ints, days: Ints) -> Bools:
    return np.asarray(days >= cohort.histories.ends[patients])


def _dated(cohort: Cohort, table: int) -> tuple[Ints, Ints] | None:
    """Return patient and day of each row of a table; None where rows have no day."""
    own = [one for one in cohort.series if one.facts.place[0] == table and one.facts.timed]
    if not own:
        return None
    patients = np.concatenate([one.patients for one in own])
    return patients, np.concatenate([one.days for one in own])


def _share_of_rows(table: int, hit: Hit) -> Callable[[Cohort], Floats]:
    """Return the share of the rows of a table that hit; each patient weighs one."""

    def statistic(cohort: Cohort) -> Floats:
        rows = _dated(cohort, table)
        assert rows is not None  # as in train
        patients, days = rows
        weights = 1.0 / np.maximum(np.bincount(patients, minlength=len(cohort)), 1)[patients]
        above = cohort.sums(weights * hit(cohort, patients, days), patients)
        return ratio(above, cohort.sums(weights, patients))

    return statistic


def _insides(compared: Compared) -> Linked:
    """Yield which rows lie within rows of another table: as declared, or as train holds."""
    facts, train = compared.facts, compared.train
    children = _children(facts)
    for table, name in enumerate(facts.tables):
        rows = _dated(train, table)
        if rows is None or not enough(compared, len(distinct(rows[0]))):
            continue
        declared = children[name].inside
        for number, parent in enumerate(facts.tables):
            if number == table or _dated(train, number) is None:
                continue
            if declared is None:
                place, help = _held_within(train, table, number), ""
            elif declared.table == parent:
                lengths = {length: at for at, length in _lengths(facts, children[parent], number)}
                place, help = lengths[declared.length], ""
            else:
                continue
            if place is None:
                continue
            text = f"rows of {name} on a day of a row of {parent}"
            if declared is None and place != NO_LENGTH:
                length = train.series[_first_of(train, number)].facts.fields[place].name
                inside = f"inside: {{table: {parent}, length: {length}}}"
                help = f"Declare `{inside}` for table {name}: {UNDECLARED}"
            hit = _within(number, place)
            few, told = (_hit_few(train, *rows, hit),), declared is not None
            fact = NamedFact(text, "share", text, few=few, help=help, declared=told)
            yield fact, _share_of_rows(table, hit)


NO_LENGTH = -1  # rows of the other table last for their day alone


def _held_within(train: Cohort, table: int, parent: int) -> int | None:
    """Return within what train holds the rows of a table: a length of the other's, or its day.

    Rows of other patients, and days without a length, must hold clearly fewer of them: a number
    that is no length, such as a blood pressure, adds nothing to the day.
    """

    def share(place: int, shift: int = 0) -> float:
        return float(_share_of_rows(table, _within(parent, place, shift))(train)[0, 0])

    day = share(NO_LENGTH)
    child = _children(train.facts)[train.facts.tables[parent]]
    lengths = [place for place, _ in _lengths(train.facts, child, parent)] if day < HELD else []
    for place in (NO_LENGTH, *lengths):
        held, less = share(place), 0.0 if place == NO_LENGTH else day
        if held >= HELD and held - less >= BEYOND and held - share(place, 1) >= BEYOND:
            return place
    return None


def _first_of(cohort: Cohort, table: int) -> int:
    return next(n for n, one in enumerate(cohort.series) if one.facts.place[0] == table)


def _lengths(facts: HistoryFacts, child: ChildTable, table: int) -> Iterator[tuple[int, str]]:
    """Yield which columns of a wide table may say how many days its rows last."""
    if child.kind != "wide":
        return
    series = next(one for one in facts.series if one.place[0] == table)
    columns = {column.name: column for column in child.schema.modelled}
    for place, field in enumerate(series.fields):
        column = columns.get(field.name)
        if column is not None and field.ordered and is_length(column, child.time):
            yield place, field.name


def _within(table: int, place: int, shift: int = 0) -> Hit:
    """Return whether rows lie within those of a table, of patients further on by a shift.

    Args:
        table: whose rows last for some days.
        place: of the column with their days; `NO_LENGTH` for the day of a row alone.
        shift: 0 for the patients themselves.
    """

    def hit(cohort: Cohort, patients: Ints, days: Ints) -> Bools:
        facts = cohort.facts
        if place == NO_LENGTH:
            dated = _dated(cohort, table)
            assert dated is not None
            owners, begins = dated
            lengths = np.zeros(len(owners))
        else:
            view = cohort.series[_first_of(cohort, table)]
            owners, begins = view.patients, view.days
            lengths = _last_days(facts, table, place, view.numbers(place))
        if not len(owners):
            return np.zeros(len(patients), dtype=bool)
        span = facts.last - facts.first + 1
        lengths = np.where(np.isfinite(lengths), lengths, span)
        starts = np.clip(begins - facts.first, 0, span - 1)
        ends = np.minimum(starts + lengths, span - 1).astype(np.int64)
        order = np.argsort(owners * span + starts, kind="stable")
        first = (owners * span + starts)[order]
        until = np.maximum.accumulate((owners * span + ends)[order])
        key = (patients + shift) % len(cohort) * span + np.clip(days - facts.first, 0, span - 1)
        at = np.searchsorted(first, key, side="right") - 1
        return np.asarray((at >= 0) & (until[np.maximum(at, 0)] >= key))

    return hit


def _last_days(facts: HistoryFacts, table: int, place: int, numbers: Floats) -> Floats:
    """Return how many days (units of the window) after their own rows may end, at most.

    A distance of two moments is counted in whole units, so a row may end up to one later.
    """
    series = next(one for one in facts.series if one.place[0] == table)
    name = series.fields[place].name
    columns = _children(facts)[facts.tables[table]].schema.modelled
    column = next((one for one in columns if one.name == name), None)
    if column is None or column.interval is None:
        return numbers
    exact = column.kind.seconds == facts.schema.time_seconds
    unit = SECONDS[column.interval.unit] / facts.schema.time_seconds
    return np.asarray(np.ceil((numbers + (not exact)) * unit))


def _implied(compared: Compared) -> Linked:
    """Yield which events imply others: as declared, or as train holds."""
    facts, onsets = compared.facts, compared.train.histories.onsets
    told = _declared_pairs(facts.schema)
    for one, other in permutations(range(len(facts.events)), 2):
        event, implied = facts.events[one], facts.events[other]
        who = onsets[:, one] != NEVER
        declared = (event, implied) in told
        before = _before(one, other)
        if not enough(compared, int(who.sum()), 1 if declared else MIN_EVENTS):
            continue
        if not declared:
            share = float(before(compared.train)[0, 0])
            ever = float((onsets[:, other] != NEVER).mean())
            if share < HELD or share - ever < BEYOND:
                continue
        help = "" if declared else f"Declare that {event} `implies` {implied}: {UNDECLARED}"
        shown = who.sum() >= MIN_SHOWN
        for statistic, text in (
            (before, f"patients with {event} who had {implied} by then"),
            (_before(one, other, same=True), f"patients with {event} and {implied} on one day"),
        ):
            had = float(statistic(compared.train)[0, 0]) * who.sum()
            few = (is_few(round(had), int(who.sum())),)
            fact = NamedFact(text, "share", text, shown, few, help, declared)
            yield fact, statistic


def _declared_pairs(schema: LinkedSchema) -> set[tuple[str, str]]:
    several = sum(child.once is not None for child in schema.children) > 1
    names = [(f"{one.table} " if several else "", one) for one in schema.implies]
    return {(f"{table}{one.event}", f"{table}{one.implies}") for table, one in names}


def _before(one: int, other: int, *, same: bool = False) -> Callable[[Cohort], Floats]:
    def statistic(cohort: Cohort) -> Floats:
        onsets = cohort.histories.onsets
        who = np.flatnonzero(onsets[:, one] != NEVER)
        day, implied = onsets[who, one], onsets[who, other]
        hit = implied == day if same else (implied != NEVER) & (implied <= day)
        return ratio(cohort.sums(hit, who), cohort.sums(np.ones(len(who)), who))

    return statistic


def _result(compared: Compared, facts: FactSet) -> PartResult:
    measures, entry = measured(compared, facts)
    return PartResult(tuple(measures), entry)


def slope(source: Floats, synthetic: Floats) -> float | None:
    """Return how much of numbers about 0 is kept: 1 is all, 0 nothing."""
    size = float(source @ source)
    return plain(float(source @ synthetic) / size) if size > 0 else None


def row_facts(compared: Compared) -> Iterator[PartResult]:
    """Yield the sets of facts of rows that have something to compare."""
    yield from (values(compared), panels(compared), links(compared), calendar(compared))
