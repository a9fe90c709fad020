"""How many drawn rows met the rules of the schema; the others were drawn again."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dpsynth._util.messages import shown

Truth = npt.NDArray[np.bool_]


@dataclass
class Acceptance:
    """Counts of drawn rows, of one sampler since it was made; they follow from what was released.

    Attributes:
        drawn: rows, or patients of linked tables.
        met: those that broke no rule.
        broken: rows that broke each rule, by its text.

    >>> acceptance = Acceptance()
    >>> acceptance.add(4, np.array([True, True, False, True]), {"a < b": 1})
    >>> acceptance.words("row")
    "75 % of the drawn rows met the rules, the others were drawn again; broken most often: 'a < b'"
    >>> Acceptance(drawn=10_000, met=9_999).words("row")
    'almost 100 % of the drawn rows met the rules, the others were drawn again'
    """

    drawn: int = 0
    met: int = 0
    broken: dict[str, int] = field(default_factory=dict)

    def add(self, drawn: int, met: Truth, broken: dict[str, int] | None = None) -> None:
        """Count a batch: how many were drawn, which met all rules, and how many broke each."""
        self.drawn += drawn
        self.met += int(met.sum())
        for text, count in (broken or {}).items():
            self.broken[text] = self.broken.get(text, 0) + count

    def clear(self) -> None:
        """Count from nothing again."""
        self.drawn, self.met, self.broken = 0, 0, {}

    def join(self, other: Acceptance) -> None:
        """Count what another sampler of the same rows has counted."""
        self.drawn, self.met = self.drawn + other.drawn, self.met + other.met
        for text, count in other.broken.items():
            self.broken[text] = self.broken.get(text, 0) + count

    @property
    def share(self) -> float:
        """The share that met the rules; 1 before anything was drawn."""
        return self.met / self.drawn if self.drawn else 1.0

    def words(self, noun: str) -> str:
        """Say it in a line; ``noun`` is what was drawn."""
        if self.met == self.drawn:
            return f"every drawn {noun} met the rules"
        again = f"of the drawn {noun}s met the rules, the others were drawn again"
        most = max(self.broken, key=lambda text: self.broken[text], default=None)
        share = f"{100 * self.share:.3g}"
        return f"{'almost 100' if share == '100' else share} % {again}" + (
            f"; broken most often: {shown(most)}" if most is not None else ""
        )
