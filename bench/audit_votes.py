"""Games on votes of teachers (PATE): does a patient show by the votes of the teacher she has?

The attacker knows all votes of all other teachers, and that hers turns all of them: without her
she names the first class of every row, with her the second.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from audit_counts import CLAIM, Blocks
from distinguishing_game import Game
from tradeoff_curves import GaussianCurve

from dpsynth.privacy.answer_events import TeacherVotes
from dpsynth.privacy.answers import ABSTAINS, noisy_votes
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.events import UNDECIDED
from dpsynth.privacy.plan import PrivacyPlan, Share

EVENT = TeacherVotes("votes", teachers=2, queries=20, classes=2, sigma=UNDECIDED)


def paid(event: TeacherVotes) -> TeacherVotes:
    """Return an event that has the whole claim for itself."""
    [found] = PrivacyPlan.calibrate(CLAIM, [Share(event, 1.0)]).events
    assert isinstance(found, TeacherVotes)
    return found


def votes_game(
    name: str,
    event: TeacherVotes,
    source: Entropy,
    *,
    without: int = 0,
    shared: bool = False,
    halved: bool = False,
) -> Game:
    """Make a game.

    Args:
        name: of the game.
        event: with its noise.
        source: of the noise.
        without: what her teacher votes without her.
        shared: the broken twin: she is with all of the teachers.
        halved: the broken twin: noise at half the scale that was accounted for.
    """
    entropy: Any = Blocks(source, halved=halved)
    steps = np.array([-1 if without != ABSTAINS else 0, 1])

    def scores(member: bool, runs: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        votes = np.full((event.teachers, event.queries), ABSTAINS)
        votes[: event.teachers if shared else 1] = 1 if member else without
        return np.array(
            [float((noisy_votes(votes, event, entropy) @ steps).sum()) for _ in range(runs)]
        )

    many = event.teachers if shared else 1
    ends = (many * event.queries, 0 if without == ABSTAINS else -many * event.queries)
    curve = GaussianCurve(event.mu())
    tight = without != ABSTAINS
    return Game(
        name, scores, curve, CLAIM.epsilon, CLAIM.delta, cut=sum(ends) / 2 + 0.5, tight=tight
    )


def sound(source: Entropy) -> list[Game]:
    """List the games on the mechanism as it is."""
    event = paid(EVENT)
    return [
        votes_game("votes: a teacher who turns all votes", event, source),
        votes_game("votes: a teacher of one patient", event, source, without=ABSTAINS),
    ]


def mutants(source: Entropy) -> list[Game]:
    """List the games on broken twins."""
    honest = paid(EVENT)
    cheap = replace(honest, sigma=honest.sigma / 2**0.5)
    game = votes_game("votes: paid as one count in each row", cheap, source)
    return [
        votes_game("votes: half the noise", honest, source, halved=True),
        replace(game, curve=GaussianCurve(honest.mu())),
        votes_game("votes: a patient of two teachers", honest, source, shared=True),
    ]
