"""The first look at an evaluation: which measures lead, and what the internal gates say.

Facts that a reader checks first: what never happens, what is strong, and which way effects go.

Each has the figure of the synthetic table and, beside it, that of real people who took no part (of
a bootstrap of the source, where there is no holdout).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from markupsafe import Markup

from dpsynth.eval.report import formatting, sparklines
from dpsynth.eval.report.formatting import figure, percent, shown

# Families of measures in the order of reading; those in the first look come first.
FACTS = (
    *("never", "never_rows", "edits", "seldom", "strongest", "levels", "patterns_unseen"),
    *("effects", "signs"),
)
LEADING = {
    "Facts": FACTS,
    "Fidelity": (
        "tvd1",
        "tvd2",
        "tvd3",
        "correlation",
        "information",
        "missing",
        "queries",
        "c2st",
    ),
    "Usefulness": ("tstr", "tstr_linear", "odds", "importance", "group_means", "survival"),
    "Subgroups and rules": ("subgroup_worst_tvd2", "subgroup_worst_tstr", "rules", "copies"),
}
_REST = {
    "Fidelity": (
        "patterns",
        "heaping",
        "tails",
        "outside",
        "outside_worst",
        "followed_worst",
        "followed_correlation",
        "mean_worst",
        "reach_worst",
        "queries_worst",
        "sdmetrics_quality",
        "sdmetrics_shapes",
        "sdmetrics_pairs",
        "sdmetrics_diagnostic",
    ),
    "Usefulness": ("tstr_gap", "tstr_linear_gap", "calibration", "cox"),
}
OF_COLUMNS = ("tvd1:", "followed:", "mean:", "reach:")
_SAME = 0.1  # a distance that differs less from the holdout's is called the same


@dataclass(frozen=True)
class Shown:
    """A measure as the page shows it.

    Attributes:
        key: by which scripts know it.
        title: a few words.
        value: the figure with its interval.
        references: what it is held against, in brackets.
        verdict: how far it is from best, beside the holdout; empty where that says nothing.
        strip: the same as a small picture.
        n: rows or units that it was computed from.
        meaning: one plain sentence.
    """

    key: str
    title: str
    value: str
    references: str
    verdict: str
    strip: Markup
    n: int | None
    meaning: str


@dataclass(frozen=True)
class GateVerdict:
    """What one internal gate says: a word, a sign, a figure and its limit."""

    word: str
    sign: str
    title: str
    figures: str
    reason: str


def show(key: str, entry: Mapping[str, Any]) -> Shown:
    """Prepare a measure for the page."""
    value, references = formatting.measure(key, entry)
    parts = (value, references, _verdict(key, entry), sparklines.score(entry))
    return Shown(key, entry["title"], *parts, entry.get("n"), entry.get("meaning", ""))


def leading(measures: Mapping[str, Any]) -> list[tuple[str, list[Shown]]]:
    """Return the measures of the first look, in groups; a group without any is left out."""
    groups = [(title, _of(measures, families)) for title, families in LEADING.items()]
    return [(title, group) for title, group in groups if group]


def every(measures: Mapping[str, Any]) -> list[tuple[str, list[Shown]]]:
    """Return all measures in groups: those of the page's order first, single columns last."""
    groups, keys = [], set()
    for title, families in LEADING.items():
        group = _of(measures, families + _REST.get(title, ()))
        groups.append((title, group))
        keys |= {one.key for one in group}
    columns = [show(key, one) for key, one in measures.items() if key.startswith(OF_COLUMNS)]
    keys |= {column.key for column in columns}
    other = [show(key, one) for key, one in measures.items() if key not in keys]
    groups += [("Others", other), ("Column by column", columns)]
    return [(title, group) for title, group in groups if group]


def _of(measures: Mapping[str, Any], families: tuple[str, ...]) -> list[Shown]:
    return [
        show(key, one)
        for name in families
        for key, one in measures.items()
        if key == name or (name != "tvd1" and key.startswith(f"{name}:"))
    ]


def _verdict(key: str, entry: Mapping[str, Any]) -> str:
    """Say how the distance from best compares with the holdout's."""
    reference = entry.get("reference")
    if reference is None or formatting.reference_name(key) != formatting.HOLDOUT:
        return ""
    best = float(entry["best"])
    away, reference_away = abs(entry["value"] - best), abs(reference - best)
    if away <= reference_away * (1 + _SAME):
        return "as near as a holdout"
    low, high = entry.get("low"), entry.get("high")
    if low is not None and high is not None and low <= reference <= high:
        return "no clear difference"
    if reference_away <= 0.01 * away:
        return ""
    return f"{away / reference_away:.{1 if away < 10 * reference_away else 0}f} times as far"


def verdicts(gates: list[Mapping[str, Any]]) -> list[GateVerdict]:
    """Return what the internal gates say: those that failed first, then those not judged."""
    order = sorted(gates, key=lambda gate: {False: 0, None: 1, True: 2}[gate["passed"]])
    return [_gate(gate) for gate in order]


def _gate(gate: Mapping[str, Any]) -> GateVerdict:
    word, sign = {True: ("passed", "✓"), False: ("failed", "✗"), None: ("not judged", "?")}[
        gate["passed"]
    ]
    value, limit = gate.get("value"), gate.get("limit")
    places = formatting.decimals(x for x in (value, limit) if isinstance(x, int | float))
    words = limit if isinstance(limit, str) else f"limit {_number(limit, places)}"
    figures = f"{_number(value, places)}; {words}"
    return GateVerdict(word, sign, gate["title"], figures, gate.get("reason") or "")


def _number(value: Any, places: int) -> str:
    if value is None:
        return "no figure"
    return formatting.figure(float(value), places)


def summary(gates: list[Mapping[str, Any]]) -> str:
    """Say in one sentence what the gates say together."""
    judged = [gate for gate in gates if gate["passed"] is not None]
    failed = [gate["title"] for gate in judged if not gate["passed"]]
    open_ = len(gates) - len(judged)
    unjudged = f" {open_} could not be judged." if open_ else ""
    if not judged:
        return "No internal gate was judged." + (unjudged if gates else "")
    if not failed:
        number = "The internal gate" if len(judged) == 1 else f"All {len(judged)} internal gates"
        return f"{number} passed.{unjudged}"
    named = formatting.listed(failed, 4)
    return f"{len(failed)} of {len(judged)} internal gates failed: {named}.{unjudged}"


Details = Mapping[str, Any]

LOST = 5  # relations that are named on the first screen
SHARES = {  # figures that are shares
    "never": "Pairs of values that no real row has, of what independent columns would give",
    "never_rows": "Rows with a pair of values that no real row has",
    "edits": "Rows against public lists of clinical edits",
    "strongest": "What is left of the 20 strongest relations",
    "levels": "Cells with a level that is neither declared nor real",
    "patterns_unseen": "Rows with a pattern of missing cells that no real row has",
}
RATIOS = {"seldom": "Rare pairs of values, over the real rows (best: 1)"}
ORDER = ("never_rows", "edits", "never", "seldom", "strongest", "levels", "patterns_unseen")


@dataclass(frozen=True)
class KeyFact:
    """A fact with its figure, and that of real rows.

    Attributes:
        key: of the measure.
        title: what is counted.
        synthetic: the figure of the synthetic table, as text.
        real: that of a holdout, or of a bootstrap of the source.
        chance: whether it is that of a bootstrap.
    """

    key: str
    title: str
    synthetic: str
    real: str
    chance: bool

    @property
    def sentence(self) -> str:
        """The same as a line."""
        beside = "a bootstrap of the real rows" if self.chance else "held-out real rows"
        return f"{self.title}: {self.synthetic} ({beside}: {self.real})"

    def to_dict(self) -> dict[str, Any]:
        """Give it in JSON types."""
        return asdict(self)


@dataclass(frozen=True)
class Relation:
    """One of the strongest relations: Cramer's V of both columns, 0 to 1.

    Attributes:
        title: both columns.
        source, synthetic: its strength in the two tables.
        holdout: in held-out real rows; None without them.
    """

    title: str
    source: float
    synthetic: float
    holdout: float | None

    @property
    def kept(self) -> float:
        """What is left of it, at most all."""
        return min(1.0, self.synthetic / self.source) if self.source else 1.0

    @property
    def sentence(self) -> str:
        """Its strength in each table."""
        beside = "" if self.holdout is None else f"; held-out rows {figure(self.holdout, 2)}"
        strength = f"{figure(self.source, 2)} in the real rows, {figure(self.synthetic, 2)}"
        return f"{self.title}: {strength} in the synthetic table{beside}"


def first_facts(document: Details) -> list[KeyFact]:
    """Return the facts that were measured, in the order of reading."""
    facts = []
    measures = document.get("measures") or {}
    for key in ORDER:
        if (entry := measures.get(key)) is not None:
            write = percent if key in SHARES else _ratio
            facts.append(_fact(key, (SHARES | RATIOS)[key], entry, write))
    for key, entry in measures.items():
        kind, _, target = key.partition(":")
        if kind == "effects":
            title = f"Size of effects on {shown(target)}, of the real ones (best: 1)"
            facts.append(_fact(key, title, entry, _ratio))
        elif kind == "signs":
            title = f"Clear effects on {shown(target)} with the wrong sign"
            facts.append(_fact(key, title, entry, percent))
    return facts


def relations(document: Details) -> list[Relation]:
    """Return the strongest relations by name, the strongest in the source first."""
    return [
        Relation(
            " with ".join(shown(name) for name in entry["columns"]),
            float(entry["source"]),
            float(entry["synthetic"]),
            entry.get("holdout"),
        )
        for entry in _fidelity(document).get("strongest") or []
    ]


def most_lost(document: Details, count: int = LOST) -> list[Relation]:
    """Return those of the strongest relations that lost most, and at least a twentieth."""
    lost = [one for one in relations(document) if one.kept < 0.95]
    return sorted(lost, key=lambda one: one.kept)[:count]


def never_seen(document: Details) -> list[str]:
    """Name pairs of values that synthetic rows have and no real row has, the commonest first."""
    return list(_never_seen(_fidelity(document).get("unseen") or []))


def _fidelity(document: Details) -> Details:
    return (document.get("parts") or {}).get("fidelity") or {}


def _never_seen(entries: Sequence[Details]) -> Iterator[str]:
    for one in entries:
        values = " with ".join(
            f"{shown(name)} {shown(label)}"
            for name, label in zip(one["columns"], one["bins"], strict=True)
        )
        text = f"{values}: {percent(one['largest'])} of the synthetic rows, no real row"
        if one.get("expected") is not None:
            text += f" ({percent(one['expected'])} if the columns were independent)"
        yield text


def _fact(key: str, title: str, entry: Details, write: Any) -> KeyFact:
    reference = entry.get("reference")
    chance = reference is None
    beside = entry.get("chance") if chance else reference
    return KeyFact(key, title, write(entry["value"]), write(beside), chance)


def _ratio(value: float | None) -> str:
    return figure(value, 2)
