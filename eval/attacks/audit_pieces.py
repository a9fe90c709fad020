"""The attacks and controls of an audit, as pieces of work that several processes can share.

Each piece draws from a source of its own, so its result is the same wherever it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from dpsynth._util.short_repr import short_repr
from dpsynth.errors import DpsynthError
from dpsynth.eval.attack_stats import Attack, People, TableAttack
from dpsynth.eval.attack_stats.table_attack import Claim
from dpsynth.eval.attacks.controls import CONTROLS, Control, ControlTable, control_table
from dpsynth.eval.core import Tables

Progress = Callable[[str, float], None]
Result = TypeVar("Result")


@dataclass(frozen=True, repr=False)
class Played(Generic[Result]):
    """What came of a piece.

    Attributes:
        result: None where an unexpected error ended it.
        error: the name of that error's class.
    """

    result: Result | None
    error: str | None = None


def guarded(play: Callable[[], Result], tolerant: bool) -> Played[Result]:
    """Play, and note an unexpected error by its name alone, if told to be tolerant."""
    try:
        return Played(play())
    except Exception as error:
        if not tolerant or isinstance(error, DpsynthError | MemoryError):
            raise
        return Played(None, type(error).__name__)


@dataclass(frozen=True, repr=False)
class AuditPieces:
    """The work: attacks on the table, then each control with all attacks.

    Attributes:
        tables: that are attacked.
        people: who play.
        attacks: that are made.
        claim: (epsilon, delta) of the run that the table is from, if it has one.
        seed: of the audit.
        tolerant: whether an unexpected error is noted, and not raised.
        progress: called with a stage and its fraction done; None in other processes.
    """

    tables: Tables
    people: People
    attacks: Sequence[TableAttack]
    claim: Claim | None
    seed: int
    tolerant: bool
    progress: Progress | None = None

    def __repr__(self) -> str:
        """Show nothing."""
        return short_repr(self)

    def __len__(self) -> int:
        """How many pieces there are."""
        return len(self.attacks) + len(CONTROLS)

    def warm(self) -> None:
        """Nothing: the tables bring what they need."""

    def __call__(self, number: int) -> Played[Attack] | Played[list[Control]]:
        """Make an attack, or play a control."""
        if number >= len(self.attacks):
            return guarded(
                partial(self._play, list(CONTROLS)[number - len(self.attacks)]), self.tolerant
            )
        attack, source = self.attacks[number], self.sources()[number]
        progress = None
        if self.progress is not None:
            stage = attack.key.replace("_", " ")
            self.progress(stage, 0.0)
            progress = partial(self.progress, stage)
        return guarded(
            partial(attack.play, self.tables, self.people, source, self.claim, progress),
            self.tolerant,
        )

    def sources(self) -> list[np.random.Generator]:
        """Return a source for each attack, and the last one for all controls."""
        _, *sources = np.random.default_rng(self.seed).spawn(len(self.attacks) + 2)
        return sources

    def control(self, key: str) -> tuple[ControlTable, np.random.Generator]:
        """Make the table of a control, and return the source from which attacks on it draw."""
        of_controls = self.sources()[-1].spawn(len(CONTROLS))
        source = dict(zip(CONTROLS, of_controls, strict=True))[key]
        return control_table(key, self.tables, self.people, source), source

    def _play(self, key: str) -> list[Control]:
        if self.progress is not None:
            self.progress("controls", list(CONTROLS).index(key) / len(CONTROLS))
        table, source = self.control(key)
        return table.play(self.attacks, self.people, source)


def people_of(tables: Tables, seed: int) -> People:
    """Deal out who plays in an audit of this seed.

    Raises:
        InputError: there is no holdout, or too few units to attack.
    """
    return People.of(tables, np.random.default_rng(seed).spawn(1)[0])
