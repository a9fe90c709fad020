"""Which columns a fit measures grains of, and what share of its budget that gets.

A public function of the columns. Figures: bench/granularity.py, docs/benchmarks.md.

**Share.** A fit counts, for each of G columns, how many rows each grain has: G histograms of one
event, which a unit moves by L2 norm M sqrt(G) at most, where M is what it adds to one histogram
(`JointHistograms`). Squares of Gaussian parameters add up (Dong, Roth and Su 2019, corollary 3.3),
so a share f of a plan with parameter mu leaves noise of M sqrt(G / f) / mu in each count. With
eleven numbers and `SHARE`, that is about 2 % of 7 300 units at epsilon 1. The share does not depend
on the declared population, and the other events lose 0.5 % of their precision by it.
"""

from __future__ import annotations

from dpsynth.models.base import Domain
from dpsynth.privacy import JointHistograms, Share
from dpsynth.privacy.events import UNDECIDED

GRAINS = "granularity of numbers"
SHARE = 0.01  # of the budget


def measured(domain: Domain) -> list[int]:
    """Return the places of the columns whose grains are measured: a public fact."""
    return [place for place, feature in enumerate(domain.features) if feature.units]


def with_grains(
    shares: tuple[Share, ...], domain: Domain, unit_mass: int | None
) -> tuple[Share, ...]:
    """Put the event of the grains first, and give the others what it leaves.

    Args:
        shares: of a fit, which add up to 1.
        domain: public facts.
        unit_mass: as of the event of the one-way histograms.
    """
    columns = len(measured(domain))
    if columns == 0:
        return shares
    event = JointHistograms(GRAINS, columns, domain.max_rows, UNDECIDED, unit_mass=unit_mass)
    others = [Share(one.event, one.fraction * (1.0 - SHARE)) for one in shares]
    return (Share(event, SHARE), *others)
