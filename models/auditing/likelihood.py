"""How likely a fitted generator makes a row: what released weights say about a person.

Of rows of a unit as the network and the mixture see them, so the hidden column counts too. Each
generator with a density has a method `log_prob`; for `tvae` it is a bound from below.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Cohort
from dpsynth.errors import InputError
from dpsynth.models import Generator

Floats = npt.NDArray[np.float64]


@runtime_checkable
class Density(Protocol):
    """What a generator with a likelihood has."""

    def log_prob(self, cohort: Cohort) -> Floats:
        """Return the mean log-likelihood of each unit's rows, ``[units]``, in nats."""
        ...


def log_likelihood(generator: Generator, cohort: Cohort) -> Floats:
    """Return the mean log-likelihood of each unit's rows, ``[units]``, in nats.

    Args:
        generator: fitted.
        cohort: raw codes ``[units, rows, columns]``; every unit has a row.

    Raises:
        InputError: the generator has no method `log_prob`.
    """
    if not isinstance(generator, Density):
        raise InputError(f"model '{generator.name}' has no likelihood, which this audit needs")
    return generator.log_prob(cohort)
