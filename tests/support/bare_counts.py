"""Rows without a cohort around them, and entropy without noise, to see the counts bare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth.privacy import SeededEntropy


@dataclass(frozen=True)
class Rows:
    """Codes ``[units, rows, columns]``, and which of the rows are there."""

    codes: Any
    mask: Any


class Silence(SeededEntropy):
    """No noise of counts, and a record of the scale and the size of every draw."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.asked: list[tuple[float, int]] = []

    def discrete_gaussian(self, sigma: float, size: int) -> np.ndarray:
        self.asked.append((sigma, size))
        return np.zeros(size, np.int64)

    def discrete_laplace(self, scale: float, size: int) -> np.ndarray:
        self.asked.append((scale, size))
        return np.zeros(size, np.int64)
