"""What may be shown to anybody: synthetic histories, and no figure of a real row.

It is made from `dpsynth.eval.longitudinal.synthetic_pictures` alone. With the counts and curves of
an evaluation, the same pictures show real patients beside synthetic ones; those are internal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth.eval.longitudinal import count_labels, gap_labels
from dpsynth.eval.report import (
    Block,
    Chart,
    Expandable,
    Paragraph,
    Pictures,
    Section,
    charts,
    counted,
    percent,
)

Details = Mapping[str, Any]
SMALL = 230  # height of a small picture, in pixels
FIRST = 6  # pictures before the others


def samples(whole: Details) -> Section | None:
    """Return synthetic patients drawn by chance, a line each."""
    if not whole["samples"]:
        return None
    count = len(whole["samples"])
    text = (
        "Each line is a synthetic patient, drawn by chance. The grey bar is her follow-up"
        if whole["timed"]
        else "Each line is a synthetic patient, drawn by chance. The grey bar holds her rows"
    )
    text += ", a tick is a row, and another mark is an event. "
    text += "The rows of each table have a lane of their own, in the order of the legend. "
    text += "None of them is a real person."
    label = f"{counted(count, 'synthetic patient')} with the rows and events of each"
    height = 190 + charts.line_height(whole) * count
    title = counted(count, "synthetic patient")
    picture = Chart(title, label, charts.followed(whole), height)
    blocks: tuple[Block, ...] = (Paragraph(text), Pictures((picture,), "wide"))
    return Section("samples", "Sample patients", counted(count, "synthetic patient"), blocks)


def courses(whole: Details, bands: Sequence[Details] = ()) -> Section | None:
    """Return how values of synthetic patients develop; with quantiles of real ones if given."""
    real = {(one["series"], one["column"]): one["source"] for one in bands}
    figures = []
    for entry in whole["courses"]:
        band = real.get((entry["series"], entry["column"]))
        label = f"{entry['title']} of {counted(len(entry['lines']), 'synthetic patient')} in time"
        spec = charts.courses(entry, whole, band)
        figures.append(Chart(entry["title"], label, spec, 300))
    if not figures:
        return None
    text = "Thin lines are synthetic patients, drawn by chance among those with several rows. "
    text += "The strong line is the median of all synthetic patients."
    if whole.get("values", 0) > len(figures):
        text += f" These are {len(figures)} of {whole['values']} values that are numbers."
    if bands:
        text += " The dashed line is the median of real patients; 8 of 10 of their values lie in "
        text += "the shaded band. No real patient is drawn."
    blocks: tuple[Block, ...] = (Paragraph(text), Pictures(tuple(figures), "half"))
    return Section("courses-drawn", "Courses of values", counted(len(figures), "picture"), blocks)


def counts(entries: Sequence[Details], key: str = "") -> list[Block]:
    """Return histograms of rows per patient and of days between rows."""
    blocks: list[Block] = []
    for what, title, labels in (
        ("rows", "rows per patient", count_labels()),
        ("gaps", "days between two rows", gap_labels()),
    ):
        known = [one for one in entries if one.get(what)]
        figures = [
            Chart(
                f"{one['title']}: {title}",
                f"{one['title']}: shares by {title}",
                charts.histogram(labels, one[what]),
                SMALL,
            )
            for one in known
        ]
        blocks += folded(figures, key if not blocks else "", "histogram")
    return blocks


def folded(figures: Sequence[Chart], key: str, noun: str, size: str = "small") -> list[Block]:
    """Show the first pictures, and the others on demand."""
    if not figures:
        return []
    blocks: list[Block] = [Pictures(tuple(figures[:FIRST]), size, key)]
    if rest := tuple(figures[FIRST:]):
        blocks.append(Expandable(f"{counted(len(rest), noun)} more", (Pictures(rest, size),)))
    return blocks


def curve(entry: Details) -> Chart:
    """Return the picture of a Kaplan-Meier curve, with that of real patients if there is one."""
    event = str(entry["event"])
    group = f"{entry['group']} = {entry['level']}" if entry.get("group") else "all patients"
    years = [day / charts.YEAR for day in entry["times"]]
    spec = charts.survival({**entry, "times": years}, "years since day 0")
    lowest = min(entry["synthetic"] + (entry.get("source_low") or entry.get("source") or []))
    spec["layout"]["yaxis"] |= {"range": [max(0.0, lowest - 0.1 * (1 - lowest) - 0.005), 1.005]}
    spec["layout"]["yaxis"] |= {"title": {"text": ""}, "nticks": 5}
    spec["layout"]["yaxis"]["tickformat"] = ".0%" if lowest < 0.9 else ".1%"
    last = f"synthetic {percent(entry['synthetic'][-1])}"
    if entry.get("source"):
        last += f", source {percent(entry['source'][-1])}"
    label = f"Share without {event}, {group}; at the end {last}"
    return Chart(f"{event}, {group}", label, spec, SMALL)


def sections(whole: Details) -> list[Section]:
    """Return the sections of a page for anybody."""
    drawn: list[Block] = counts(whole["counts"])
    parts = [samples(whole), courses(whole)]
    if drawn:
        note = Paragraph("Shares of synthetic patients, and of the steps from one row to the next.")
        title = "Rows, and days between them"
        parts.append(
            Section("counts", title, counted(len(whole["counts"]), "series"), (note, *drawn))
        )
    if whole["curves"]:
        note = Paragraph(
            "Share of synthetic patients without the event, by Kaplan and Meier; of those who had "
            "not had it on day 0. The axis is cut."
        )
        figures = folded([curve(one) for one in whole["curves"]], "", "curve")
        title = "Time to events"
        parts.append(
            Section("events", title, counted(len(whole["curves"]), "curve"), (note, *figures))
        )
    return [part for part in parts if part is not None]
