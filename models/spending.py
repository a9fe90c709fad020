"""How a generator of another package divides its budget among the mechanisms of dpsynth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpsynth.errors import InputError
from dpsynth.models.registry import GeneratorSpec, plug_in_of

if TYPE_CHECKING:
    from dpsynth.models.base import Domain
    from dpsynth.privacy import PrivacyBudget


@dataclass(frozen=True)
class Spending:
    """Parts of the budget, a public function of domain and budget. They add up to 1.

    Attributes:
        columns: for the noisy counts of all columns; above 0, since all else needs their bins.
        pairs: for noisy counts of pairs of columns; 0 if none are counted.
        training: for DP-SGD; 0 if nothing is trained.
        sampling_rate: of units in each private step; 0 without training.
        steps: of DP-SGD; 0 without training.

    Example:
        >>> Spending(columns=0.4, training=0.6, sampling_rate=0.05, steps=200).pairs
        0.0
    """

    columns: float
    pairs: float = 0.0
    training: float = 0.0
    sampling_rate: float = 0.0
    steps: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be a plan.

        Raises:
            InputError: a part is out of range, or the parts do not add up to 1.
        """
        parts = (self.columns, self.pairs, self.training, self.sampling_rate)
        for part in parts:
            if isinstance(part, bool) or not isinstance(part, int | float) or not 0 <= part <= 1:
                raise InputError("the parts of a spending and its sampling rate are from 0 to 1")
        if not self.columns > 0 or abs(math.fsum(parts[:3]) - 1) > 1e-6:
            raise InputError(
                "columns must be above 0, and columns, pairs and training must add up to 1"
            )
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 0:
            raise InputError("steps must be a whole number from 0")
        if not (self.training > 0) == (self.sampling_rate > 0) == (self.steps > 0):
            raise InputError("training, sampling_rate and steps go together: all, or none")


def spending_of(spec: GeneratorSpec, domain: Domain, budget: PrivacyBudget) -> Spending:
    """Ask a generator of another package how it divides a budget; it is given public facts alone.

    Raises:
        InputError: it cannot be loaded, fails to answer, or answers with anything else.
    """
    plug_in = plug_in_of(spec)
    try:
        spending = plug_in.spending(domain, budget)
    except InputError as error:
        raise InputError(f"generator '{spec.name}': {error}; nothing was charged") from None
    except Exception as error:  # whatever the code of others does
        raise InputError(
            f"generator '{spec.name}' failed to state its spending ({type(error).__name__}); "
            "nothing was charged"
        ) from None
    if type(spending) is not Spending:
        raise InputError(
            f"generator '{spec.name}' must state its spending as a Spending; nothing was charged"
        )
    return spending
