"""Games on linked pairs: does a person who is in both registers show in how many pairs match?

The attacker knows all other pairs, and that the person's two records take part in as many pairs of
every cell as count.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from audit_counts import CLAIM, Blocks
from distinguishing_game import Game
from tradeoff_curves import GaussianCurve

from dpsynth.privacy.answer_events import LinkCounts
from dpsynth.privacy.answers import Links, link_counts
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.events import UNDECIDED
from dpsynth.privacy.plan import PrivacyPlan, Share

EVENT = LinkCounts("pairs", cells=4, cap=3, records=2, sigma=UNDECIDED)
FAR = 8  # pairs of each of her records where nothing caps them


def paid(event: LinkCounts) -> LinkCounts:
    """Return an event that has the whole claim for itself."""
    [found] = PrivacyPlan.calibrate(CLAIM, [Share(event.undecided(), 1.0)]).events
    assert isinstance(found, LinkCounts)
    return found


def pairs(event: LinkCounts, own: int, *, member: bool) -> Links:
    """Return her pairs with records that have no others, in every cell, or one pair of others."""
    ends = [(1, 1)]
    if member:
        ends += [(0, 10 + other) for other in range(own)]
        ends += [(10 + other, 0) for other in range(own)]
    first, second = np.array(ends, dtype=np.int64).T
    return Links(first, second, np.ones((len(ends), event.cells), bool))


def links_game(
    name: str,
    event: LinkCounts,
    source: Entropy,
    *,
    uncapped: bool = False,
    halved: bool = False,
    bound: LinkCounts | None = None,
) -> Game:
    """Make a game.

    Args:
        name: of the game.
        event: with its noise.
        source: of the noise.
        uncapped: the broken twin: all of her pairs count.
        halved: the broken twin: noise at half the scale that was accounted for.
        bound: whose claim is attacked; the event's own if None.
    """
    entropy: Any = Blocks(source, halved=halved)
    drawn = replace(event, cap=100) if uncapped else event
    own = FAR if uncapped else event.cap
    tables = {member: pairs(event, own, member=member) for member in (False, True)}

    def scores(member: bool, runs: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array(
            [float(link_counts(tables[member], drawn, entropy).sum()) for _ in range(runs)]
        )

    moved = event.cells * 2 * own
    curve = GaussianCurve((bound or event).mu())
    return Game(
        name,
        scores,
        curve,
        CLAIM.epsilon,
        CLAIM.delta,
        cut=event.cells + moved / 2 + 0.5,
        tight=True,
    )


def sound(source: Entropy) -> list[Game]:
    """List the games on the mechanism as it is."""
    return [links_game("links: a person of both registers", paid(EVENT), source)]


def mutants(source: Entropy) -> list[Game]:
    """List the games on broken twins."""
    honest = paid(EVENT)
    alone = replace(paid(replace(EVENT, records=1)), records=2)
    one_cell = replace(paid(replace(EVENT, cells=1)), cells=EVENT.cells)
    return [
        links_game("links: half the noise", honest, source, halved=True),
        links_game("links: paid for one register alone", alone, source, bound=honest),
        links_game("links: paid for one cell", one_cell, source, bound=honest),
        links_game("links: no cap", honest, source, uncapped=True),
    ]
