"""Several evaluations side by side: what is best in each row, and where that cannot be told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from dpsynth.eval.report import charts, formatting, key_figures
from dpsynth.eval.report.formatting import counted, figure, listed, shown
from dpsynth.eval.report.key_figures import relations
from dpsynth.eval.report.rendering import (
    Block,
    Cell,
    Chart,
    Paragraph,
    Pictures,
    ReportTable,
    Row,
    Section,
)

Document = Mapping[str, Any]
Estimates = Sequence[Mapping[str, Any] | None]

BEST = Markup('<span class="best-mark">★ best</span>')
CLOSE = Markup('<span class="close-mark">≈ not told from best</span>')


def title(documents: Sequence[Document]) -> str:
    """Say what was compared."""
    schema = documents[0].get("schema") or {}
    return str(schema.get("title") or schema.get("name") or "synthetic tables")


def warnings(documents: Sequence[Document], names: Sequence[str]) -> list[str]:
    """Say where evaluations differ in what they are held against, so that figures mislead."""
    tasks = [
        {
            "the schema": (document.get("schema") or {}).get("sha256"),
            "the source": _real(document, "source"),
            "the holdout": _real(document, "holdout"),
            "the seed of the evaluation": document.get("seed"),
            "the version of dpsynth": document.get("dpsynth"),
        }
        for document in documents
    ]
    sentences = []
    for aspect, first in tasks[0].items():
        if other := [n for n, task in zip(names, tasks, strict=True) if task[aspect] != first]:
            sentences.append(
                f"Not the same as of {shown(names[0])}: {aspect}, in {listed(other)}. Figures of "
                "different tasks cannot be compared."
            )
    return sentences


def _real(document: Document, name: str) -> Any:
    table = (document.get("tables") or {}).get(name)
    return table and (table.get("name"), table.get("rows"), table.get("units"))


def summary(documents: Sequence[Document], names: Sequence[str]) -> str:
    """Say which candidate is clearly best most often among the leading measures.

    A measure counts where no other's interval meets that of the best.
    """
    rows = [_row(documents, key) for key in _leading(documents)]
    clear = [best_of(row) for row in rows if not close_to(row, best_of(row))]
    wins = [sum(place in best for best in clear if len(best) == 1) for place in range(len(names))]
    top = max(wins)
    if not top:
        return "No table is clearly better than the others in any headline measure."
    first = listed(name for name, count in zip(names, wins, strict=True) if count == top)
    return (
        f"Clearly best most often: {first}, in {top} of {counted(len(rows), 'headline measure')}."
    )


def _ranks(documents: Sequence[Document]) -> list[tuple[int, int]]:
    """Count for each candidate in how many leading measures it is best, or not told from best."""
    rows = [_row(documents, key) for key in _leading(documents)]
    best = [best_of(row) for row in rows]
    close = [close_to(row, places) for row, places in zip(rows, best, strict=True)]
    return [
        (sum(place in places for places in best), sum(place in places for places in close))
        for place in range(len(documents))
    ]


def best_of(row: Estimates) -> set[int]:
    """Return the places of the figures that are nearest to best; none where fewer than two are.

    >>> best_of([{"value": 0.2, "best": 0.0}, {"value": 0.1, "best": 0.0}, None])
    {1}
    """
    known = {place for place, one in enumerate(row) if one is not None}
    minimum = min((_away(row[place]) for place in known), default=0.0)
    return {p for p in known if _away(row[p]) == minimum} if len(known) > 1 else set()


def close_to(row: Estimates, best: set[int]) -> set[int]:
    """Return the other places whose intervals meet that of one of the best."""
    tops = [estimate for place in best if (estimate := row[place]) is not None]
    return {
        place
        for place, estimate in enumerate(row)
        if place not in best and estimate is not None and any(_meet(estimate, top) for top in tops)
    }


def _away(estimate: Mapping[str, Any] | None) -> float:
    return float("inf") if estimate is None else abs(estimate["value"] - estimate["best"])


def _meet(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    if any(one.get(end) is None for one in (a, b) for end in ("low", "high")):
        return bool(a["value"] == b["value"])
    return bool(a["low"] <= b["high"] and b["low"] <= a["high"])


def overview(documents: Sequence[Document], names: Sequence[str]) -> list[Block]:
    """Return the candidates, their gates, the leading measures, and pictures of them."""
    keys = _leading(documents)
    blocks: list[Block] = [_candidates(documents, names)]
    if keys:
        text = (
            "Each figure has its interval of 95 % in round brackets and its references in square "
            "ones. ★ is the figure nearest to the best that can be; ≈ marks those whose intervals "
            "meet its own, so that the order may be chance."
        )
        blocks += [Paragraph(text), table("Headline measures", documents, names, keys)]
        blocks += _relations(documents, names)
        blocks += _pictures(documents, names, keys)
    return blocks


def _relations(documents: Sequence[Document], names: Sequence[str]) -> list[Block]:
    """List the strongest relations by name, with their strength in each table."""
    listed_relations = [relations(document) for document in documents]
    titles = [[one.title for one in entries] for entries in listed_relations]
    if not titles[0] or any(one != titles[0] for one in titles):  # of different sources
        return []
    first = listed_relations[0]
    held = any(one.holdout is not None for one in first)
    rows = [
        Row(
            (
                one.title,
                figure(one.source),
                *(figure(entries[place].synthetic) for entries in listed_relations),
                *((figure(one.holdout),) if held else ()),
            )
        )
        for place, one in enumerate(first)
    ]
    head = ("Relation", "Real rows", *names, *(("Holdout",) if held else ()))
    return [ReportTable.of("The strongest relations, Cramér's V", head, rows)]


def sections(documents: Sequence[Document], names: Sequence[str]) -> list[Section]:
    """Return all other measures, in groups."""
    every: dict[str, Any] = {}
    for document in documents:
        every = {**(document.get("measures") or {}), **every}
    leading = set(_leading(documents))
    parts = []
    for place, (name, group) in enumerate(key_figures.every(every)):
        if keys := [one.key for one in group if one.key not in leading]:
            blocks = (table(f"{name}: other measures", documents, names, keys),)
            text = counted(len(keys), "measure")
            parts.append(Section(f"group-{place}", f"{name}: other measures", text, blocks))
    meanings = {one["title"]: one.get("meaning") or "" for one in every.values()}
    rows = tuple(Row((name, text)) for name, text in meanings.items() if text)
    if rows:
        words = ReportTable("What each measure means", ("Measure", "Meaning"), rows)
        parts.append(Section("glossary", "How to read this", "each measure's meaning", (words,)))
    return parts


def _leading(documents: Sequence[Document]) -> list[str]:
    keys: dict[str, None] = {}
    for document in documents:
        for _, group in key_figures.leading(document.get("measures") or {}):
            keys |= dict.fromkeys(one.key for one in group)
    order = [family for families in key_figures.LEADING.values() for family in families]
    return sorted(keys, key=lambda key: order.index(formatting.family(key)))


def _row(documents: Sequence[Document], key: str) -> list[Mapping[str, Any] | None]:
    return [(document.get("measures") or {}).get(key) for document in documents]


def table(
    caption: str, documents: Sequence[Document], names: Sequence[str], keys: Sequence[str]
) -> ReportTable:
    """Return measures as lines and candidates as columns, the best of each line marked."""
    rows = []
    for key in keys:
        row = _row(documents, key)
        best = best_of(row)
        close = close_to(row, best)
        name = next(one["title"] for one in row if one is not None)
        cells = [_cell(key, one, p in best, p in close) for p, one in enumerate(row)]
        rows.append(Row((name, *cells)))
    return ReportTable.of(caption, ("Measure", *names), rows)


def _cell(key: str, estimate: Mapping[str, Any] | None, best: bool, close: bool) -> Cell:
    if estimate is None:
        return "–"
    value, references = formatting.measure(key, estimate)
    mark = BEST if best else CLOSE if close else ""
    strong = Markup("<strong>{}</strong>").format(value) if best else value
    return Markup('{}<span class="references">{}</span>{}').format(strong, references, mark)


def _candidates(documents: Sequence[Document], names: Sequence[str]) -> ReportTable:
    rows = []
    for name, document, rank in zip(names, documents, _ranks(documents), strict=True):
        run, synthetic = document.get("run") or {}, (document.get("tables") or {}).get("synthetic")
        gates = document.get("gates") or []
        failed = sum(gate["passed"] is False for gate in gates)
        text = f"✗ {failed} of {len(gates)} failed" if failed else f"✓ none of {len(gates)} failed"
        cells = (name, str(run.get("model") or "another tool"), _plain(run.get("epsilon")))
        size = figure((synthetic or {}).get("rows"))
        sha = str((synthetic or {}).get("sha256") or "–")[:12]
        counts = (figure(rank[0]), figure(rank[1]), text if gates else "no gates")
        rows.append(Row((*cells, size, *counts, sha)))
    head = ["Candidate", "Model", "Epsilon", "Rows", "Best in", "Not told from best in"]
    head += ["Internal gates", "SHA-256, first 12"]
    return ReportTable.of("Candidates", head, rows)


def _plain(value: float | None) -> str:
    return "none known" if value is None else f"{value:g}"


def _pictures(
    documents: Sequence[Document], names: Sequence[str], keys: Sequence[str]
) -> list[Block]:
    """Return error against epsilon where it varies within a model, else marks side by side."""
    runs = [document.get("run") or {} for document in documents]
    epsilons = {run.get("epsilon") for run in runs} - {None}
    figures = []
    lines = len(epsilons) > 1 and all(run.get("epsilon") for run in runs)
    for key in keys:
        row = _row(documents, key)
        known = [place for place, one in enumerate(row) if one is not None]
        name = next(one["title"] for one in row if one is not None)
        values = ", ".join(f"{shown(names[p])} {formatting.estimate(row[p])}" for p in known)
        label = f"{name}: {values}"
        if lines:
            spec = charts.against_epsilon(_lines(runs, names, row))
            figures.append(Chart(name, f"Against epsilon, {label}", spec, 270))
        else:
            height = 60 + 30 * len(names)
            figures.append(Chart(name, label, charts.candidates(names, row), height))
    marks = "what they are held against: a holdout, or a model trained on the source"
    text = f"Circles are the candidates with their intervals, open diamonds {marks}."
    if lines:
        text = f"Each measure against epsilon, with intervals; the dotted line is {marks}."
    return [Paragraph(text), Pictures(tuple(figures), "small")]


def _lines(
    runs: Sequence[Mapping[str, Any]], names: Sequence[str], row: Estimates
) -> dict[str, list[tuple[float, str, Mapping[str, Any]]]]:
    """Group figures by model, in the order of epsilon."""
    lines: dict[str, list[tuple[float, str, Mapping[str, Any]]]] = {}
    for run, name, estimate in zip(runs, names, row, strict=True):
        if estimate is not None:
            lines.setdefault(str(run.get("model")), []).append((run["epsilon"], name, estimate))
    return {model: sorted(points, key=lambda point: point[0]) for model, points in lines.items()}
