"""Attacks on a synthetic table in the internal report: copies, and who was in the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpsynth.eval.report import (
    Block,
    Chart,
    Expandable,
    Heading,
    Lines,
    Paragraph,
    Pictures,
    ReportTable,
    Row,
    Section,
    attack_charts,
    auc,
    audit_formatting,
    counted,
    estimate,
    excess,
    figure,
    level,
    listed,
    percent,
    rate,
)

Details = Mapping[str, Any]

SMOKE = (
    "A smoke test only. Distances and copies show careless generators; they neither detect nor "
    "bound what a table gives away: a table that passes may still leak (arXiv 2505.01524, "
    "2312.05114)."
)
SIDES = ("People in the data", "Other people")
BEYOND = "In the data beyond others"


@dataclass(frozen=True)
class Curves(Pictures):
    """Pictures of curves with a key that names each line, in the order of its style.

    Attributes:
        lines: names of the curves.
        claimed: whether what a claim rules out is shaded.
    """

    lines: tuple[str, ...] = ()
    claimed: bool = False


def memorization(audit: Details) -> Section | None:
    """Return copies, distances, unique records and outliers."""
    details = (audit.get("parts") or {}).get("memorization") or {}
    if not details:
        return None
    blocks = _distances(details, audit.get("measures") or {}) + _copies(details.get("copies") or [])
    blocks += _unique(details.get("unique") or []) + _outliers(details.get("outliers") or {})
    if not blocks:
        return None
    first: list[Block] = [
        Paragraph(
            "The attacker has the synthetic table alone and takes its rows for real people: does "
            "it repeat people in the data, or come closer to them than to other people?"
        ),
        Paragraph(SMOKE, "warning"),
    ]
    if details.get("units") and details.get("rows"):
        first.append(Paragraph(_compared(details)))
    finding = f"{audit_formatting.outcome(audit, 'memorization')} (a smoke test)"
    return Section("memorization", "Copies and near copies", finding, (*first, *blocks))


def _compared(details: Details) -> str:
    rows = details["rows"]
    return (
        f"{counted(details['units'], 'person').replace('persons', 'people')} in the data and as "
        f"many other people, from the holdout, are compared with "
        f"{counted(rows['synthetic'], 'synthetic row')}; they have {rows['source']:,} and "
        f"{rows['holdout']:,} rows."
    )


def _distances(details: Details, measures: Details) -> list[Block]:
    blocks: list[Block] = []
    closest = measures.get("closer")
    if closest is not None:
        value, low, high = (percent(closest[name]) for name in ("value", "low", "high"))
        blocks.append(
            Paragraph(
                f"{value} ({low}–{high}) of synthetic rows are closer to a person in the data than "
                "to any of as many other people. Without memorisation it is about half of them."
            )
        )
    if (histogram := details.get("histogram")) and histogram.get("edges"):
        title = "How far synthetic rows are from real people"
        label = (
            "Distances of synthetic rows to the nearest person in the data and to the nearest of "
            "other people; without memorisation the two outlines are alike"
        )
        spec = attack_charts.distances(histogram)
        blocks.append(Pictures((Chart(title, label, spec, 280),), "half", key="sides"))
    if quantiles := details.get("distances"):
        blocks.append(_quantiles("Distance to the closest record (the nearest person)", quantiles))
    if blocks:
        blocks.insert(0, Heading("Distances"))
    if quantiles := details.get("ratios"):
        text = Paragraph(
            "The distance to the nearest person, divided by that to the second nearest: near 0 a "
            "row clings to one person, near 1 it lies between several."
        )
        table = _quantiles("Nearest over second nearest person", quantiles)
        blocks.append(Expandable("Ratios of distances", (text, table)))
    return blocks


def _quantiles(caption: str, at: Details) -> ReportTable:
    rows = [
        Row((level(share), figure(float(source)), figure(float(other))))
        for share, source, other in zip(at["levels"], at["source"], at["holdout"], strict=True)
    ]
    return ReportTable.of(caption, ("Share of synthetic rows below", *SIDES), rows)


def _copies(copies: Sequence[Details]) -> list[Block]:
    if not copies:
        return []
    rows = [Row((one["what"], *success(one["success"]))) for one in copies]
    caption = "Rows and people that are repeated, with intervals of 95 %"
    return [Heading("Copies"), Lines.of(caption, ("What", *SIDES, BEYOND), rows)]


def success(entry: Details) -> tuple[Any, Any, str]:
    """Return the cells of a success: in the data, others, and what is beyond."""
    return rate(entry["members"]), rate(entry["controls"]), excess(entry["excess"])


def _unique(records: Sequence[Details]) -> list[Block]:
    if not records:
        return []
    rows = [Row((listed(record["columns"], 9), *success(record["success"]))) for record in records]
    intro = Paragraph(
        "Some people are alone with a combination of columns that others may know, so that they "
        "can be found in another register. Does a synthetic row repeat the combination together "
        "with what nobody else knows?"
    )
    caption = "People who are alone with a combination, and repeated with what it gives away"
    return [Heading("Unique people"), intro, Lines.of(caption, ("Columns", *SIDES, BEYOND), rows)]


def _outliers(part: Details) -> list[Block]:
    heading = Heading("Unusual people")
    text = "The people whom nobody else resembles, as far as other people's rows tell. "
    if part.get("auc"):
        return [
            heading,
            Paragraph(
                f"{text}That a synthetic row is closer to one of them who is in the data than to "
                f"one who is not has the chance {auc(part['auc'])}; without memorisation it is 0.5."
            ),
        ]
    if part.get("success"):
        row = Row(("A synthetic row comes close", *success(part["success"])))
        return [
            heading,
            Paragraph(text),
            Lines.of("Unusual people", ("What", *SIDES, BEYOND), [row]),
        ]
    return []


def membership(audit: Details) -> Section | None:
    """Return how well attackers tell who was in the data."""
    details = (audit.get("parts") or {}).get("membership") or {}
    attacks = details.get("attacks") or []
    if not attacks:
        return None
    ceiling = details.get("ceiling") or None
    blocks: list[Block] = [
        Paragraph(
            "The attacker has the synthetic table and the whole record of somebody, knows other "
            "people of the same population, and tries to tell whether that somebody is in the data."
        )
    ]
    if details.get("members") and details.get("strangers"):
        known = details.get("reference")
        also = f"; the attacker knows {known:,} more" if known else ""
        blocks.append(
            Paragraph(
                f"{details['members']:,} people in the data and {details['strangers']:,} other "
                f"people were attacked{also}."
            )
        )
    blocks += _curves(attacks, ceiling)
    blocks.append(_areas(audit, attacks))
    if ceiling is not None:
        blocks.append(Paragraph(_allowed(ceiling)))
    finding = audit_formatting.outcome(audit, "membership")
    return Section("membership", "Was somebody in the data?", finding, tuple(blocks))


def _curves(attacks: Sequence[Details], ceiling: Details | None) -> list[Block]:
    everyone = [
        one for one in attacks if one["group"] == "everyone" and (one.get("roc") or {}).get("fpr")
    ]
    if not everyone:
        return []
    ones = [
        attack_charts.RocLine(
            one["title"], one["roc"]["fpr"], one["roc"]["tpr"], 1 / max(1, one["strangers"])
        )
        for one in everyone
    ]
    return [Paragraph(READING), roc("Attackers of everyone", ones, (ceiling or {}).get("roc"))]


READING = (
    "How to read the curves: an attacker may name few people and be sure, or many and err often. "
    "To the right, more other people are named wrongly; upwards, more people in the data. Both "
    "scales go in steps of ten, because naming a few people with certainty is the worst leak. On "
    "the dotted diagonal the attacker only guesses."
)


CHANCE = (
    "Far to the left a curve rests on few people and may stray into the shade by chance; only a "
    "test says whether the claim is refuted."
)


def roc(
    title: str,
    ones: Sequence[attack_charts.RocLine],
    ceiling: Details | None,
    table: ReportTable | None = None,
) -> Curves:
    """Return a picture of curves with its key."""
    label = f"{title}: rates of people named in the data and of others, on logarithmic scales"
    spec = attack_charts.curves(ones, ceiling)
    words = CHANCE if ceiling is not None else ""
    picture = Chart(title, label, spec, 400, most=720, figures=words, table=table)
    names = tuple(one.name for one in ones)
    return Curves((picture,), "wide", "", names, ceiling is not None)


def rates_at(attacks: Sequence[Details]) -> list[float]:
    """Return the rates of false alarms at which some attack was judged."""
    return sorted({float(one["fpr"]) for attack in attacks for one in attack.get("rates") or []})


def named_at(attack: Details, alarm: float) -> Any:
    """Return the cell of people named at a rate of false alarms, with its counts."""
    for entry in attack.get("rates") or []:
        if float(entry["fpr"]) == alarm:
            wrong = entry.get("false")
            note = f"; wrongly {wrong['hits']:,} of {wrong['runs']:,}" if wrong else ""
            return rate(entry["tpr"], note)
    return "–"


def _areas(audit: Details, attacks: Sequence[Details]) -> ReportTable:
    """Return a line for each attack on each group."""
    alarms = rates_at(attacks)
    rows = []
    for entry in attacks:
        key = f"membership:{entry['key']}"
        hit = audit_formatting.found(audit, key) and entry["auc"]["low"] > 0.5
        name = f"{entry['title']}: {entry['group_title']}" + (" (beyond chance)" if hit else "")
        people = f"{entry['members']:,} / {entry['strangers']:,}"
        cells = [named_at(entry, alarm) for alarm in alarms]
        rows.append(Row((name, people, auc(entry.get("auc")), *cells), hit))
    named = [f"Named at {level(alarm)} false alarms" for alarm in alarms]
    head = ("Attack: on whom", "In the data / others", "AUC (interval)", *named)
    caption = "Attackers by group, with intervals of 95 %; an AUC of 0.5 is guessing, 1 never wrong"
    return Lines.of(caption, head, rows)


def _allowed(ceiling: Details) -> str:
    rates = ", ".join(
        f"{percent(one['tpr'])} of people in the data at {level(one['fpr'])} false alarms"
        for one in ceiling.get("rates") or []
    )
    area = f"an AUC of at most {estimate({'value': ceiling['auc']}, 3)}"
    return (
        f"The claim of epsilon {audit_formatting.epsilon(ceiling['epsilon'])} allows {area}"
        + (f", and to name at most {rates}" if rates else "")
        + ". What lies above contradicts the claim; what lies below is possible under it."
    )
