"""The targets of targets.csv beside what was measured: met, missed, or not measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from convert import convert
from quality_results import Cell, Group

Pick = Callable[[str, str, float], str | None]
"""The generator that ``auto`` takes for a table, a unit and an epsilon."""


@dataclass(frozen=True)
class Verdict:
    """One target beside what was measured; ``value`` is None where nothing was."""

    case: tuple[str, str, float]
    model: str | None
    seeds: int
    measure: str
    bound: float
    value: float | None

    @property
    def met(self) -> bool:
        """Whether the target is reached: usefulness at least, all else at most."""
        return self.value is not None and self._reaches(self.value)

    def _reaches(self, value: float) -> bool:
        return value >= self.bound if self.measure == "tstr_hgb" else value <= self.bound

    def __str__(self) -> str:
        """Show the bound, the mean and the word, with digits enough for them to agree."""
        sign = "≥" if self.measure == "tstr_hgb" else "≤"
        wanted = f"{sign} {self.bound:.6f}".rstrip("0").rstrip(".").replace("0.", ".", 1)
        if self.value is None:
            return f"{wanted}: not measured"
        decimals = 4 if self.measure.startswith("tvd") else 3
        while decimals < 9 and self._reaches(round(self.value, decimals)) != self.met:
            decimals += 1
        text = f"{self.value:.{decimals}f}".replace("0.", ".", 1)
        return f"{wanted}: {text} {'met' if self.met else '**missed**'}"


def judged(cells: Mapping[Group, Cell], targets: list[dict[str, str]], pick: Pick) -> list[Verdict]:
    """Hold each target beside what ``auto`` scores or, where it was not run, what it would take."""
    found = []
    for row in targets:
        case = table, unit, epsilon = row["table"], row["unit"], float(row["epsilon"])
        asked = (table, unit, "auto", epsilon) in cells
        model = "auto" if asked else pick(table, unit, epsilon)
        cell = cells.get((table, unit, model or "", epsilon))
        mean = cell.means.get(row["measure"]) if cell else None
        value = mean.value if mean else None
        seeds = cell.seeds if cell else 0
        found.append(Verdict(case, model, seeds, row["measure"], float(row["bound"]), value))
    return found


def picked(tables: Path, delta: float) -> Pick:
    """Return the automatic choice by the public facts of the split tables."""
    from dpsynth.encoding.codec import Codec
    from dpsynth.models.base import Domain
    from dpsynth.models.presets import choose
    from dpsynth.privacy.plan import PrivacyBudget

    def pick(table: str, unit: str, epsilon: float) -> str | None:
        path = tables / table / "schema.json"
        if not path.exists():
            return None
        schema = convert(path, rows_as_units=unit == "row")
        budget = PrivacyBudget(epsilon=epsilon, delta=delta)
        return choose(Domain.of(schema, Codec(schema)), budget)[0]

    return pick
