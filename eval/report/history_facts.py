"""Facts of histories in words: where synthetic patients differ most, and what may help.

The document of an evaluation holds the largest differences of each set of facts in plain units
(see `dpsynth.eval.longitudinal`). Nothing else of real patients is read here. What may help was not
tried: it follows from the kind of a difference and from what the run was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpsynth.eval.report.formatting import counted, figure, percent, shown, value_text
from dpsynth.eval.report.rendering import (
    Block,
    Heading,
    Paragraph,
    ReportTable,
    Row,
    Section,
)

Document = Mapping[str, Any]

WORST = 5  # differences that the answer names
MUCH_EPSILON = 10.0  # epsilon from which more promises almost nothing
MANY_CODES = 40  # of which fewer may help
WORTH = 0.02  # differences from which on a declaration may help
NOISY = ("values", "panels", "prevalence", "effects", "event_curves", "coefficients")
"""Facts that are learned from noisy counts, so that less noise brings them nearer."""
FEW, NOBODY = "few patients", "no patient"
KEPT = (
    "A rule that the schema does not declare is not kept, whatever its share is here: the next "
    "table that is drawn may break it."
)


def facts_of(document: Document) -> list[Document]:
    """Return the sets of facts of an evaluation of histories."""
    return list((document.get("parts") or {}).get("facts") or [])


def sentence(entry: Document) -> str:
    """Say a difference with both numbers, and that of a bootstrap.

    >>> sentence({"name": "potassium, third value: median", "unit": "mmol/l", "synthetic": [5.1],
    ...           "source": [4.2], "chance": [4.25]})
    'potassium, third value: median: 5.1 mmol/l; source 4.2 mmol/l, bootstrap 4.25 mmol/l'
    """
    drawn, real, chance = (_numbers(entry, side) for side in ("synthetic", "source", "chance"))
    return f"{shown(entry['name'])}: {drawn}; source {real}, bootstrap {chance}"


def _numbers(entry: Document, side: str) -> str:
    missing = NOBODY if side == "synthetic" else FEW
    return " and ".join(_number(one, str(entry["unit"]), missing) for one in entry[side])


def _number(value: float | None, unit: str, missing: str) -> str:
    if value is None:
        return missing
    if unit == "share":
        return percent(value)
    text = value_text({"type": "number"}, float(f"{value:.4g}")).replace("-", "−")
    return f"{text} {shown(unit)}".strip()


def largest_differences(document: Document, count: int = WORST) -> list[str]:
    """Return the largest difference of each set of facts that fails its gate, in sentences."""
    return [text for _, _, text in failures(document)[:count]]


def failures(document: Document) -> list[tuple[str, float, str]]:
    """Return each set whose gate fails: title, times a bootstrap, and its largest difference."""
    failed = [gate["key"] for gate in document.get("gates") or [] if gate["passed"] is False]
    found = []
    for facts in facts_of(document):
        clear = [one for one in facts["largest"] if one["clear"]]
        if facts["key"] in failed and clear:
            entry = document["measures"][facts["key"]]
            beside = max(float(entry["chance"] or 0.0), 1e-3)
            found.append((str(facts["title"]), entry["value"] / beside, sentence(clear[0])))
    return sorted(found, key=lambda one: -one[1])


def helps(document: Document) -> list[str]:
    """List what may help, from the kinds of differences; a sentence each, none twice."""
    broken = (document.get("parts") or {}).get("broken") or {}
    if any(one["synthetic"] > one["source"] for one in broken.get("rules") or []):
        first = "Confirm rules without a new fit (dpsynth rules RUN), and draw again with --rules."
    else:
        first = ""
    found = dict.fromkeys([first] if first else []) | dict.fromkeys(
        str(one["help"])
        for facts in facts_of(document)
        for one in facts["largest"]
        if one["help"] and one["clear"] and one["apart"] >= WORTH
    )
    failed = {gate["key"] for gate in document.get("gates") or [] if gate["passed"] is False}
    epsilon = (document.get("run") or {}).get("epsilon")
    if failed & set(NOISY) and epsilon is not None and epsilon < MUCH_EPSILON:
        more = "less noise, and a weaker guarantee for every patient."
        found[f"More epsilon than {float(epsilon):g}: {more}"] = None
    codes = sum(one["count"] for one in facts_of(document) if one["key"] == "prevalence")
    if failed & {"prevalence", "effects"} and codes > MANY_CODES:
        text = "Fewer codes: leave out columns and tests that no analysis needs, and group rare "
        found[f"{text}codes. All of them share one budget."] = None
    return list(found)


def overview(document: Document) -> list[Row]:
    """Return a line for each set of facts: its figure, and that of a bootstrap."""
    verdicts = {gate["key"]: gate["passed"] for gate in document.get("gates") or []}
    words = {True: "passed", False: "failed", None: "not judged"}
    rows = []
    for facts in facts_of(document):
        entry = document["measures"][facts["key"]]
        value, chance, holdout = entry["value"], entry["chance"], entry["reference"]
        times = "–" if not chance else f"{value / chance:.1f}"
        cells = (str(facts["title"]), figure(value), figure(chance), times, figure(holdout))
        rows.append(Row((*cells, words[verdicts.get(facts["key"])])))
    return rows


def section(document: Document) -> Section | None:
    """Return the facts, and the largest differences of each."""
    every = facts_of(document)
    if not every:
        return None
    head = ("Facts", "Synthetic", "Bootstrap", "Times", "Holdout", "Internal gate")
    text = (
        "Each figure is a mean difference from the source; 0 is best. The bootstrap draws as many "
        "patients of the source with replacement, and is what a perfect generator would reach."
    )
    blocks: list[Block] = [
        Paragraph(text),
        ReportTable.of("Facts of patients, beside a bootstrap", head, overview(document)),
        Heading("Where they differ most"),
        Paragraph(
            "Only differences beyond three standard errors are listed, each subject once. "
            f"“{FEW}” stands for a number that would tell of fewer than 10 patients of the source."
        ),
    ]
    for facts in every:
        blocks += _of_set(facts)
    failed = len(failures(document))
    finding = (
        f"{counted(failed, 'set')} of {len(every)} beyond the gates"
        if failed
        else "within the gates"
    )
    return Section("facts", "Facts, and where they differ most", finding, tuple(blocks))


def _of_set(facts: Document) -> Iterator[Block]:
    """Yield the differences of a set; of what declarations may keep, all that was measured."""
    title = str(facts["title"])
    may_be_kept = facts["key"] == "links"
    if may_be_kept:
        yield Paragraph(KEPT)
    if not facts["largest"]:
        yield Paragraph(f"{title}: no clear difference.")
        return
    head = ["Fact", "synthetic", "source", "bootstrap"]
    rows = []
    for entry in facts["largest"]:
        sides = (_numbers(entry, side) for side in ("synthetic", "source", "chance"))
        cells = [shown(entry["name"]), *sides]
        if may_be_kept:
            cells.append({True: "yes", False: "no", None: "–"}[entry["declared"]])
        rows.append(Row(tuple(cells)))
    table = ReportTable.of(title, (*head, "declared") if may_be_kept else tuple(head), rows)
    yield table
    if kept := _kept(facts):
        yield Paragraph(kept)


def _kept(facts: Document) -> str:
    """Say how much of effects is left, in one sentence."""
    words: Sequence[tuple[str, str]] = (
        ("kept_means", "differences of values"),
        ("kept_odds", "relations of codes"),
    )
    parts = [
        f"of {name} {percent(max(0.0, facts[key]['synthetic']))}"
        for key, name in words
        if key in facts and facts[key]["synthetic"] is not None
    ]
    return f"Size that is left, {', '.join(parts)}." if parts else ""
