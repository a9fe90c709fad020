"""An audit: all attacks on one set of tables and on one training, with their controls and powers.

Internal from end to end. A verdict has three values: ``failed``, for a broken audit (a negative
control claimed a leak, no control was played, or an attack ended with an error), which proves
nothing; ``found``, where an attack succeeded beyond chance; and ``quiet``, which means no more than
the powers and the positive controls say: `dpsynth.eval.attacks.sight` has them for each attack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from dpsynth.errors import DpsynthError, InputError
from dpsynth.eval.attack_stats import Attack, People, TableAttack
from dpsynth.eval.attack_stats.table_attack import Claim
from dpsynth.eval.attacks.controls import Control, ControlTable, controls
from dpsynth.eval.attacks.registry import ATTACKS
from dpsynth.eval.attacks.sight import sights, verdict_of
from dpsynth.eval.core import PartResult, Tables, described
from dpsynth.schema import Schema

FORMAT, VERSION = "dpsynth-audit", 1
Progress = Callable[[str, float], None]
Result = TypeVar("Result")
Broken = list[dict[str, str]]  # attacks that ended with an error: attack, where, error
STAGES = ("people", *(one.key for one in ATTACKS), "controls")


def attacked(
    tables: Tables,
    *,
    claim: Claim | None,
    seed: int,
    progress: Progress,
    plugins: Sequence[TableAttack] = (),
    broken: Broken | None = None,
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

    Returns:
        The attacks by the name of their part, and the controls.

    Raises:
        InputError: there is no holdout, or too few people, or the seed is no whole number from 0.
    """
    if isinstance(seed, bool) or seed < 0:
        raise InputError("the seed of an audit is a whole number from 0")
    sources = dict(zip(STAGES, np.random.default_rng(seed).spawn(len(STAGES)), strict=True))
    people = People.of(tables, sources["people"])

    def guarded(attack: str, place: str, play: Callable[[], Result], otherwise: Result) -> Result:
        try:
            return play()
        except Exception as error:
            if broken is None or isinstance(error, DpsynthError | MemoryError):
                raise
            broken.append({"attack": attack, "where": place, "error": type(error).__name__})
            return otherwise

    attacks = dict[str, Attack]()

    def attacked_by(attack: TableAttack, source: np.random.Generator) -> None:
        stage = attack.key.replace("_", " ")
        progress(stage, 0.0)
        note = f"{attack.title}: the attack ended with an error"
        attacks[attack.key] = guarded(
            attack.key,
            "table",
            lambda: attack.play(tables, people, source, claim, partial(progress, stage)),
            Attack(PartResult(notes=(note,))),
        )

    for attack in ATTACKS:
        attacked_by(attack, sources[attack.key])
    progress("controls", 0.0)
    played, control_tables = guarded(
        "controls",
        "controls",
        lambda: controls(
            tables, people, sources["controls"], ATTACKS, partial(progress, "controls")
        ),
        (list[Control](), list[ControlTable]()),
    )
    for attack in plugins:
        source = np.random.default_rng([seed, *attack.key.encode()])
        attacked_by(attack, source)
        for table in control_tables:
            played += guarded(
                attack.key,
                f"control {table.key}",
                partial(table.play, [attack], people, source),
                list[Control](),
            )
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
