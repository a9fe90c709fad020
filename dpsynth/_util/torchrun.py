"""Whether this process is one of several that ``torchrun`` started, and which."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from dpsynth.errors import InputError


@dataclass(frozen=True)
class Place:
    """The place of a process among those that ``torchrun`` started.

    Attributes:
        rank: its number, from 0.
        size: how many there are.
    """

    rank: int
    size: int


ALONE = Place(0, 1)


def place_of(environment: Mapping[str, str] | None = None) -> Place:
    """Return the place that ``torchrun`` gave this process; `ALONE` without it.

    Raises:
        InputError: some of the processes are on other machines. What they tell each other are
            private rows and sums, and nothing encrypts them on the way.

    >>> place_of({})
    Place(rank=0, size=1)
    """
    told = os.environ if environment is None else environment
    if "TORCHELASTIC_RUN_ID" not in told:
        return ALONE
    size = int(told["WORLD_SIZE"])
    if int(told["LOCAL_WORLD_SIZE"]) != size:
        raise InputError(
            "torchrun started processes on several machines, and what they would tell each other "
            "about patients is not encrypted; start all of them on one, with --standalone"
        )
    return Place(int(told["RANK"]), size)
