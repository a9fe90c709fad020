"""On which terms a generator reads rows: under a plan, watched or not, or without privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpsynth.events import Event
from dpsynth.not_private import NotPrivate
from dpsynth.plan import PrivacyBudget, PrivacyPlan

if TYPE_CHECKING:
    from dpsynth.models.witness import Witness

__all__ = ["NotPrivate", "Terms", "Watched"]


@dataclass(frozen=True)
class Watched:
    """A plan that is carried out as ever, each noisy release being told to a witness.

    For audits on rows that are nobody's. What the witness is told is no more than what the plan
    accounts for.

    Attributes:
        plan: calibrated.
        witness: who is told.
    """

    plan: PrivacyPlan
    witness: Witness

    @property
    def budget(self) -> PrivacyBudget:
        """The plan's budget."""
        return self.plan.budget

    def event(self, name: str) -> Event:
        """Return the event of this name; see `PrivacyPlan.event`."""
        return self.plan.event(name)


Terms = PrivacyPlan | NotPrivate | Watched
