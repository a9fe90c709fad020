"""An audit: all attacks on one set of tables and on one training, with their controls and powers.

Internal from end to end. A verdict has three values: ``failed``, where a control did not do what it
must, so that the audit proves nothing; ``found``, where an attack succeeded beyond chance; and
``quiet``, which means no more than the powers say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpsynth.errors import InputError
from dpsynth.eval.attack_stats import Attack, People, TableAttack
from dpsynth.eval.attack_stats.table_attack import Claim
from dpsynth.eval.attacks.controls import Control, controls
from dpsynth.eval.attacks.registry import ATTACKS
from dpsynth.eval.core import Tables, described
from dpsynth.schema import Schema

FORMAT, VERSION = "dpsynth-audit", 1
FAILED, FOUND, QUIET = "failed", "found", "quiet"

Progress = Callable[[str, float], None]
STAGES = ("people", *(one.key for one in ATTACKS), "controls")


def attacked(
    tables: Tables,
    *,
    claim: Claim | None,
    seed: int,
    progress: Progress,
    plugins: Sequence[TableAttack] = (),
) -> tuple[dict[str, Attack], list[Control]]:
    """Attack a synthetic table, and play the controls that need no fit.

    Args:
        tables: as read; with a holdout.
        claim: (epsilon, delta) of the run that the table is from, if it has one.
        seed: of all draws; the same seed and tables give the same figures.
        progress: called with a stage and its fraction done.
        plugins: attacks of other packages. They come last and draw from sources of their own, one
            for each key, so the figures of the other attacks do not depend on them.

    Returns:
        The attacks by the name of their part, and the controls.

    Raises:
        InputError: there is no holdout, or too few people, or the seed is no whole number from 0.
    """
    if isinstance(seed, bool) or seed < 0:
        raise InputError("the seed of an audit is a whole number from 0")
    sources = dict(zip(STAGES, np.random.default_rng(seed).spawn(len(STAGES)), strict=True))
    people = People.of(tables, sources["people"])

    attacks = dict[str, Attack]()
    for attack in ATTACKS:
        progress(attack.key.replace("_", " "), 0.0)
        attacks[attack.key] = attack.play(tables, people, sources[attack.key], claim)
    progress("controls", 0.0)
    played, control_tables = controls(tables, people, sources["controls"], ATTACKS)
    for attack in plugins:
        progress(attack.key.replace("_", " "), 0.0)
        source = np.random.default_rng([seed, *attack.key.encode()])
        attacks[attack.key] = attack.play(tables, people, source, claim)
        for table in control_tables:
            played += table.play([attack], people, source)
    return attacks, played


def audit(
    schema: Schema,
    attacks: dict[str, Attack],
    played: Sequence[Control],
    *,
    tables: Tables | None,
    seed: int,
    settings: dict[str, Any],
) -> dict[str, Any]:
    """Put attacks and controls into one document, in JSON types.

    Args:
        schema: the public facts.
        attacks: by the name of their part.
        played: the controls.
        tables: that were attacked; None where only the training was.
        seed: of the audit.
        settings: what else was chosen.
    """
    findings = [one for attack in attacks.values() for one in attack.findings]
    notes: list[str] = []
    for attack in attacks.values():
        notes += [note for note in attack.part.notes if note not in notes]
    return {
        "format": FORMAT,
        "version": VERSION,
        "internal": True,
        "schema": {"name": schema.name, "title": schema.title, "sha256": schema.hash()},
        "tables": None if tables is None else _described(tables),
        "run": None,
        "seed": seed,
        "settings": settings,
        "verdict": verdict(played, any(one.found for one in findings)),
        "measures": {
            one.key: one.to_dict() for attack in attacks.values() for one in attack.part.measures
        },
        "findings": [one.to_dict() for one in findings],
        "powers": [one.to_dict() for attack in attacks.values() for one in attack.powers],
        "controls": [one.to_dict() for one in played],
        "parts": {name: attack.part.details for name, attack in attacks.items()},
        "notes": notes,
    }


def verdict(played: Sequence[Control], leak_found: bool) -> str:
    """Return ``failed``, ``found`` or ``quiet``."""
    if not played or not all(control.passed for control in played):
        return FAILED
    return FOUND if leak_found else QUIET


def _described(tables: Tables) -> dict[str, Any]:
    holdout = tables.holdout
    return {
        "source": described(tables.source),
        "synthetic": {"rows": tables.synthetic.rows},
        "holdout": None if holdout is None else described(holdout),
    }
