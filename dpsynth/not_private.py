"""A fit without privacy: the reference that shows what the noise costs.

`NotPrivate` takes the place of a plan. It keeps the settings of one (which histograms, how many
steps) and stands for running them with exact counts and plain gradients. A run that was learned so
has no certificate, is stamped, and cannot be released.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsynth.events import Event
from dpsynth.plan import PrivacyBudget, PrivacyPlan

STAMP = "not-private"
NOMINAL = PrivacyBudget(epsilon=10.0, delta=1e-6)
"""Whose presets a fit without privacy uses; nothing is spent."""


@dataclass(frozen=True)
class NotPrivate:
    """The settings of a plan, to be run without its noise.

    Attributes:
        settings: names the events; their noise only weighs counts against each other.
    """

    settings: PrivacyPlan

    @property
    def budget(self) -> PrivacyBudget:
        """The nominal budget, which chooses the preset."""
        return self.settings.budget

    def event(self, name: str) -> Event:
        """Return the event of this name; see `PrivacyPlan.event`."""
        return self.settings.event(name)
