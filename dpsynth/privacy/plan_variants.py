"""On which terms a generator reads rows: under a plan, watched or not, or without privacy.

A fit without privacy is the reference that shows what the noise costs. `NonPrivatePlan` takes the
place of a plan. It keeps the settings of one (which histograms, how many steps) and stands for
running them with exact counts and plain gradients. A run that was learned so has no certificate, is
stamped, and cannot be released.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dpsynth.privacy.events import Event
from dpsynth.privacy.plan import PrivacyBudget, PrivacyPlan

STAMP = "not-private"
NOMINAL_BUDGET = PrivacyBudget(epsilon=10.0, delta=1e-6)
"""Whose presets a fit without privacy uses; nothing is spent."""


@dataclass(frozen=True)
class NonPrivatePlan:
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

    def has(self, name: str) -> bool:
        """Say whether there is an event of this name."""
        return self.settings.has(name)


class Observer(Protocol):
    """Who is told each noisy release of a fit, in an audit; `models.auditing.transcript` has one.

    Tables, cohorts and trainers are those of the rooms above, which this one does not know.
    """

    @property
    def histories(self) -> tuple[Any, ...]:
        """Return canaries and everybody else as a generator of histories reads them, or nothing."""

    def counted(
        self,
        noisy: Sequence[Any],
        sigmas: Sequence[float],
        event: Any,
        encode: Callable[[Any], Any],
    ) -> None:
        """Hear noisy histograms; ``encode`` gives each row's cell in each of them as a column."""

    def paired(
        self,
        noisy: Sequence[Any],
        places: Sequence[tuple[int, int]],
        sigmas: Sequence[float],
        event: Any,
        binning: Any,
    ) -> None:
        """Hear noisy counts of pairs of binned columns."""

    def multiplied(self, noisy: Any, contrasts: Sequence[Any], event: Any, binning: Any) -> None:
        """Hear noisy sums of products of contrasts of binned columns."""

    def weighed(
        self, noisy: Sequence[Any], sigmas: Sequence[float], canaries: Any, others: Any
    ) -> None:
        """Hear noisy histograms of weighted rows; both sides' rows in them are `WeightedRows`."""

    def trainer(self, watch: Any) -> Any:
        """Return a class of trainer whose steps are heard."""


@dataclass(frozen=True)
class ObservedPlan:
    """A plan that runs as usual and shows each noisy release to an observer.

    For audits on synthetic rows only. What the observer sees is no more than what the plan
    accounts for.

    Attributes:
        plan: calibrated.
        observer: sees each release.
    """

    plan: PrivacyPlan
    observer: Observer

    @property
    def budget(self) -> PrivacyBudget:
        """The plan's budget."""
        return self.plan.budget

    def event(self, name: str) -> Event:
        """Return the event of this name; see `PrivacyPlan.event`."""
        return self.plan.event(name)

    def has(self, name: str) -> bool:
        """Say whether there is an event of this name."""
        return self.plan.has(name)


AnyPlan = PrivacyPlan | NonPrivatePlan | ObservedPlan
