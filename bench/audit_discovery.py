"""Games on the discovery of codes: codes that others have too, and codes of one unit alone.

The attacker knows everything but whether one more unit is there. It has as many different codes as
count, so that it moves the noisy numbers as far as it can. In the first games many others have each
of these codes, all are found, and the attacker sees the noisy numbers, which a fit does not even
publish. In the second nobody else has them, and one that is found gives the unit away. The same two
games are played on counts of keys that nobody declared, whose noisy numbers are published.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np
from audit_counts import CLAIM, Blocks, Silence
from audit_linked_codes import in_tables, package
from distinguishing_game import Game
from tradeoff_curves import GaussianCurve

from dpsynth.models import discovery_event
from dpsynth.privacy import discovery
from dpsynth.privacy.discovery import Occurrences, key_counts, select_codes
from dpsynth.privacy.discovery_events import MASS, CodeDiscovery, KeyCounts
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.events import UNDECIDED
from dpsynth.privacy.plan import PrivacyPlan, Share

OTHERS = 60  # units with each code that is shared
FIXED = 2 * MASS  # a threshold that follows from no delta

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class DiscoveryCurve:
    """A Gaussian mechanism, and a delta on top of it.

    Attributes:
        mu: of the noise.
        aside: the delta that the threshold takes.
    """

    mu: float
    aside: float

    def deltas(self, dial: float, epsilons: Floats) -> Floats:
        """Return the least delta at each epsilon."""
        return np.minimum(GaussianCurve(self.mu).deltas(dial, epsilons) + self.aside, 1.0)

    def epsilon(self, dial: float, delta: float) -> float:
        """Return the epsilon at a delta."""
        return GaussianCurve(self.mu).epsilon(dial, delta - self.aside)


def paid(columns: int, rows: int) -> CodeDiscovery:
    """Return an event that has the whole claim for itself."""
    event = CodeDiscovery("codes", columns, rows, 0.1 * CLAIM.delta, UNDECIDED)
    found = PrivacyPlan.calibrate(CLAIM, [Share(event, 1.0)]).event("codes")
    assert isinstance(found, CodeDiscovery)
    return found


def neighbours(codes: int, others: int) -> tuple[Occurrences, Occurrences]:
    """Return units with one code each, and the same with one that has all codes."""
    each = np.repeat(np.arange(codes), others)
    units = np.arange(len(each))
    own = np.full(codes, len(units))
    without = Occurrences(units, each)
    return without, Occurrences(np.append(units, own), np.append(each, np.arange(codes)))


def game(
    name: str,
    event: CodeDiscovery,
    others: int,
    source: Entropy,
    broken: Callable[[], Any] = nullcontext,
    *,
    halved: bool = False,
    silent: bool = False,
    sides: Sequence[Occurrences] | None = None,
) -> Game:
    """Make a game: does the unit's presence show in the codes that are found, or in their counts?

    Args:
        name: of the game.
        event: paid for by the claim.
        others: units with each of the codes.
        source: of the noise.
        broken: what breaks the mechanism.
        halved: the twin with half the noise.
        silent: the twin with exact counts.
        sides: without the unit, and with it; as `neighbours` if None.
    """
    entropy: Any = Silence(0) if silent else Blocks(source, halved=halved)
    sides = sides or neighbours(event.most_codes, others)

    def scores(member: bool, runs: int) -> Floats:
        with broken():
            seen = [select_codes(sides[member], event, entropy) for _ in range(runs)]
        counts = [float(one.counts.sum()) if others else float(len(one.codes)) for one in seen]
        return np.asarray(counts)

    with broken():
        exact = [float(select_codes(side, event, Silence(0)).counts.sum()) for side in sides]
    middle = sum(exact) / 2
    curve = DiscoveryCurve(event.mu(), event.delta)
    cut = 0.5 if silent or not others else middle
    tight = others > 1 and not silent
    return Game(name, scores, curve, CLAIM.epsilon, CLAIM.delta, cut=cut, tight=tight)


def paid_keys(rows: int, *, once: bool) -> KeyCounts:
    """Return counts of undeclared keys that have the whole claim for themselves."""
    event = KeyCounts("keys", rows, once, 0.1 * CLAIM.delta, UNDECIDED)
    found = PrivacyPlan.calibrate(CLAIM, [Share(event, 1.0)]).event("keys")
    assert isinstance(found, KeyCounts)
    return found


def key_game(
    name: str,
    event: KeyCounts,
    others: int,
    source: Entropy,
    broken: Callable[[], Any] = nullcontext,
    *,
    honest: KeyCounts | None = None,
    halved: bool = False,
) -> Game:
    """Make a game: does a unit show in the keys that are listed, or in their noisy counts?

    Args:
        name: of the game.
        event: the mechanism that is played.
        others: units with each of the keys.
        source: of the noise.
        broken: what breaks the mechanism.
        honest: the event that was claimed, if it is not the one that is played.
        halved: the twin with half the noise.
    """
    keys = event.rows_per_unit if event.once or not others else 1
    each = np.repeat(np.arange(keys), others)
    own = np.arange(event.rows_per_unit) % keys
    sides = (
        Occurrences(np.arange(len(each)), each),
        Occurrences(
            np.append(np.arange(len(each)), np.full(len(own), len(each))), np.append(each, own)
        ),
    )
    entropy: Any = Blocks(source, halved=halved)

    def scores(member: bool, runs: int) -> Floats:
        with broken():
            seen = [key_counts(sides[member], event, entropy) for _ in range(runs)]
        counts = [float(one.counts.sum()) if others else float(len(one.codes)) for one in seen]
        return np.asarray(counts)

    claimed = honest or event
    curve = DiscoveryCurve(claimed.mu(), claimed.delta)
    cut = keys * others + event.rows_per_unit / 2 if others else 0.5
    return Game(name, scores, curve, CLAIM.epsilon, CLAIM.delta, cut=cut, tight=others > 1)


def fixed_threshold_of_keys() -> Any:
    """Broken twin: a key is listed from two rows on, whatever delta is."""
    return mock.patch.object(KeyCounts, "threshold", 2)


def in_full() -> Any:
    """Broken twin: each code of a unit counts as a whole unit."""
    return mock.patch.object(discovery, "weight", lambda codes: MASS)


def fixed_threshold() -> Any:
    """Broken twin: a code is found from two units on, whatever delta is."""
    return mock.patch.object(CodeDiscovery, "threshold", FIXED)


LINKED = "in four linked tables"
KEYS = {"keys of patients": True, "keys of rows": False}
SHAPES = {"one code": (1, 1), "three columns, four rows": (3, 4)}


def linked_game(name: str, source: Entropy, *, apart: bool = False, alone: bool = False) -> Game:
    """Make the game of a patient whose codes stand in all of her tables."""
    event = discovery_event(package(OTHERS), CLAIM)
    assert event is not None
    others = 0 if alone else OTHERS
    sides = [
        in_tables(paid(1, 1), member=member, others=others, apart=apart) for member in (False, True)
    ]
    return game(name, paid(event.columns, event.rows_per_unit), others, source, sides=sides)


def sound(source: Entropy) -> list[Game]:
    """List the games on the mechanism as it is."""
    games = [
        linked_game(f"codes of many, {LINKED}", source),
        linked_game(f"codes of one alone, {LINKED}", source, alone=True),
    ]
    for words, shape in SHAPES.items():
        event = paid(*shape)
        games.append(game(f"codes of many, {words}", event, OTHERS, source))
        games.append(game(f"codes of one alone, {words}", event, 0, source))
    for words, once in KEYS.items():
        keys = paid_keys(4, once=once)
        games.append(key_game(f"{words}, of many", keys, OTHERS, source))
        games.append(key_game(f"{words}, of one alone", keys, 0, source))
    return games


def mutants(source: Entropy) -> list[Game]:
    """List the games on its broken twins."""
    games = [linked_game(f"codes of many, {LINKED}: each table apart", source, apart=True)]
    for words, shape in SHAPES.items():
        event = paid(*shape)
        many, alone = f"codes of many, {words}", f"codes of one alone, {words}"
        games.append(game(f"{many}: half the noise", event, OTHERS, source, halved=True))
        games.append(game(f"{alone}: a fixed threshold", event, 0, source, fixed_threshold))
        if event.most_codes > 1:
            games.append(game(f"{many}: each code in full", event, OTHERS, source, in_full))
    for words, once in KEYS.items():
        keys, cheap = paid_keys(8, once=once), paid_keys(1, once=once)
        cheap = replace(
            cheap, rows_per_unit=8, sigma=cheap.sigma if once else max(cheap.sigma, 3.0)
        )
        many, alone = f"{words}, of many", f"{words}, of one alone"
        games.append(key_game(f"{many}: half the noise", keys, OTHERS, source, halved=True))
        games.append(key_game(f"{many}: paid as one row", cheap, OTHERS, source, honest=keys))
        fixed = fixed_threshold_of_keys
        games.append(key_game(f"{alone}: a fixed threshold", keys, 0, source, fixed))
    event = paid(1, 1)
    units = -(-event.threshold // MASS) - 1  # one fewer than the threshold needs
    games.append(game("codes of many, one code: exact counts", event, units, source, silent=True))
    return games
