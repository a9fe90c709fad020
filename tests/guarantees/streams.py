"""A source of randomness for tests, whose streams do not disturb each other and are kept.

`SeededEntropy` has one stream: a table of one row more moves every later draw, and two fits differ
all over although only noise does. Here every call has a stream of its own, by its method and its
number, so that two fits differ where private rows reach, and nowhere else.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from dpsynth.privacy import SeededEntropy


class Streams:
    """Repeatable draws by (seed, method, number of the call); all of them are kept.

    Attributes:
        drawn: by method, what each call returned, in order.
        asked: by method, the arguments of each call.
    """

    def __init__(self, seed: int, *, releasable: bool = False) -> None:
        """Start from a seed; ``releasable`` lets `publish_quality` take it."""
        self.seed, self.releasable = seed, releasable
        self.drawn: dict[str, list[Any]] = defaultdict(list)
        self.asked: dict[str, list[tuple[Any, ...]]] = defaultdict(list)

    def _draw(self, method: str, *arguments: Any) -> Any:
        number = len(self.drawn[method])
        words = [self.seed, *method.encode(), number]
        source = SeededEntropy(int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0]))
        value = getattr(source, method)(*arguments)
        self.drawn[method].append(value)
        self.asked[method].append(arguments)
        return value.copy() if isinstance(value, np.ndarray) else value

    def uniform(self, size: Any) -> Any:
        return self._draw("uniform", size)

    def normal(self, size: Any, dtype: Any = np.float64) -> Any:
        return self._draw("normal", size, dtype)

    def integers(self, low: int, high: int, size: Any) -> Any:
        return self._draw("integers", low, high, size)

    def permutation(self, count: int) -> Any:
        return self._draw("permutation", count)

    def generator(self) -> np.random.Generator:
        generator: np.random.Generator = self._draw("generator")
        return generator

    def discrete_gaussian(self, sigma: float, size: int) -> Any:
        return self._draw("discrete_gaussian", sigma, size)

    def discrete_laplace(self, scale: float, size: int) -> Any:
        return self._draw("discrete_laplace", scale, size)
