"""Rows under a condition: drawn where the condition holds, not thrown away where it does not.

A condition is cut into boxes of codes, and the generator is kept to each of them. A row of a box
that lies in an earlier one, too, is left out, so that no row counts twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Codec, Codes
from dpsynth.errors import InputError
from dpsynth.models import Conditional, Generator, Law, Weighed
from dpsynth.schema import Rule
from dpsynth.synthesis.drawing.boxes import Box, boxes_of

Floats = npt.NDArray[np.float64]


class ImpossibleCondition(InputError):
    """No row of the schema, or of what the model has learned, can meet a condition."""


@dataclass(frozen=True, eq=False)
class Conditioned:
    """A generator that is kept to boxes.

    Attributes:
        boxes: of the condition.
        laws: of the generator within the bins of each box.
        shares: of all rows, within the bins of each box.
    """

    boxes: tuple[Box, ...]
    laws: tuple[Law, ...]
    shares: Floats

    @classmethod
    def of(cls, generator: Generator, condition: Rule, codec: Codec) -> Conditioned | None:
        """Keep a generator to a condition; None if it cannot be, or nothing would be gained.

        Raises:
            ImpossibleCondition: no row of the schema, or of what was learned, meets it.
        """
        boxes = boxes_of(condition, codec)
        if not isinstance(generator, Conditional) or any(not box.allowed for box in boxes):
            return None
        laws = [(box, *generator.given(box.allowed)) for box in boxes]
        kept = [(box, law, share) for box, law, share in laws if law is not None and share > 0]
        if not kept:
            raise ImpossibleCondition(
                "by the schema, or by what the model has learned, no row can meet "
                f"{condition.text!r}; loosen the condition"
            )
        boxes, found, shares = zip(*kept, strict=True)
        return cls(boxes, found, np.array(shares))

    def effective(self, rows: int) -> float | None:
        """Return about how many effective proposals so many rows are chosen from.

        Returns:
            None where rows are drawn under the condition, and not chosen.
        """
        chances = self.shares / self.shares.sum()
        found = [
            law.effective(max(1, round(rows * chance)))
            for law, chance in zip(self.laws, chances, strict=True)
            if isinstance(law, Weighed)
        ]
        return float(sum(found)) if found else None

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = True) -> Codes:
        """Draw codes in the boxes: about ``rows`` of them, fewer where boxes overlap."""
        parts = []
        chances = self.shares / self.shares.sum()
        for place, number in enumerate(rng.multinomial(rows, chances)):
            if number == 0:
                continue
            codes = self.laws[place].sample(int(number), rng, even=even)
            kept = self.boxes[place].holds(codes)
            for earlier in self.boxes[:place]:
                kept &= ~earlier.holds(codes)
            parts.append(codes[kept])
        found: Codes = np.concatenate(parts)
        return rng.permutation(found) if len(self.boxes) > 1 else found
