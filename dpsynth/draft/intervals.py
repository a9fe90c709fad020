"""Columns that belong together: pairs of dates and the stay, weight, height and index, keys.

Modelled apart, two dates give a stay that is wrong by weeks. So the later date of a known pair is
declared by its distance from the earlier one.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsynth._util.field_reader import TODO
from dpsynth.draft.clinical import KEY
from dpsynth.draft.clinical_edits import SEXES, WOMAN
from dpsynth.draft.names import compact, words
from dpsynth.draft.proposal import Proposal
from dpsynth.schema import quoted

PAIRS = (
    ("admission date", "discharge date"),
    ("ICU admission date", "ICU discharge date"),
    ("operation start", "operation end"),
)
# Words of four languages and Italian; a name that has one of each is no pair of two columns.
_STARTS = frozenset(
    "arrival arrived admission admitted start started begin onset ankunft aufnahme eintritt beginn "
    "anfang arrivee entree admis debut llegada ingreso entrada admision inicio comienzo arrivo "
    "ricovero ammissione ingresso inizio".split()
)
_ENDS = frozenset(
    "departure departed left discharge discharged end ended stop abgang entlassung austritt ende "
    "depart sortie fin salida alta egreso final partenza uscita dimissione fine".split()
)
_ORDERED = (("diastolic blood pressure", "systolic blood pressure"),)
_OUTCOMES = ("death", "readmission")
_LONGEST = "the longest distance, from a protocol"


def add_intervals(proposals: list[Proposal]) -> None:
    """Declare the later date of each pair by its distance, where both occur once."""
    for first, second in PAIRS:
        earlier, later = _only(proposals, first), _only(proposals, second)
        if earlier is not None and later is not None:
            _declare(earlier, later)
    for earlier, later in _by_name(proposals):
        _declare(earlier, later)


def _declare(earlier: Proposal, later: Proposal) -> None:
    """Declare a date by its distance from an earlier one."""
    extra = later.document["dpsynth"]
    later.document.pop("constraints", None)
    later.comments.pop("constraints", None)
    later.comments.pop("dpsynth.calendar", None)
    role = {"role": extra["role"]} if "role" in extra else {}
    after = str(earlier.document["name"])
    unit = {"unit": "h"} if later.document["type"] == "datetime" else {}
    declared = {"after": after, "longest": TODO} | unit
    later.document["dpsynth"] = role | declared | {"bounds_basis": TODO}
    later.comments["dpsynth.longest"] = _LONGEST


def _by_name(proposals: list[Proposal]) -> Iterator[tuple[Proposal, Proposal]]:
    """Yield pairs of dates whose names differ by a word for the start and one for the end only.

    A name with several words of one kind, and a start or an end that occurs twice, is no pair.
    """
    starts: dict[tuple[str, ...], list[Proposal]] = {}
    ends: dict[tuple[str, ...], list[Proposal]] = {}
    for proposal in proposals:
        if proposal.document["type"] not in ("date", "datetime") or proposal.is_dropped:
            continue
        parts = words(str(proposal.document["name"]))
        for known, dates in ((_STARTS, starts), (_ENDS, ends)):
            rest = tuple(part for part in parts if part not in known)
            if len(rest) == len(parts) - 1:
                dates.setdefault(rest, []).append(proposal)
    declared = {one.document["dpsynth"].get("after") for one in proposals} - {None}
    for rest, first in starts.items():
        last = ends.get(rest, [])
        if len(first) == len(last) == 1 and first[0] is not last[0]:
            free = not any("after" in one.document["dpsynth"] for one in (*first, *last))
            if free and last[0].document["name"] not in declared:
                yield first[0], last[0]


def is_end(name: str) -> bool:
    """Tell whether a column is named after the end of something, such as a discharge.

    >>> is_end("discharge_date"), is_end("Aufnahme")
    (True, False)
    """
    return bool(_ENDS & set(words(name)))


def add_body_mass_index(proposals: list[Proposal]) -> None:
    """Declare the body mass index by its formula, where weight and height occur once with units."""
    index, weight, height = (
        _only(proposals, name, ("number", "integer"))
        for name in ("body mass index", "body weight", "body height")
    )
    if index is None or weight is None or height is None:
        return
    extra = index.document["dpsynth"]
    kilograms, metres = (
        parts.get(one.document["dpsynth"].get("ucum"))
        for one, parts in (
            (weight, {"kg": "", "g": " / 1000"}),
            (height, {"m": "", "cm": " / 100"}),
        )
    )
    if kilograms is None or metres is None or extra.get("ucum") != "kg/m2" or "role" in extra:
        return
    first, second = (quoted(str(one.document["name"])) for one in (weight, height))
    below = f"({second}{metres})" if metres else second
    index.document["dpsynth"] = {"derived": f"{first}{kilograms} / {below} ^ 2"} | extra
    index.comments["dpsynth.derived"] = (
        "computed, not modelled; remove it if the table says otherwise"
    )


def add_length_of_stay(proposals: list[Proposal]) -> None:
    """Declare a stay in whole days by its formula, where admission and discharge occur once.

    Modelled apart, it would contradict the two dates in the same row.
    """
    stay = _only(proposals, "length of stay", ("integer",))
    first, last = (_only(proposals, name, ("date",)) for name in PAIRS[0])
    if stay is None or first is None or last is None:
        return
    extra = stay.document["dpsynth"]
    if extra.get("ucum") != "d" or "role" in extra or "after" not in last.document["dpsynth"]:
        return
    names = ", ".join(quoted(str(one.document["name"])) for one in (first, last))
    stay.document["dpsynth"] = {"derived": f"days({names})"} | extra
    stay.comments["dpsynth.derived"] = (
        "computed, not modelled; remove it if your table counts the days in another way"
    )


def add_hints(proposals: list[Proposal]) -> None:
    """Write what may be declared of a column beside others as comments: a person knows if it holds.

    A pregnancy is asked of women only, a cell of diagnoses may hold several codes, and a death may
    be an outcome that readers predict.
    """
    sex = _only(proposals, "sex", ("string", "boolean", "integer"))
    pregnant = _only(proposals, "pregnant", ("boolean", "string"))
    if sex is not None and pregnant is not None and not pregnant.is_dropped:
        name = quoted(str(sex.document["name"]))
        listed = (sex.document.get("constraints") or {}).get("enum")
        levels = listed if isinstance(listed, list | tuple) else ()
        women = [one for one in levels if compact(str(one), umlauts=False) in SEXES[WOMAN]]
        value = f"'{women[0]}'" if len(women) == 1 and isinstance(women[0], str) else "TODO"
        pregnant.inner.append(f'if only women are asked: present_if: "{name} == {value}"')
    for one in proposals:
        if one.variable is not None and one.variable.name in _OUTCOMES and not one.is_dropped:
            roles = ", ".join(["target", *filter(None, [one.document["dpsynth"].get("role")])])
            one.inner.append(f"if it is an outcome of the table: role: [{roles}]")
        codes = one.document.get("dpsynth", {}).get("codes")
        main = one.variable is not None and one.variable.name == "main diagnosis"
        if codes is not None and not main and "several" not in codes:
            one.inner.append(
                'if a cell holds several codes, add to codes: several: {separator: ";", most: TODO}'
            )


def orders(proposals: list[Proposal]) -> list[str]:
    """Return orders that may always hold, as entries of the list of rules."""
    found = []
    for low, high in _ORDERED:
        pair = [_only(proposals, name, ("integer", "number")) for name in (low, high)]
        if None not in pair:
            names = [quoted(str(one.document["name"])) for one in pair if one is not None]
            found.append(f'order: "{" < ".join(names)}"')
    return found


def drop_encounter_keys(proposals: list[Proposal]) -> None:
    """Drop the numbers of stays where one column is the patient's; else a person chooses."""
    keys = [one for one in proposals if one.variable is not None and one.variable.type == KEY]
    stays = [one for one in keys if str(one.variable and one.variable.name).startswith("encounter")]
    if len(keys) - len(stays) != 1:
        return
    for stay in stays:
        stay.document["dpsynth"] = {"role": "drop"}
        stay.comments["dpsynth.role"] = "names a stay; the patient's number is the unit to protect"


def without_intervals(proposals: list[Proposal]) -> None:
    """Write the intervals as comments, for a schema reader that does not take them."""
    for proposal in proposals:
        extra = proposal.document.get("dpsynth", {})
        if "after" not in extra:
            continue
        after = extra.pop("after")
        unit = "hours" if extra.pop("unit", None) else "days"
        del extra["longest"]
        del proposal.comments["dpsynth.longest"]
        document = proposal.document
        document["constraints"] = {"minimum": TODO, "maximum": TODO}
        document["dpsynth"] = document.pop("dpsynth")
        proposal.inner.append(f"after: {after}, longest: TODO ({_LONGEST}, in {unit})")


def _only(
    proposals: list[Proposal], variable: str, types: tuple[str, ...] = ("date", "datetime")
) -> Proposal | None:
    """Return the only column of this meaning and of one of these types."""
    matches = [
        proposal
        for proposal in proposals
        if proposal.variable is not None
        and proposal.variable.name == variable
        and proposal.document["type"] in types
    ]
    return matches[0] if len(matches) == 1 else None
