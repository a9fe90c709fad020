"""A fit as the rules of a policy take it: one that is asked for, and one that counts.

**365 days.** A fit spends when it reads, which is after it was admitted, and once more when its
share for quality figures is measured, which may be long after. So a fit counts as a whole, from the
moment when it is admitted until 365 days after the time since when it can spend nothing more
(``Past.at``; None as long as it may). Then what is *spent* in any window (a, a + 365 days] is
within the cap:

1. Let E be the fits that spend something in the window, and f the one of E that was admitted last,
   at time t. It spends in the window after t, so t <= a + 365 days.
2. Let e be another fit of E; it was admitted before f and spends at a time s > a. If it could
   still spend at t, it counted at t. If it could not, its ``at`` is a time of its last spending or
   later, so ``at`` >= s > a >= t - 365 days, and it counted at t as well. (Records hold whole
   seconds, rounded down. So ``at`` is one second after that of the record; t is rounded down too,
   which only lets more fits count.)
3. So at t all of E counted, f included, and their sum was admitted. Parts of a sum that is admitted
   are, and what a fit spends within the window is at most all that it may spend.

So *every* window of 365 days is within the cap, not only calendar years, whose turn would allow
twice the cap within weeks. Counting a fit at the time of its reservation is wrong: two fits that
are admitted a year apart can both have their quality measured in one week. Nothing is judged a
second time, because what may still be spent is held. What a window reveals is bounded for somebody
who knows the results of earlier windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from dpsynth.errors import InputError
from dpsynth.privacy import Spend, Unit

YEAR = timedelta(days=365)


@dataclass(frozen=True)
class Request:
    """A fit that is asked for: public facts only.

    Attributes:
        dataset: where it counts.
        tier: its purpose, if the policy has tiers.
        model: the generator's name.
        population: the public number of units.
        may_refuse: whether a column may refuse a cell.
        spend: for one of those whom the ledger counts.
        unit: of the fit.
    """

    dataset: str
    tier: str | None
    model: str
    population: int
    may_refuse: bool
    spend: Spend
    unit: Unit


@dataclass(frozen=True)
class Past:
    """A fit that counts.

    Attributes:
        at: time, with its zone, since when it can spend nothing more; None while it may. Not the
            time of its reservation: see the proof above.
        dataset: where it counts.
        tier: its purpose.
        spend: for one of those whom the ledger counts.
        unit: of the fit.
    """

    at: datetime | None
    dataset: str
    tier: str | None
    spend: Spend
    unit: Unit

    def __post_init__(self) -> None:
        """Refuse a time without a zone: it could be any of 26 hours."""
        if self.at is not None:
            require_zone(self.at)

    def counts_at(self, moment: datetime) -> bool:
        """Whether it counts in the 365 days before a moment."""
        return self.at is None or self.at > moment - YEAR


def require_zone(time: datetime) -> None:
    """Refuse a time that could be any of 26 hours."""
    if time.utcoffset() is None:
        raise InputError("times of a ledger carry their time zone; give it in UTC")
