"""What a table is fit for, by thresholds that the guide gives (docs/evaluation.md).

Each use rests on measures of the document and says so with their figures. "Fit" means that the
measure keeps within its threshold beside real people who took no part; no more than that was
measured. A use of which nothing was measured, or on too few rows, has no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpsynth.eval.report.formatting import (
    counted,
    figure,
    listed,
    percent,
    shown,
    value_text,
    with_unit,
)

Details = Mapping[str, Any]

FEW = 100  # compared rows, below which there is no verdict


def beyond(entry: Details) -> float | None:
    """Return how much farther a distance is than its reference; None without a reference.

    >>> beyond({"value": 0.10, "reference": 0.03, "chance": 0.02}) == 0.10 - 0.03
    True
    """
    reference = entry.get("reference")
    reference = entry.get("chance") if reference is None else reference
    return None if reference is None else float(entry["value"]) - float(reference)


def part(document: Details, name: str) -> Details:
    """Return a part of an evaluation that is a mapping."""
    entries = (document.get("parts") or {}).get(name) or {}
    return entries if isinstance(entries, Mapping) else {}


def single_columns(document: Details) -> list[Details]:
    """Return the columns that are compared one by one: modelled, derived, parts of the calendar."""
    fidelity = part(document, "fidelity")
    return [*(fidelity.get("columns") or []), *(fidelity.get("followed") or [])]


def listing(document: Details, name: str) -> list[Details]:
    """Return a part of an evaluation that is a list, or a list under its own name."""
    entries = (document.get("parts") or {}).get(name) or []
    return list(entries.get(name) or []) if isinstance(entries, Mapping) else list(entries)


def measure(document: Details, key: str) -> Details | None:
    """Return a measure that has a value."""
    entry = (document.get("measures") or {}).get(key)
    return entry if entry and entry.get("value") is not None else None


def every(document: Details, family: str) -> Iterator[tuple[str, Details]]:
    """Yield the measures of a family: what each is of, and the measure."""
    for key, entry in (document.get("measures") or {}).items():
        name, mark, rest = key.partition(":")
        if mark and name == family and entry.get("value") is not None:
            yield rest, entry


def few(entry: Details) -> str:
    """Say that too few rows were compared; empty where they were enough."""
    count = entry.get("n")
    if count is None or count >= FEW:
        return ""
    return f"Only {counted(count, 'row')} could be compared; no verdict below {FEW}."


def held(entry: Details) -> float:
    """Return what a distance is held against."""
    reference = entry.get("reference")
    return float(entry["chance"] if reference is None else reference)


def reference_of(entry: Details) -> str:
    """Name what a distance is held against."""
    return "by chance" if entry.get("reference") is None else "other real people"


def distance(entry: Details) -> str:
    """Say a distance, and what it is held against, in plain words."""
    return (
        f"{percent(float(entry['value']))} of the rows would have to change to match the real ones "
        f"({reference_of(entry)}: {percent(held(entry))})"
    )


MEANS = (0.10, 0.25)  # standard deviations beyond the reference: fit up to the first, with care
REACHES = (0.3, 0.6)  # doublings beyond the reference: 0.3 is 1.2 times as far, 0.6 is 1.5 times
SLACK = 0.05  # of the reach of the source, as in the measure


@dataclass(frozen=True)
class Off:
    """A column whose mean or outer values are off.

    Attributes:
        name: of the column.
        title: of the column, for people.
        score: how many times it reaches the last limit; from 1 the table is not fit for it.
        sentence: both tables' figures.
    """

    name: str
    title: str
    score: float
    sentence: str

    @property
    def unfit(self) -> bool:
        """Whether averages or extremes of the column should not be used."""
        return self.score > 1


def judged(document: Details) -> int:
    """Return how many columns were compared on enough rows."""
    return len(list(_entries(document)))


def off_columns(document: Details) -> list[Off]:
    """Return the columns that are clearly off, the worst first."""
    columns = (_off(entry) for entry in _entries(document))
    return sorted((one for one in columns if one is not None), key=lambda one: -one.score)


def _entries(document: Details) -> Iterator[Details]:
    for entry in part(document, "fidelity").get("location") or []:
        if (entry["mean"].get("n") or FEW) >= FEW:
            yield entry


def _off(entry: Details) -> Off | None:
    mean, reach = _times(entry["mean"], MEANS), _times(entry["reach"], REACHES)
    if not mean and not reach:
        return None
    sentences = [_of_mean(entry)] if mean else []
    sentences += [_of_reach(entry)] if reach else []
    title = with_unit(str(entry.get("title") or entry["column"]), entry.get("unit"))
    return Off(str(entry["column"]), title, max(mean, reach), " ".join(sentences))


def _times(entry: Details, limits: tuple[float, float]) -> float:
    """Return how many times a figure reaches the last limit; 0 where it is not clearly off."""
    away, low = beyond(entry), entry.get("low")
    known = [float(entry[name]) for name in ("reference", "chance") if entry.get(name) is not None]
    if away is None or away <= limits[0] or (low is not None and low <= max(known)):
        return 0.0
    return away / limits[1]


def _of_mean(entry: Details) -> str:
    synthetic, real = (value_text(entry, entry[side]["mean"]) for side in ("synthetic", "source"))
    return f"The mean is {synthetic} in the synthetic table and {real} in the source."


def _of_reach(entry: Details) -> str:
    """Say which end is lost or exaggerated."""
    source, synthetic = entry["source"], entry["synthetic"]
    slack = max(SLACK * (source["highest"] - source["lowest"]), float(entry.get("step") or 1e-9))

    def apart(end: str, sign: int) -> float:
        ends = [
            max(sign * (one[end] - source["median"]), 0.0) + slack for one in (synthetic, source)
        ]
        return math.log2(ends[0] / ends[1])

    low, high = apart("lowest", -1), apart("highest", 1)
    end, side, last, change = ("highest", "above", "p99", high)
    if abs(low) > abs(high):
        end, side, last, change = ("lowest", "below", "p01", low)
    here, there = value_text(entry, synthetic[end]), value_text(entry, source[end])
    sentence = (
        f"The {end} 5 % of its values average {here} in the synthetic table and {there} in the "
    )
    sentence += "source"
    if change < 0:
        return (
            f"{sentence}: values {side} {value_text(entry, synthetic[last])} are nearly all lost."
        )
    return f"{sentence}: its tail is exaggerated."


FIT, CARE, UNFIT, OPEN = "fit", "with care", "not fit", "not measured"
_ORDER = (OPEN, FIT, CARE, UNFIT)
MEANS_OFF = "means_off"  # key of the use that is about the columns named in it

COLUMNS = (0.03, 0.10)  # beyond the reference: fit up to the first, not fit beyond the last
PAIRS, CORRELATIONS = (0.06, 0.12), (0.05, 0.10)  # the same
STRONG, NEAR = 0.3, 0.15  # a correlation is strong from so much on, and kept if it is so near
LOST = (0.05, 0.15)  # less than the reference of the strongest relations
POSSIBLE = (0.005, 0.02)  # share of rows beyond the reference
IMPOSSIBLE = {  # what a clinician sees at once
    "never_rows": "rows have a pair of values that no real row has",
    "edits": "rows contradict public lists of clinical edits",
    "levels": "cells have a level that is neither declared nor real",
}
SIZES, SIGNS = (0.2, 0.5), (0.05, 0.15)  # of effects, beyond the reference: the same
PREDICTION = (0.05, 0.10)  # of its score that a model loses
GUESSING = 0.55  # area under the curve below which a model guesses
OVERLAP = (0.10, 0.25)  # less overlap of the intervals of odds ratios than the reference's
SUBGROUPS = (0.12, 0.25)  # distance beyond the reference, of the worst group
NAMED = 3  # columns
KEPT = (0.9, 2 / 3)  # share that is kept of what is rare, strong or clear: the same


@dataclass(frozen=True)
class TableUse:
    """A use, and whether the table is fit for it.

    Attributes:
        key: by which scripts know it.
        title: a few words.
        verdict: ``fit``, ``with care``, ``not fit`` or ``not measured``.
        sentence: the figures behind it, in plain words.
    """

    key: str
    title: str
    verdict: str
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Give it in JSON types."""
        return {name: getattr(self, name) for name in ("key", "title", "verdict", "sentence")}


def uses(document: Details) -> list[TableUse]:
    """Judge all uses, in the order of the page."""
    makers: tuple[tuple[str, str, Callable[[Details], tuple[str, str]]], ...] = (
        ("possible", "Rows that a clinician believes", _possible),
        ("columns", "Counts and shares of single columns", _columns),
        ("pairs", "Relations between two columns", _pairs),
        ("prediction", "Training of prediction models", _prediction),
        ("effects", "Estimates of effects (odds ratios)", _effects),
        ("subgroups", "Comparisons of declared subgroups", _subgroups),
        ("rare", "Rare categories and extreme values", _rare),
    )
    listed_uses = [TableUse(key, title, *maker(document)) for key, title, maker in makers]
    return [*_means_use(document), *listed_uses]


def far_columns(document: Details) -> list[str]:
    """Return the columns that are not fit on their own, the worst first."""
    known = []
    for column in single_columns(document):
        away = beyond(column["tvd"]) if column.get("tvd") else None
        if away is not None and away > COLUMNS[1]:
            known.append((away, str(column["name"])))
    return [name for _, name in sorted(known, reverse=True)]


def grade(value: float, limits: tuple[float, float], *, more: bool = False) -> str:
    """Judge a figure by its two limits; ``more`` where more is better.

    >>> grade(0.02, COLUMNS), grade(0.05, COLUMNS), grade(0.2, COLUMNS)
    ('fit', 'with care', 'not fit')
    """
    turn = -1 if more else 1
    first, last = (turn * limit for limit in limits)
    return FIT if turn * value <= first else CARE if turn * value <= last else UNFIT


def _worst(verdicts: Iterable[str]) -> str:
    return max(verdicts, key=_ORDER.index, default=OPEN)


def _columns(document: Details) -> tuple[str, str]:
    entry = measure(document, "tvd1")
    away = None if entry is None else beyond(entry)
    if entry is None or away is None:
        return OPEN, "No distance of single columns could be held against a reference."
    if few(entry):
        return OPEN, few(entry)
    far = far_columns(document)
    verdict = grade(away, COLUMNS)
    words = f"On average, {distance(entry)}."
    if far:
        verdict = _worst((verdict, CARE))
        words += f" Not fit on their own: {listed(far, 5)}."
    return verdict, words


def _means_use(document: Details) -> list[TableUse]:
    """Judge means and high or low values; the columns that are not fit have an entry of their own.

    A document from before these figures has none, and so no entry.
    """
    count, off = judged(document), off_columns(document)
    if not count:
        return []
    far, near = [one for one in off if one.unfit], [one for one in off if not one.unfit]
    verdicts = []
    if far:
        sentences = [one.sentence for one in far[:NAMED]]
        if len(far) > 1:
            sentences = [f"{one.title}: {one.sentence}" for one in far[:NAMED]]
        told = " ".join(sentences)
        more = far[NAMED:]
        told += f" Also {listed((one.title for one in more), NAMED)}." if more else ""
        which = far[0].title if len(far) == 1 else counted(len(far), "numeric column")
        verdicts.append(TableUse(MEANS_OFF, f"Means and outer values of {which}", UNFIT, told))
    if len(far) < count:
        words = f"In {count - len(off):,} of {counted(count, 'numeric column')} they are as near as"
        words += " chance allows, or nearly so."
        words += f" Less so: {listed((one.title for one in near), NAMED)}." if near else ""
        rest = " of the other numeric columns" if far else " of numeric columns"
        verdicts.append(
            TableUse("means", f"Means and outer values{rest}", CARE if near else FIT, words)
        )
    return verdicts


def _possible(document: Details) -> tuple[str, str]:
    """Judge rows with values that no patient has: impossible pairs, edits, unknown levels."""
    verdicts, words = [], []
    for key, text in IMPOSSIBLE.items():
        entry = measure(document, key)
        away = None if entry is None else beyond(entry)
        if entry is None or away is None or few(entry):
            continue
        verdicts.append(grade(away, POSSIBLE))
        words.append(
            f"{percent(float(entry['value']))} of the {text} ({reference_of(entry)}: "
            f"{percent(held(entry))})."
        )
    if not words:
        return OPEN, "Nothing that real rows never have was frequent enough to be judged."
    verdict = _worst(verdicts)
    if verdict != FIT:
        words.append("Without a new fit: confirm rules (dpsynth rules RUN), and draw again.")
    return verdict, " ".join(words)


def _pairs(document: Details) -> tuple[str, str]:
    verdicts, words = [], []
    entry = measure(document, "tvd2")
    if entry is not None and (away := beyond(entry)) is not None:
        if few(entry):
            return OPEN, few(entry)
        verdicts.append(grade(away, PAIRS))
        words.append(f"On average over pairs, {distance(entry)}.")
    entry = measure(document, "correlation")
    if entry is not None and (away := beyond(entry)) is not None and not few(entry):
        verdicts.append(grade(away, CORRELATIONS))
        words.append(
            f"Correlations are off by {figure(float(entry['value']))} on average "
            f"({reference_of(entry)}: {figure(held(entry))})."
        )
    entry = measure(document, "strongest")
    if entry is not None and (away := beyond(entry)) is not None and not few(entry):
        verdicts.append(grade(-away, LOST))
        words.append(
            f"{percent(float(entry['value']))} is left of the 20 strongest relations "
            f"({reference_of(entry)}: {percent(held(entry))})."
        )
    strong = list(_strong(document))
    if strong:
        near = sum(abs(synthetic - real) <= NEAR for real, synthetic in strong)
        verdicts.append(grade(near / len(strong), KEPT, more=True))
        words.append(
            f"{near:,} of {len(strong):,} strong correlations (from {STRONG:g}) "
            f"{'is' if near == 1 else 'are'} kept to within {NEAR:g}."
        )
    if not words:
        return OPEN, "No pairs of columns could be compared."
    return _worst(verdicts), " ".join(words)


def _strong(document: Details) -> Iterator[tuple[float, float]]:
    """Yield the correlations that are strong in the source: there, and in the table."""
    matrix = (part(document, "fidelity").get("pairs") or {}).get("correlation") or {}
    for i, row in enumerate(matrix.get("source") or []):
        for j, real in enumerate(row[:i]):
            synthetic = matrix["synthetic"][i][j]
            if real is not None and synthetic is not None and abs(real) >= STRONG:
                yield float(real), float(synthetic)


def _prediction(document: Details) -> tuple[str, str]:
    targets = {str(one["name"]): one for one in part(document, "usefulness").get("targets") or []}
    verdicts, words = [], []
    for key, entry in every(document, "tstr_gap"):
        score = measure(document, f"tstr:{key}") or {}
        target = targets.get(key) or {}
        title, real = shown(target.get("title") or key), score.get("reference")
        if few(entry):
            words.append(f"{title}: {few(entry)}")
            continue
        if target.get("kind") == "classification" and real is not None and real < GUESSING:
            text = f"even a model of real rows hardly predicts it (AUC {figure(float(real))})"
            words.append(f"{title}: {text}, so nothing can be lost or kept.")
            continue
        lost, synthetic = grade(float(entry["value"]), PREDICTION), score.get("value")
        guesses = (
            target.get("kind") == "classification"
            and synthetic is not None
            and synthetic < GUESSING
        )
        verdicts.append(UNFIT if guesses else lost)
        name = "AUC (0.5 is guessing, 1 is perfect)"
        name = name if target.get("kind") == "classification" else "score"
        sentence = f"{title}: a model trained on the table loses {figure(float(entry['value']))}"
        if real is not None and synthetic is not None:
            sentence = (
                f"{title}: {name} {figure(float(synthetic))} for a model that is trained on "
                f"the table, {figure(float(real))} for one that is trained on real rows"
            )
        if guesses:
            sentence += ". The table's model only guesses"
            sentence += "; real rows hardly predict it either" if lost == FIT else ""
        words.append(f"{sentence}.")
    if not words:
        return OPEN, "The schema declares no target, or no model could be tried."
    return _worst(verdicts), " ".join(words)


def _effects(document: Details) -> tuple[str, str]:
    entries = list(every(document, "odds"))
    judged = [(-away, key, one) for key, one in entries if (away := beyond(one)) is not None]
    judged = [one for one in judged if not few(one[2])]
    if not judged:
        return OPEN, "No odds ratios could be compared."
    less, name, entry = max(judged, key=lambda one: one[0])
    verdicts = [grade(less, OVERLAP)]
    words = (
        f"The intervals of odds ratios for {shown(name)} overlap by "
        f"{percent(float(entry['value']))} with those from real rows ({reference_of(entry)}: "
        f"{percent(held(entry))})."
    )
    for key, entry in every(document, "effects"):
        off = abs(float(entry["value"]) - 1) - abs(held(entry) - 1) if _is_held(entry) else None
        if off is None or few(entry):
            continue
        verdicts.append(grade(off, SIZES))
        words += (
            f" Effects on {shown(key)} are {figure(float(entry['value']), 2)} times as large as "
            f"in real rows ({reference_of(entry)}: {figure(held(entry), 2)})."
        )
    for key, entry in every(document, "signs"):
        if (away := beyond(entry)) is None or few(entry):
            continue
        verdicts.append(grade(away, SIGNS))
        words += (
            f" {percent(float(entry['value']))} of the clear effects on {shown(key)} have the "
            f"wrong sign ({reference_of(entry)}: {percent(held(entry))})."
        )
    if clear := list(_clear(document)):
        same = sum(clear)
        verdicts.append(grade(same / len(clear), KEPT, more=True))
        words += (
            f" {same:,} of {len(clear):,} effects that real rows show clearly "
            f"{'is' if same == 1 else 'are'} as clear in the table, in the same direction."
        )
    return _worst(verdicts), words


def _is_held(entry: Details) -> bool:
    """Tell whether a figure has something to be held against."""
    return entry.get("reference") is not None or entry.get("chance") is not None


def _clear(document: Details) -> Iterator[bool]:
    """Yield for each odds ratio whose real interval excludes 1 whether the table's does so too."""
    for target in part(document, "usefulness").get("odds_ratios") or []:
        for term in target.get("terms") or []:
            real, synthetic = (_side(term.get(name) or {}) for name in ("source", "synthetic"))
            if real:
                yield synthetic == real


def _side(entry: Details) -> int:
    """Return on which side of no effect an interval lies; 0 if on neither."""
    low, high = entry.get("low"), entry.get("high")
    if low is None or high is None:
        return 0
    return 1 if low > 1 else -1 if high < 1 else 0


def _subgroups(document: Details) -> tuple[str, str]:
    entry, groups = measure(document, "subgroup_worst_tvd2"), listing(document, "subgroups")
    away = None if entry is None else beyond(entry)
    small = [group for group in groups if group.get("tvd2") is None]
    left = f" {counted(len(small), 'group')} had too few rows to be measured." if small else ""
    if not groups and entry is None:
        return OPEN, "The schema declares no subgroup (role: group), or no row is in one."
    if entry is None or away is None:
        return OPEN, f"No declared subgroup was large enough to be measured.{left}"
    if few(entry):
        return OPEN, few(entry)
    worst = [shown(one.get("title") or "") for one in groups if one.get("worst")]
    named = f" ({listed(worst, 1)})" if worst else ""
    words = f"In the worst group{named}, {distance(entry)}, on average over pairs.{left}"
    return grade(away, SUBGROUPS), words


def _rare(document: Details) -> tuple[str, str]:
    rare = list(rare_shares(document))
    if not rare:
        return OPEN, "Nothing rare was frequent enough to be judged."
    lost = [name for name, source, table in rare if not kept(source, table)]
    share = 1 - len(lost) / len(rare)
    words = (
        f"{len(rare) - len(lost):,} of {len(rare):,} rare categories and ends of columns are "
        "within a factor of two of their real share."
    )
    if lost:
        words += f" Not so: {listed(lost, 4)}."
    return grade(share, KEPT, more=True), words


RARE, RARE_ROWS = 0.01, 10  # what is rare has at most this share, and is judged from so many rows
TIMES = 2.0  # what is rare is kept if it is neither so many times as frequent, nor as rare


def kept(source: float, synthetic: float) -> bool:
    """Whether a rare share is neither twice as large, nor half as large.

    >>> kept(0.01, 0.015), kept(0.01, 0.13), kept(0.01, 0.0)
    (True, False, False)
    """
    return source / TIMES <= synthetic <= source * TIMES


def rare_shares(document: Details) -> Iterator[tuple[str, float, float]]:
    """Yield rare categories and the ends of numbers: name, share in the source, in the table."""
    fidelity, tables = part(document, "fidelity"), document.get("tables") or {}
    rows = min(float((tables.get(n) or {}).get("rows") or 0) for n in ("source", "synthetic"))
    for column in fidelity.get("columns") or []:
        if column.get("kind") != "category" or not column.get("source"):
            continue
        present = rows * (1 - float((column.get("missing") or {}).get("source") or 0.0))
        for label, source, table in _levels(column):
            if source <= RARE and source * present >= RARE_ROWS:
                yield f"{shown(column['name'])} = {shown(label)}", source, table
    for tail in fidelity.get("tails") or []:
        source, table = tail.get("source"), tail.get("synthetic")
        if source and table is not None and source * rows >= RARE_ROWS and source <= 2 * RARE:
            side = "lowest" if tail.get("tail") == "low" else "highest"
            yield f"{side} values of {shown(tail['column'])}", float(source), float(table)


def _levels(column: Details) -> Iterator[tuple[str, float, float]]:
    synthetic: Sequence[float] = column.get("synthetic") or []
    for label, source, table in zip(column["bins"], column["source"], synthetic, strict=False):
        if str(label) != "all others":
            yield str(label), float(source), float(table)
