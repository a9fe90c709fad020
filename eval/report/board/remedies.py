"""What may help: from what was measured, and from what the run was asked for.

None of it was tried on these rows, and the page says so. A new fit is charged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth.errors import InputError
from dpsynth.eval.report.board.differences import Difference
from dpsynth.eval.report.board.figures import listing, part
from dpsynth.eval.report.board.uses import CARE, UNFIT, Use
from dpsynth.eval.report.formatting import listed, percent, shown
from dpsynth.schema import Rule, ordered

Details = Mapping[str, Any]

MUCH = 10.0  # epsilon from which more promises almost nothing
PAIRS = 3  # of columns whose combinations no real row has
MANY = 20  # columns among which a budget is thin
FEW_PEOPLE = 5_000  # in the source
UNITS = {"date": "d", "datetime": "h"}  # of a gap to a column of the type
CALENDAR_PARTS = ("weekday", "month", "hour")
WITHOUT_RELATIONS = "independent"  # the model that keeps none


def remedies(document: Details, uses: Sequence[Use], worst: Sequence[Difference]) -> list[str]:
    """List what may help where the table is not fit, the likeliest first; a sentence each."""
    weak = {one.key for one in uses if one.verdict in (CARE, UNFIT)}
    candidates = _candidates(document)
    if not weak:
        return candidates
    columns = part(document, "fidelity").get("columns") or []
    kinds = {str(column["name"]): column for column in columns}
    ways = candidates
    run = document.get("run") or {}
    if run.get("model") == WITHOUT_RELATIONS and weak & {"pairs", "prediction", "effects"}:
        ways.append("Another model: independent draws each column alone and keeps no relation.")
    dates = {str(one["name"]): one["type"] for one in columns if one.get("type") in UNITS}
    if len(dates) > 1:
        ways.append(_interval(document, dates))
    if len(columns) > MANY:
        ways.append(
            f"Fewer columns: {len(columns)} share one budget; leave out those that no analysis "
            "needs (role drop)."
        )
    wide = [
        shown(name)
        for one in worst
        if one.kind in ("column", "end")
        for name in one.columns
        if (kinds.get(name) or {}).get("kind") == "numeric"
    ]
    if wide:
        ways.append(
            f"Wider bins or narrower public bounds for {listed(wide, 3)} (step, minimum and "
            "maximum in the schema)."
        )
    if "rare" in weak:
        ways.append("Rare categories together: a roll-up of codes, or fewer categories.")
    epsilon, people = run.get("epsilon"), (document.get("tables") or {}).get("source") or {}
    if epsilon is not None and epsilon < MUCH:
        ways.append(
            f"More epsilon than {float(epsilon):g}: less noise, and a weaker guarantee for every "
            "patient."
        )
    units = people.get("units") or people.get("rows")
    if units is not None and units < FEW_PEOPLE:
        ways.append(f"More patients than {units:,}: the same noise weighs less among more of them.")
    return ways


def _candidates(document: Details) -> list[str]:
    """Name combinations that no real row has; whether they are impossible, a person decides."""
    shares = [
        f"{percent(one['share'])} of the synthetic rows ({shown(one['columns'][0])} with "
        f"{shown(one['columns'][1])}), mostly {shown(one['columns'][0])} {shown(one['bins'][0])} "
        f"and {shown(one['columns'][1])} {shown(one['bins'][1])}"
        for one in _named(part(document, "fidelity").get("unseen") or [])[:PAIRS]
    ]
    if not shares:
        return []
    return [
        "A rule (rules: in the schema), if these combinations are impossible; no real row has "
        f"them, though chance alone would give many: {'; '.join(shares)}."
    ]


def _named(unseen: Sequence[Details]) -> list[Details]:
    """Return those whose columns a rule can name: no place of a set, and no part of a date.

    >>> _named([{"columns": ["ward", "codes: 2"]}, {"columns": ["ward", "sex"]}])
    [{'columns': ['ward', 'sex']}]
    """

    def is_part(name: str) -> bool:
        base, _, last = name.rpartition(": ")
        number = last.removeprefix("code ")
        return bool(base) and (number.isdigit() or last in CALENDAR_PARTS)

    return [one for one in unseen if not any(is_part(str(name)) for name in one["columns"])]


def _interval(document: Details, dates: Mapping[str, str]) -> str:
    """Name the two dates, and the keys that make an interval of the later one.

    A rule tells which is the later one; without a rule it is the one that the schema names later.
    """
    pairs = [pair for rule in listing(document, "rules") for pair in _pairs(rule)]
    known = next((pair for pair in pairs if set(pair) <= set(dates)), None)
    first, last = known or list(dates)[:2]
    keys = f"after: {shown(first)}, longest: 90, unit: {UNITS[dates[last]]}, bounds_basis: ..."
    says = "" if known else f", if it never lies before {shown(first)}"
    return (
        f"An interval for two dates: declare {shown(last)} by its distance after {shown(first)}"
        f"{says}. In the schema, remove minimum and maximum of {shown(last)} and write "
        f"dpsynth: {{{keys}}}; put the longest time that your protocol allows in place of 90."
    )


def _pairs(rule: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the pairs of columns that a rule of a document orders; none if it cannot be read."""
    try:
        return list(ordered(Rule.parse(str(rule.get("rule") or rule.get("text") or "")).tree))
    except InputError:
        return []
