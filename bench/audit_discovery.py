"""Games on the discovery of codes: codes that others have too, and codes of one unit alone.

The attacker knows everything but whether one more unit is there. It has as many different codes as
count, so that it moves the noisy numbers as far as it can. In the first games many others have each
of these codes, all are found, and the attacker sees the noisy numbers, which a fit does not even
publish. In the second nobody else has them, and one that is found gives the unit away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from audit_counts import CLAIM, Blocks, Silence

from dpsynth.encoding.linked import code_search
from dpsynth.eval.attack_stats.distinguishing_game import Game
from dpsynth.eval.attack_stats.tradeoff import GaussianCurve
from dpsynth.models import discovery_event
from dpsynth.privacy.discovery import selection
from dpsynth.privacy.discovery.event import MASS, CodeDiscovery
from dpsynth.privacy.discovery.selection import Occurrences, Selected, select_codes
from dpsynth.privacy.entropy import Entropy, SeededEntropy
from dpsynth.privacy.events import UNDECIDED
from dpsynth.privacy.plan import PrivacyPlan, Share
from dpsynth.schema import LinkedSchema
from dpsynth.tables import open_linked

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


def in_full() -> Any:
    """Broken twin: each code of a unit counts as a whole unit."""
    return mock.patch.object(selection, "weight", lambda codes: MASS)


def fixed_threshold() -> Any:
    """Broken twin: a code is found from two units on, whatever delta is."""
    return mock.patch.object(CodeDiscovery, "threshold", FIXED)


LINKED = "in four linked tables"
SHAPES = {"one code": (1, 1), "three columns, four rows": (3, 4)}


TABLES, ROWS = ("stays", "drugs", "tests"), 3  # beside the table of patients; rows of each patient


def package() -> LinkedSchema:
    """Return linked tables with a column of codes in each, all of which are discovered."""
    codes = {"codes": {"discover": True, "pattern": "[A-Z][0-9]{3}"}}
    key, code = {"name": "id", "type": "string"}, {"name": "code", "type": "string"}
    code["dpsynth"] = codes  # type: ignore[assignment]
    foreign = [{"fields": ["id"], "reference": {"resource": "patients", "fields": ["id"]}}]
    number = {"name": "number", "type": "integer"}
    own = {"order": "number", "max_rows": {"value": ROWS, "basis": "game"}}
    resources: list[dict[str, Any]] = [
        {"name": "patients", "schema": {"primaryKey": "id", "fields": [key, code]}}
    ]
    for name in TABLES:
        fields = {"foreignKeys": foreign, "fields": [key, number, code]}
        resources.append({"name": name, "schema": fields, "dpsynth": own})
    population = {"value": OTHERS, "basis": "game"}
    facts = {"version": 1, "patients": "patients", "population": population}
    return LinkedSchema.from_dict({"name": "ward", "resources": resources, "dpsynth": facts})


def in_tables(*, member: bool, others: int, apart: bool) -> Occurrences:
    """Return what the search asks of the mechanism about linked tables.

    Args:
        member: whether there is a patient with as many different codes in each table as count.
        others: patients with each of these codes, and no other.
        apart: the broken twin: a patient is somebody else in each table.
    """
    names = [f"{letter}{place:03}" for letter in "ABCD" for place in range(ROWS)]
    rows: dict[str, list[tuple[str, int, str]]] = {name: [] for name in ("patients", *TABLES)}
    for table, letter in zip(rows, "ABCD", strict=True):
        several = names[:1] if table == "patients" else [c for c in names if c[0] == letter]
        for code in several:
            rows[table] += [(f"{code}-{other}", 0, code) for other in range(others)]
        if member:
            rows[table] += [("member", place, code) for place, code in enumerate(several)]
    ids = {"nobody", *(row[0] for own in rows.values() for row in own)}
    rows["patients"] += [(one, 0, "") for one in sorted(ids - {row[0] for row in rows["patients"]})]
    tables = {
        name: pd.DataFrame(own, columns=["id", "number", "code"]).astype(str)
        for name, own in rows.items()
    }
    tables["patients"] = tables["patients"][["id", "code"]]
    schema, asked, kept, calls = package(), [], code_search._kept, []

    def watched(occurrences: Occurrences, *_: Any) -> Selected:
        asked.append(occurrences)
        return Selected(np.empty(0, np.int64), np.empty(0, np.int64))

    def elsewhere(*arguments: Any) -> Any:
        owners, codes = kept(*arguments)
        calls.append(1)
        return owners + (len(ids) * len(calls) if apart else 0), codes

    with (
        mock.patch.object(code_search, "select_codes", watched),
        mock.patch.object(code_search, "_kept", elsewhere),
    ):
        opened = open_linked(tables, schema)
        code_search.find_codes_of_patients(opened, schema, paid(1, 1), SeededEntropy(0))
    return asked[0]


def linked_game(name: str, source: Entropy, *, apart: bool = False, alone: bool = False) -> Game:
    """Make the game of a patient whose codes stand in all of her tables."""
    event = discovery_event(package(), CLAIM)
    assert event is not None
    others = 0 if alone else OTHERS
    sides = [in_tables(member=member, others=others, apart=apart) for member in (False, True)]
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
    event = paid(1, 1)
    units = -(-event.threshold // MASS) - 1  # one fewer than the threshold needs
    games.append(game("codes of many, one code: exact counts", event, units, source, silent=True))
    return games
