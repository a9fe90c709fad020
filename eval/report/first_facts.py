"""Facts that a reader checks first: what never happens, what is strong, and which way effects go.

Each has the figure of the synthetic table and, beside it, that of real people who took no part (of
a bootstrap of the source, where there is no holdout).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dpsynth.eval.report.formatting import figure, percent, shown

Details = Mapping[str, Any]

LOST = 5  # relations that are named on the first screen
SHARES = {  # figures that are shares
    "never": "Pairs of values that no real row has, of what independent columns would give",
    "never_rows": "Rows with a pair of values that no real row has",
    "strongest": "What is left of the 20 strongest relations",
    "levels": "Cells with a level that is neither declared nor real",
    "patterns_unseen": "Rows with a pattern of missing cells that no real row has",
}
RATIOS = {"seldom": "Rare pairs of values, over the real rows (best: 1)"}
ORDER = ("never_rows", "never", "seldom", "strongest", "levels", "patterns_unseen")


@dataclass(frozen=True)
class Fact:
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


def first_facts(document: Details) -> list[Fact]:
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


def _fact(key: str, title: str, entry: Details, write: Any) -> Fact:
    reference = entry.get("reference")
    chance = reference is None
    beside = entry.get("chance") if chance else reference
    return Fact(key, title, write(entry["value"]), write(beside), chance)


def _ratio(value: float | None) -> str:
    return figure(value, 2)
