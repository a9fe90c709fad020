"""A fit by several processes of ``torchrun``: which of them makes it, and which assist."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dpsynth._util.torchrun import place_of

if TYPE_CHECKING:
    from dpsynth.models.dpsgd import Ranks


def assisted() -> bool:
    """Do the part of a rank other than 0 in a fit; return False at once in any other process.

    Raises:
        InputError: some of the processes are on other machines.
        DpsynthError: rank 0 ended before the last step.
    """
    place = place_of()
    if place.rank == 0:
        return False
    from dpsynth.models.dpsgd import joined
    from dpsynth.models.generators import assist

    with joined(place) as ranks:
        assist(ranks)
    return True


@contextmanager
def first_of_ranks() -> Generator[Ranks | None, None, None]:
    """Join the other ranks, for `fit`; without ``torchrun``, yield None.

    Raises:
        InputError: some of the processes are on other machines.
    """
    place = place_of()
    if place.size == 1:
        yield None
        return
    from dpsynth.models.dpsgd import joined

    with joined(place) as ranks:
        yield ranks
