"""What a patient's history keeps and what it loses: uses, judged by figures beside references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpsynth._util.messages import listed

Measures = Mapping[str, Mapping[str, Any]]

FIT, CARE, UNFIT, OPEN = "fit", "with care", "not fit", "not measured"
_ORDER = (OPEN, FIT, CARE, UNFIT)

COLUMNS = (0.03, 0.10)  # beyond the reference: fit up to the first, not fit beyond the last
PAIRS, LIKENESS, CURVES, RATES = (0.06, 0.12), (0.05, 0.10), (0.02, 0.05), (0.1, 0.3)  # the same
MEANS = (0.1, 0.25)  # the same, in standard deviations
WRONG = (0.25, 0.5)  # the same, as a share of the size of differences between groups
DAYS, VALUES_OFF, PANELS = (0.01, 0.05), (0.15, 0.5), (0.03, 0.12)  # beyond the reference
CODES, EFFECTS, LINKS = (0.15, 0.5), (0.25, 0.5), (0.01, 0.05)  # the same
SKILL = (0.10, 0.25)  # of what a model foretells beyond guessing, that is lost
GUESSING = 0.55  # area under the curve up to which a model of real patients guesses
TOLD = (0.60, 0.75)  # area under the curve of a classifier
BROKEN = (0.0, 0.01)  # share of patients beyond the reference
NAMED = 6  # columns or events that are named
FEW = 100  # patients compared, below which there is no verdict


@dataclass(frozen=True)
class HistoryUse:
    """A use of synthetic histories, and whether they are fit for it.

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

    def to_dict(self) -> dict[str, str]:
        """Give it in JSON types."""
        return dict(vars(self))


@dataclass(frozen=True)
class _Basis:
    """A measure that a use rests on.

    Attributes:
        key: of the measure.
        words: what it is called there.
        limits: fit up to the first, not fit beyond the last.
        kind: "distance" beyond the reference, "skill" that is lost, how much of differences is
            "wrong", how often patients are "told" apart, or the share of histories that are
            "broken".
    """

    key: str
    words: str
    limits: tuple[float, float]
    kind: str = "distance"


_USES: tuple[tuple[str, str, tuple[_Basis, ...]], ...] = (
    (
        "seen",
        "How often patients are seen, and from when",
        (
            _Basis("rows_per_patient", "rows per patient", COLUMNS),
            _Basis("calendar", "days of rows, gaps and the last day", DAYS),
        ),
    ),
    (
        "gaps",
        "How far a patient's rows lie apart",
        (_Basis("gaps", "days between rows", COLUMNS),),
    ),
    (
        "values",
        "Values of rows, first and later ones",
        (
            _Basis("values", "values by place, in standard deviations", VALUES_OFF),
            _Basis("panels", "values of one day together", PANELS),
            _Basis("row_values", "single values", COLUMNS),
            _Basis("row_pairs", "two values of a row", PAIRS),
        ),
    ),
    (
        "courses",
        "How a patient's values develop",
        (
            _Basis("transitions", "a value and the next one", PAIRS),
            _Basis("within_icc", "likeness of a patient's values", LIKENESS),
            _Basis("within_lag", "correlation of consecutive values", LIKENESS),
        ),
    ),
    (
        "links",
        "What ties rows to stays and visits, and events to each other",
        (_Basis("links", "shares of rows and of patients", LINKS),),
    ),
    (
        "codes",
        "How many patients have a code",
        (_Basis("prevalence", "shares of patients, as logarithms", CODES),),
    ),
    (
        "effects",
        "What codes, values and events have to do with each other",
        (
            _Basis("effects", "the strongest effects", EFFECTS),
            _Basis("coefficients", "coefficients of models", EFFECTS),
        ),
    ),
    (
        "groups",
        "Comparisons of groups of patients",
        (
            _Basis("group_differences", "differences of values between groups", WRONG, "wrong"),
            _Basis("group_rate_differences", "differences of event rates", WRONG, "wrong"),
            _Basis("group_curves", "curves of events by group", CURVES),
            _Basis("baseline2", "two facts about a patient", PAIRS),
            _Basis("baseline_rows", "patient and later values", PAIRS),
            _Basis("event_rows", "events and values", PAIRS),
            _Basis("row_means_by_group", "mean values by group, in standard deviations", MEANS),
        ),
    ),
    (
        "events",
        "Time to events, also by group",
        (
            _Basis("event_curves", "curves", CURVES),
            _Basis("event_rates", "logarithm of rates", RATES),
        ),
    ),
    ("next", "Predicting a patient's next row", (_Basis("tstr_next", "", SKILL, "skill"),)),
    ("outcomes", "Predicting how patients fare", (_Basis("tstr_outcome", "", SKILL, "skill"),)),
    (
        "alike",
        "Histories that pass for real ones",
        (_Basis("trajectory_c2st", "", TOLD, "told"),),
    ),
    (
        "possible",
        "Histories without contradictions",
        (_Basis("broken_histories", "", BROKEN, "broken"),),
    ),
)


def uses(measures: Measures) -> tuple[HistoryUse, ...]:
    """Judge all uses whose figures there are, by measures in JSON types."""
    found = []
    for key, title, bases in _USES:
        known = [basis for basis in bases if basis.key in measures]
        if not known:
            continue
        if any(measures[basis.key]["n"] < FEW for basis in known):
            words = f"Fewer than {FEW} patients could be compared, which is too few for a verdict."
            found.append(HistoryUse(key, title, OPEN, words))
            continue
        judged = [
            _differing(basis, measures)
            if basis.kind == "wrong"
            else _judged(basis, measures[basis.key])
            for basis in known
        ]
        worst = max((verdict for verdict, _ in judged), key=_ORDER.index)
        text = "; ".join(words for _, words in judged)
        text = text[0].upper() + text[1:] + "."
        if alone := _alone(known, measures):
            worst = max(worst, CARE, key=_ORDER.index)
            more = f" and {len(alone) - NAMED} more" if len(alone) > NAMED else ""
            text += f" Not fit on their own: {listed(alone[:NAMED])}{more}."
        found.append(HistoryUse(key, title, worst, text))
    return tuple(found)


def summary(found: Sequence[HistoryUse]) -> list[str]:
    """Say in a few sentences what a patient's history keeps and what it loses.

    >>> summary([HistoryUse("events", "Time to events", FIT, "")])
    ['Synthetic histories keep: time to events.']
    """
    words = {
        FIT: "Synthetic histories keep",
        CARE: "They keep in part; use with care",
        UNFIT: "They lose; do not use for",
        OPEN: "Not judged",
    }
    sentences = []
    for verdict, start in words.items():
        titles = [one.title for one in found if one.verdict == verdict]
        if titles:
            named = "; ".join(title[0].lower() + title[1:] for title in titles)
            sentences.append(f"{start}: {named}.")
    return sentences


def _judged(basis: _Basis, entry: Mapping[str, Any]) -> tuple[str, str]:
    value, reference, chance = entry["value"], entry["reference"], entry["chance"]
    beside = chance if reference is None else reference
    whom = "a bootstrap of real patients" if reference is None else "other real patients"
    if basis.kind == "skill":
        real = 0.5 if beside is None else beside
        if real <= GUESSING:
            return OPEN, (
                f"models that learned from real patients hardly do better than guessing: their "
                f"area under the curve is {real:.3f}"
            )
        verdict = _grade((real - value) / (real - 0.5), SKILL)
        return verdict, (
            f"models that learned from synthetic patients reach an area under the curve of "
            f"{value:.3f} on real ones, beside {real:.3f} of models that learned from real ones"
        )
    if basis.kind == "told":
        return _grade(value, TOLD), (
            f"a classifier tells synthetic patients from real ones with an area under the curve of "
            f"{value:.3f}, where 0.5 is chance and 1 is always"
        )
    if basis.kind == "broken":
        share = "no history breaks" if not value else f"{100 * value:.3g} % break"
        text = f"{share} a rule: of the schema, of public clinical edits, of follow-up or of order"
        return _grade(value - (beside or 0.0), BROKEN), text
    verdict = _grade(value - (beside or 0.0), basis.limits)
    against = "no reference" if beside is None else f"{whom} {beside:.3f}"
    return verdict, f"{basis.words}: distance {value:.3f} ({against})"


def _differing(basis: _Basis, measures: Measures) -> tuple[str, str]:
    """Judge differences by the group in which most is wrong: one that is lost is no comparison."""
    worst, name, most = FIT, "", 0.0
    for key, entry in measures.items():
        if key != basis.key and not key.startswith(f"{basis.key}:"):
            continue
        beside = entry["chance"] if entry["reference"] is None else entry["reference"]
        beyond = entry["value"] - (beside or 0.0)
        by_chance = key != basis.key and entry["low"] is not None and entry["low"] <= (beside or 0)
        if not by_chance:
            worst = max(worst, _grade(beyond, basis.limits), key=_ORDER.index)
        if key != basis.key and beyond > most:
            share = f"{100 * entry['value']:.0f} %"
            most, name = beyond, f", most by {key.partition(':')[2]}: {share}"
    entry = measures[basis.key]
    whom = "a bootstrap" if entry["reference"] is None else "other real patients"
    beside = entry["chance"] if entry["reference"] is None else entry["reference"]
    against = "" if beside is None else f" ({whom} {100 * beside:.0f} %)"
    wrong = f"{100 * entry['value']:.0f} % of their size is wrong{against}"
    return worst, f"{basis.words}: {wrong}{name}"


def _alone(bases: Sequence[_Basis], measures: Measures) -> list[str]:
    """Return the columns, series and events that are not fit on their own, the worst first."""
    far: dict[str, float] = {}
    for basis in bases:
        for key, entry in measures.items():
            name, mark, rest = key.partition(":")
            beside = entry["chance"] if entry["reference"] is None else entry["reference"]
            if not mark or name != basis.key or beside is None:
                continue
            low = entry["value"] if entry["low"] is None else entry["low"]
            away = (entry["value"] - beside) / basis.limits[1]
            if away > 1 and low > beside:  # and not by chance
                far[rest] = max(away, far.get(rest, 0.0))
    return sorted(far, key=lambda name: -far[name])


def _grade(value: float, limits: tuple[float, float]) -> str:
    return FIT if value <= limits[0] else CARE if value <= limits[1] else UNFIT
