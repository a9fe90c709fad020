"""Units dealt to teachers, and their votes counted with noise; `votes_event` has what it costs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.privacy.answers.votes_event import TeacherVotes
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.payments import gaussian_noise

Ints = NDArray[np.int64]
ABSTAINS = -1
"""The vote of a teacher that names no class."""


def dealt(units: int, event: TeacherVotes, entropy: Entropy) -> Ints:
    """Deal units to teachers: each by a draw of its own, which no other unit has a part in.

    Teachers get about equally many, and now and then none. Equal parts of a shuffled list would be
    no better and not private: a unit more would move others to another teacher.

    Args:
        units: how many there are; private, like all that is returned.
        event: what the plan paid for.
        entropy: where the draws come from.

    Returns:
        The teacher of each unit, ``[units]``, from 0.
    """
    return entropy.integers(0, event.teachers, units)


def noisy_votes(votes: NDArray[np.signedinteger], event: TeacherVotes, entropy: Entropy) -> Ints:
    """Count the votes of each query for each class, and add discrete Gaussian noise to every count.

    Args:
        votes: the class that each teacher names for each query, ``[teachers, queries]`` whole
            numbers from 0, or `ABSTAINS`.
        event: what the plan paid for.
        entropy: where the noise comes from.

    Returns:
        Noisy counts, ``[queries, classes]``; negative ones may occur.

    Raises:
        InputError: the votes are not what the event accounts for; no noise has been drawn then.

    Example:
        >>> from dpsynth.privacy.entropy import SeededEntropy
        >>> event = TeacherVotes("labels", teachers=3, queries=2, classes=2, sigma=0.3)
        >>> votes = np.array([[0, 1], [0, 1], [0, ABSTAINS]])
        >>> noisy_votes(votes, event, SeededEntropy(1)).shape
        (2, 2)
    """
    name = f"event '{event.name}'"
    if not event.decided:
        raise InputError(f"{name}: its noise is not decided; calibrate a plan first")
    if votes.dtype.kind != "i" or votes.shape != (event.teachers, event.queries):
        raise InputError(
            f"{name} accounts for {event.teachers} teachers that vote once, in whole numbers, on "
            f"each of {event.queries} queries"
        )
    if votes.min() < ABSTAINS or votes.max() >= event.classes:
        raise InputError(f"{name}: a vote names none of its {event.classes} classes")
    counts = np.stack([(votes == place).sum(axis=0) for place in range(event.classes)], axis=1)
    (noise,) = gaussian_noise(event, entropy, [(event.sigma, counts.size)])
    return counts.astype(np.int64) + noise.reshape(counts.shape)
