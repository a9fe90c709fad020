"""The targets of shadow models: a few of those people whom a release endangers first."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from dpsynth.errors import InputError
from dpsynth.eval.attack_stats import groups_of
from dpsynth.eval.core import Tables, TableView
from dpsynth.eval.distances import Metric

Ints = npt.NDArray[np.int64]

CANDIDATES = 5_000  # people of the source among whom targets are sought
KNOWN = 20_000  # rows of the holdout that they are held against


@dataclass(frozen=True, eq=False)
class Exposed:
    """The targets.

    Attributes:
        units: their numbers ``[targets]``.
        groups: why each was chosen, in a few words.
    """

    units: Ints
    groups: tuple[str, ...]

    @classmethod
    def of(cls, tables: Tables, count: int, rng: np.random.Generator) -> Exposed:
        """Choose people of the source: in turn of each group, a random one of its most exposed.

        Those are the most exposed tenth of the most exposed tenth, where there are enough people.

        Raises:
            InputError: there is no holdout, or fewer people than targets.
        """
        if tables.holdout is None:
            raise InputError(
                "shadow models are trained on other people too: name a holdout; `dpsynth split` "
                "makes one before a fit"
            )
        everyone = np.unique(tables.source.units)
        if not 1 <= count <= len(everyone):
            raise InputError(
                f"targets must be 1 to {len(everyone)}, the units of the source, not {count}"
            )
        some = rng.permutation(everyone)[: max(count, CANDIDATES)]
        known = tables.holdout.sample(KNOWN, rng)
        groups = _most_exposed(tables, np.sort(some), known)
        turns = zip_longest(
            *([(title, unit) for unit in rng.permutation(units)] for title, units in groups.items())
        )
        picks = [one for turn in turns for one in turn if one is not None]
        picks += [("everyone", unit) for unit in some]  # where groups are too small
        chosen: dict[int, str] = {}
        for title, unit in picks:
            if len(chosen) < count:
                chosen.setdefault(int(unit), title)
        return cls(np.array(list(chosen), dtype=np.int64), tuple(chosen.values()))


def _most_exposed(tables: Tables, units: Ints, known: TableView) -> dict[str, Ints]:
    """Return the most exposed of some units of the source, by group."""
    metric = Metric.of(tables.codec)

    def tenths(units: Ints) -> dict[str, tuple[str, Ints]]:
        view = tables.source.take(np.flatnonzero(np.isin(tables.source.units, units)))
        exposed = groups_of(view, known, tables.codec, metric)
        return {one.key: (one.title, units[one.belongs]) for one in exposed[1:]}

    groups = {}
    for key, (title, top) in tenths(units).items():
        groups[title] = tenths(top).get(key, (title, top))[1]
    return groups
