"""An audit: all attacks on one set of tables and on one training, with their controls and powers.

Internal from end to end. A verdict has three values: ``failed``, for a broken audit (a negative
control claimed a leak, no control was played, or an attack ended with an error), which proves
nothing; ``found``, where an attack succeeded beyond chance; and ``quiet``, which means no more than
the powers and the positive controls say: `dpsynth.eval.attacks.sight` has them for each attack.

The attacks and controls of an audit, as pieces of work that several processes can share.

Each piece draws from a source of its own, so its result is the same wherever it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from dpsynth._util.engines import in_order, local_engine
from dpsynth._util.short_repr import short_repr
from dpsynth.errors import DpsynthError, InputError
from dpsynth.eval.attack_stats import Attack, People, TableAttack
from dpsynth.eval.attack_stats.table_attack import Claim
from dpsynth.eval.attacks.controls import CONTROLS, Control, ControlTable, control_table
from dpsynth.eval.attacks.registry import ATTACKS
from dpsynth.eval.attacks.sight import sights, verdict_of
from dpsynth.eval.core import PartResult, Tables, described
from dpsynth.schema import Schema

FORMAT, VERSION = "dpsynth-audit", 1
Progress = Callable[[str, float], None]
Broken = list[dict[str, str]]  # attacks that ended with an error: attack, where, error


def attacked(
    tables: Tables,
    *,
    claim: Claim | None,
    seed: int,
    progress: Progress,
    plugins: Sequence[TableAttack] = (),
    broken: Broken | None = None,
    workers: int = 1,
) -> tuple[dict[str, Attack], list[Control]]:
    """Attack a synthetic table, and play the controls that need no fit.

    Args:
        tables: as read; with a holdout.
        claim: (epsilon, delta) of the run that the table is from, if it has one.
        seed: of all draws; the same seed and tables give the same figures.
        progress: called with a stage and its fraction done.
        plugins: attacks of other packages. They come last and draw from sources of their own, one
            for each key, so the figures of the other attacks do not depend on them.
        broken: gets an entry for each attack or control that ends with an unexpected error, while
            the others go on; None to let such an error out.
        workers: processes that share the work; each gets a copy of the tables. Attacks of other
            packages are made by this process. The figures are the same with any number.

    Returns:
        The attacks by the name of their part, and the controls.

    Raises:
        InputError: there is no holdout, or too few people, or the seed is no whole number from 0.
    """
    if isinstance(seed, bool) or seed < 0:
        raise InputError("the seed of an audit is a whole number from 0")
    people, alone = people_of(tables, seed), workers == 1
    tolerant = broken is not None
    pieces = AuditPieces(
        tables, people, ATTACKS, claim, seed, tolerant, progress if alone else None
    )
    attacks, played = dict[str, Attack](), list[Control]()

    def take_attack(attack: TableAttack, made: Played[Attack]) -> None:
        note = f"{attack.title}: the attack ended with an error"
        attacks[attack.key] = made.result or Attack(PartResult(notes=(note,)))
        note_error(attack.key, "table", made)

    def note_error(attack: str, where: str, made: Played[Any]) -> None:
        if made.error is not None and broken is not None:
            broken.append({"attack": attack, "where": where, "error": made.error})

    def take(number: int, made: Any) -> None:
        if number < len(ATTACKS):
            take_attack(ATTACKS[number], made)
        else:
            played.extend(made.result or [])
            note_error("controls", f"control {list(CONTROLS)[number - len(ATTACKS)]}", made)
        if not alone:
            progress("attacks", (number + 1) / len(pieces))

    in_order(local_engine(workers), pieces, len(pieces), take)
    own = {attack.key: np.random.default_rng([seed, *attack.key.encode()]) for attack in plugins}
    for attack in plugins:
        stage, source = attack.key.replace("_", " "), own[attack.key]
        progress(stage, 0.0)
        play = partial(attack.play, tables, people, source, claim, partial(progress, stage))
        take_attack(attack, guarded(play, tolerant))
    for key in CONTROLS if plugins else ():
        table, _ = pieces.control(key)
        for attack in plugins:
            made = guarded(partial(table.play, [attack], people, own[attack.key]), tolerant)
            played.extend(made.result or [])
            note_error(attack.key, f"control {key}", made)
    return attacks, played


def audit(
    schema: Schema,
    attacks: dict[str, Attack],
    played: Sequence[Control],
    *,
    tables: Tables | None,
    seed: int,
    settings: dict[str, Any],
    broken: Broken | None = None,
) -> dict[str, Any]:
    """Put attacks and controls into one document, in JSON types.

    Args:
        schema: the public facts.
        attacks: by the name of their part.
        played: the controls.
        tables: that were attacked; None where only the training was.
        seed: of the audit.
        settings: what else was chosen.
        broken: attacks and controls that ended with an error, as `attacked` notes them.
    """
    findings = [finding for attack in attacks.values() for finding in attack.findings]
    notes: list[str] = []
    for attack in attacks.values():
        notes += [note for note in attack.part.notes if note not in notes]
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "internal": True,
        "schema": {"name": schema.name, "title": schema.title, "sha256": schema.hash()},
        "tables": None if tables is None else _described(tables),
        "run": None,
        "seed": seed,
        "settings": settings,
        "columns": len(schema.modelled),
        "measures": {
            one.key: one.to_dict() for attack in attacks.values() for one in attack.part.measures
        },
        "findings": [one.to_dict() for one in findings],
        "powers": [power.to_dict() for attack in attacks.values() for power in attack.powers],
        "controls": [one.to_dict() for one in played],
        "broken": list(broken or []),
        "parts": {name: attack.part.details for name, attack in attacks.items()},
        "notes": notes,
    }
    document["verdict"] = verdict_of(document)
    document["sights"] = [sight.to_dict() for sight in sights(document)]
    return document


def _described(tables: Tables) -> dict[str, Any]:
    holdout = tables.holdout
    return {
        "source": described(tables.source),
        "synthetic": {"rows": tables.synthetic.rows},
        "holdout": None if holdout is None else described(holdout),
    }


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
