"""Columns of the table of patients as normal variables: scores of their codes, and codes drawn.

Each column is a few standard normal variables and a rule that makes a code of them; its released
shares say both. `hermite` of each variable is that of the mean score given the variable, so that
released mean products say the correlation of the variables whatever the rule loses.

- A number, or a share, is one variable, cut at its shares.
- Codes without an order are one variable each: the code is the one that is highest above its cut.
- A day is one variable, cut by the product-limit distribution of its cells (Kaplan and Meier 1958).
  Of a patient who was followed up to some cell without it, the score is E[Z | Z > cut of the cell].
- The end of follow-up is one variable for each status, competing: the earliest one comes. Each
  has its own product-limit distribution, for which all others are lost to follow-up.

Everything here is a function of released numbers: post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dpsynth.models.histories.latent.normal_scores import cuts_of, density, hermite, scores_of
from dpsynth.models.histories.latent.patients import END, TIME, Column

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

TINY = 1e-9
ROUNDS = 30  # in which the cuts of codes without an order are found
DRAWN = 20_000  # points for that
ENOUGH = 200  # drawn patients, for cuts of their own
SELDOM = 0.01  # share of a code, up to which it has no variable
MOST_CODES = 24  # of a column that have a variable of their own; the others follow their shares


class Variables(Protocol):
    """A column as normal variables."""

    @property
    def scores(self) -> Floats:
        """Of each code, for each variable, ``[codes, variables]``."""

    @property
    def hermites(self) -> Floats:
        """Of the mean score given each variable, ``[variables, TERMS]``."""

    @property
    def has(self) -> float:
        """Share of the patients who have it."""

    def draw(self, z: Floats, rng: np.random.Generator) -> Ints:
        """Return the codes of normal variables, ``[patients, variables]``."""
        ...


def positive(shares: Floats) -> Floats:
    """Return shares that are at least 0 and sum to 1."""
    kept = np.maximum(shares, 0.0) + TINY
    return np.asarray(kept / kept.sum())


def variables_of(column: Column, shares: Floats, cells: int, ways: int) -> Variables:
    """Return a column as variables.

    Args:
        column: of the table of patients.
        shares: of its codes.
        cells: of a day, for a day; of a status, for the end.
        ways: how many statuses there are, for the end.
    """
    own = positive(shares)
    if column.kind == TIME:
        return DayVariable.of(own, cells)
    if column.kind == END:
        return EndVariables.of(own, ways)
    feature = column.feature
    if feature.cells <= 1 < feature.size:
        return CodeVariables.of(own)
    return NumberVariable.of(own, feature.cells, absent=column.given != -1)


@dataclass(frozen=True, eq=False)
class NumberVariable:
    """Ordered codes: one variable, and one more for each code behind them that says something."""

    scores: Floats
    hermites: Floats
    has: float
    ordered: Floats  # cuts
    loose: Floats

    @classmethod
    def of(cls, shares: Floats, cells: int, *, absent: bool) -> NumberVariable:
        """Learn from shares; ``absent`` says that another column says who has no such number."""
        ordered, loose = positive(shares[:cells]), shares[cells:]
        own = scores_of(ordered)
        if absent or not len(loose):
            scores = np.concatenate([own, np.zeros(len(loose))])[:, None]
            has = float(shares[:cells].sum()) if absent else 1.0
            return cls(scores, hermite(ordered, own)[None], has, cuts_of(ordered), np.empty(0))
        scores = np.zeros((len(shares), 1 + len(loose)))
        scores[:cells, 0] = own
        hermites = [hermite(ordered, own)]
        for place, share in enumerate(loose):
            two = np.array([1 - share, share])
            of_two = scores_of(two)
            scores[:, 1 + place] = of_two[0]
            scores[cells + place, 1 + place] = of_two[1]
            hermites.append(hermite(two, of_two))
        cuts = np.array([cuts_of(np.array([1 - share, share]))[1] for share in loose])
        return cls(scores, np.array(hermites), float(shares[:cells].sum()), cuts_of(ordered), cuts)

    def draw(self, z: Floats, rng: np.random.Generator) -> Ints:
        """Return the codes of normal variables."""
        codes = np.searchsorted(self.ordered[1:-1], z[:, 0], side="right").astype(np.int64)
        for place, cut in enumerate(self.loose):
            codes[z[:, 1 + place] > cut] = len(self.ordered) - 1 + place
        return codes


@dataclass(frozen=True, eq=False)
class CodeVariables:
    """Codes without an order: one variable each, of the most frequent ones.

    Of two such codes, one variable says it all. Rare codes follow their shares, whatever else a
    patient has.
    """

    scores: Floats
    hermites: Floats
    has: float
    named: Ints
    shares: Floats
    offsets: Floats

    @classmethod
    def of(cls, shares: Floats) -> CodeVariables:
        """Learn from shares."""
        named = np.sort(np.argsort(-shares, kind="stable")[:MOST_CODES])
        named = named[shares[named] > SELDOM]
        own = positive(shares[named])
        if len(named) <= 2:
            named, own = _two(shares)
            of_two = scores_of(own)
            scores = np.zeros((len(shares), 1))
            scores[named, 0] = of_two
            return cls(scores, hermite(own, of_two)[None], 1.0, named, shares, cuts_of(own)[1:2])
        scores = np.zeros((len(shares), len(named)))
        hermites = []
        for place, share in enumerate(own):
            of_two = scores_of(np.array([1 - share, share]))
            scores[named, place] = of_two[0]
            scores[named[place], place] = of_two[1]
            hermites.append(hermite(np.array([1 - share, share]), of_two))
        z = np.random.default_rng(0).standard_normal((DRAWN, len(own)))
        offsets = _offsets(z, np.log(own), own, ROUNDS)
        return cls(scores, np.array(hermites), 1.0, named, shares, offsets)

    def draw(self, z: Floats, rng: np.random.Generator) -> Ints:
        """Return the codes of normal variables."""
        if len(self.offsets) == 1:
            place = (z[:, 0] > self.offsets[0]).astype(np.int64)
        else:
            # correlated variables meet the shares less well than free ones
            own = positive(self.shares[self.named])
            offsets = self.offsets
            if len(z) >= ENOUGH:
                offsets = _offsets(z, offsets, own, ROUNDS // 2)
            place = np.argmax(z + offsets, axis=1)
        codes = self.named[place]
        others = np.setdiff1d(np.arange(len(self.shares)), self.named)
        rest = float(self.shares[others].sum())
        seldom = np.flatnonzero(rng.random(len(z)) < rest)
        if len(seldom):
            codes[seldom] = rng.choice(others, len(seldom), p=self.shares[others] / rest)
        return np.asarray(codes)


def _two(shares: Floats) -> tuple[Ints, Floats]:
    """Return the two most frequent codes, in order, and their shares."""
    named = np.sort(np.argsort(-shares, kind="stable")[:2])
    return named, positive(shares[named])


def _offsets(z: Floats, offsets: Floats, wanted: Floats, rounds: int) -> Floats:
    """Move offsets until the highest variable is each one as often as is wanted."""
    for _ in range(rounds):
        drawn = np.bincount(np.argmax(z + offsets, axis=1), minlength=len(wanted)) / len(z)
        step = np.clip(np.log((wanted + 1e-4) / (drawn + 1e-4)), -1, 1)
        offsets = offsets + 0.6 * step
    return offsets


def product_limit(events: Floats, lost: Floats) -> Floats:
    """Return the distribution of a time: shares of its cells, and of later or never.

    Args:
        events: share of the patients with the event in each cell, ``[cells]``.
        lost: share of those who were lost in it before they had it, and behind all cells of those
            who were followed to the end, ``[cells + 1]``.

    >>> product_limit(np.array([0.2, 0.4]), np.array([0.0, 0.0, 0.4])).round(2).tolist()
    [0.2, 0.4, 0.4]
    """
    later = np.cumsum((events + lost[:-1])[::-1])[::-1] + lost[-1]
    at_risk = later - lost[:-1] / 2
    hazard = np.clip(events / np.maximum(at_risk, TINY), 0.0, 1.0)
    left = np.cumprod(1 - hazard)
    return np.concatenate([np.concatenate([[1.0], left[:-1]]) * hazard, left[-1:]])


def _censored(law: Floats, lost: Floats) -> tuple[Floats, Floats, Floats]:
    """Return scores of cells, of being lost in a cell, and Hermite coefficients."""
    own = scores_of(law)
    cuts = cuts_of(law)
    tail = np.maximum(1 - np.cumsum(law), TINY)
    after = density(cuts[1:]) / tail  # mean of Z behind each cell
    after[-1] = own[-1]
    after = np.where(tail > 1e-6, after, own[-1])
    # mean score of a cell, had a patient been lost independently of it
    share = lost / max(float(lost.sum()), TINY)
    before = np.concatenate([[0.0], np.cumsum(share * after)[:-1]])
    gone = np.concatenate([[0.0], np.cumsum(share)[:-1]])
    mean = own * (1 - gone) + before
    return own, after, hermite(law, mean)


@dataclass(frozen=True, eq=False)
class DayVariable:
    """The day of an event: one variable."""

    scores: Floats
    hermites: Floats
    has: float
    cuts: Floats

    @classmethod
    def of(cls, shares: Floats, cells: int) -> DayVariable:
        """Learn from shares of cells, and of those who were followed up to each without it."""
        law = product_limit(shares[:cells], shares[cells:])
        own, after, coefficients = _censored(law, shares[cells:])
        scores = np.concatenate([own[:cells], after])
        scores[-1] = own[-1]
        return cls(scores[:, None], coefficients[None], 1.0, cuts_of(law))

    def draw(self, z: Floats, rng: np.random.Generator) -> Ints:
        """Return the cell of each patient's day; the last one is later, or never."""
        return np.searchsorted(self.cuts[1:-1], z[:, 0], side="right").astype(np.int64)


@dataclass(frozen=True, eq=False)
class EndVariables:
    """When and how follow-up ended: one variable for each status, of which the earliest comes."""

    scores: Floats
    hermites: Floats
    has: float
    cuts: Floats  # [statuses, cells + 2]
    often: int

    @classmethod
    def of(cls, shares: Floats, ways: int) -> EndVariables:
        """Learn from shares of the cells of each status."""
        table = shares.reshape(ways, -1)
        cells = table.shape[1]
        scores = np.zeros((ways, cells, ways))
        hermites, cuts = [], []
        whole = table.sum(axis=0)
        for way in range(ways):
            events = table[way].copy()
            others = whole - events
            # on the last day all others are followed to the end: one cell for it, and never
            law = (
                product_limit(events, np.append(others, 0.0)) if ways > 1 else np.append(events, 0)
            )
            law = positive(law)
            own, after, coefficients = _censored(law, np.append(others, 0.0))
            scores[:, :, way] = after[:cells]
            scores[way, :, way] = own[:cells]
            hermites.append(coefficients)
            cuts.append(cuts_of(law))
        often = int(np.argmax(table[:, -1]))
        return cls(
            scores.reshape(ways * cells, ways), np.array(hermites), 1.0, np.array(cuts), often
        )

    def draw(self, z: Floats, rng: np.random.Generator) -> Ints:
        """Return the codes of normal variables."""
        cells = self.cuts.shape[1] - 2
        times = np.stack(
            [
                np.searchsorted(cuts[1:-1], own, side="right")
                for cuts, own in zip(self.cuts, z.T, strict=True)
            ],
            axis=1,
        )
        tied = times + 0.5 * rng.random(times.shape)
        status = np.argmin(tied, axis=1)
        first = times[np.arange(len(z)), status]
        status = np.where(first >= cells, self.often, status)
        return np.asarray(status * cells + np.minimum(first, cells - 1), dtype=np.int64)
