"""The codes of a numeric column: which points of its lattice share a code.

A lattice of up to 4096 points has a code for each. A longer one is cut into up to 2048 spans,
evenly in asinh of the value, so that a span is narrow near zero and wide far from it (incomes,
densities and laboratory values have such tails); a time is cut evenly. Within a span of numbers the
roundest one has a code of its own, because people write 1500 more often than 1497; the others share
the next code.

Nothing is fitted: the codes are a function of declared bounds and resolution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.schema import Lattice

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SINGLE_POINTS = 4096  # up to so many lattice points have a code each
SPANS = 2048  # a longer lattice is cut into so many spans at most
BEND = 1000  # values below the largest one over this are cut evenly, those above by ratio
NONE = -1


@dataclass(frozen=True, eq=False)
class Grid:
    """Codes ``0 .. codes - 1`` of lattice positions, in ascending order of their spans.

    Attributes:
        edges: first position of each span, and the number of points at the end, ``[spans + 1]``.
        first: first code of each span, ``[spans]``.
        round: the position in each span that has a code of its own, ``[spans]``; -1 for none.
        span: the span of each code, ``[codes]``.
    """

    edges: Ints
    first: Ints
    round: Ints
    span: Ints

    @classmethod
    def of(cls, lattice: Lattice, *, number: bool) -> Grid:
        """Cut a lattice.

        Args:
            lattice: the column's points.
            number: whether they are numbers, with a zero and round values, or times.
        """
        points = lattice.points
        if points <= SINGLE_POINTS:
            edges = np.arange(points + 1, dtype=np.int64)
        else:
            edges = _bent_edges(lattice) if number else _even_edges(points)
        wide = np.diff(edges) > 1
        rounds = np.full(len(wide), NONE)
        if number and wide.any():
            rounds = np.where(wide, _roundest(lattice, edges), NONE)
        codes = 1 + (rounds != NONE)
        first = np.concatenate([[0], np.cumsum(codes)[:-1]])
        return cls(edges, first, rounds, np.repeat(np.arange(len(codes)), codes))

    @property
    def codes(self) -> int:
        """Number of codes."""
        return len(self.span)

    @property
    def points(self) -> Ints:
        """Number of lattice points of each code, ``[codes]``; at least 1."""
        widths = np.diff(self.edges)[self.span]
        has_round = self.round[self.span] != NONE
        return np.where(self._is_round, 1, widths - has_round)

    @property
    def _is_round(self) -> npt.NDArray[np.bool_]:
        """Which codes stand for the round value of their span."""
        starts = np.arange(self.codes) == self.first[self.span]
        return np.asarray(starts & (self.round[self.span] != NONE))

    def code_of(self, positions: Ints) -> Ints:
        """Return the code that holds each position."""
        if self.codes == self.edges[-1]:
            return positions
        span = np.searchsorted(self.edges, positions, side="right") - 1
        rounds = self.round[span]
        return np.asarray(self.first[span] + ((rounds != NONE) & (positions != rounds)))

    def draw(self, codes: Ints, rng: np.random.Generator) -> Ints:
        """Draw a position uniformly among the points of each code."""
        if self.codes == self.edges[-1]:
            return codes
        span, rounds = self.span[codes], self.round[self.span[codes]]
        positions = self.edges[span] + rng.integers(0, self.points[codes])
        positions += (rounds != NONE) & (positions >= rounds)  # the others step over the round one
        return np.where(self._is_round[codes], rounds, positions)


def _even_edges(points: int) -> Ints:
    """Cut positions into spans of equal width, up to one."""
    return np.array([span * points // SPANS for span in range(SPANS + 1)], dtype=np.int64)


def _bent_edges(lattice: Lattice) -> Ints:
    """Cut positions evenly in asinh(value / bend); spans that hold no point are left out."""
    low, high = (float(lattice.ticks(np.array(i))) for i in (0, lattice.points - 1))
    bend = max(abs(low), abs(high)) / BEND
    cuts = bend * np.sinh(np.linspace(np.arcsinh(low / bend), np.arcsinh(high / bend), SPANS + 1))
    inner = np.ceil((cuts[1:-1] - low) / lattice.stride).astype(np.int64)
    inner = inner[(inner > 0) & (inner < lattice.points)]
    return np.unique(np.concatenate([[0], inner, [lattice.points]]))


def _roundest(lattice: Lattice, edges: Ints) -> Ints:
    """Return, for each span, the position of its roundest value: a multiple of the largest unit.

    Units are 1, 2 and 5 times powers of ten, counted in ticks.
    """
    low, high = lattice.ticks(edges[:-1]), lattice.ticks(edges[1:] - 1)
    positions = edges[:-1].copy()
    done = np.zeros(len(positions), dtype=bool)
    largest = int(max(1, np.abs(low).max(), np.abs(high).max()))
    powers = [10**k for k in range(len(str(largest)))]
    for unit in sorted((m * power for power in powers for m in (1, 2, 5)), reverse=True):
        multiple = -(-low // unit) * unit
        fits = ~done & (multiple <= high) & ((multiple - lattice.first) % lattice.stride == 0)
        positions[fits] = (multiple[fits] - lattice.first) // lattice.stride
        done |= fits
    return positions
