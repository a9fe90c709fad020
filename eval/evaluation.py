"""An evaluation: all parts on one set of tables, as one document. Internal from end to end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpsynth.errors import InputError
from dpsynth.eval.core import PartResult, Tables, described
from dpsynth.eval.fidelity import copies, fidelity, rules
from dpsynth.eval.gates import Gate, judged
from dpsynth.eval.utility import trials, usefulness
from dpsynth.eval.utility.subgroups import subgroups

FORMAT, VERSION = "dpsynth-evaluation", 1

Progress = Callable[[str, float], None]
PARTS = ("fidelity", "rules", "copies", "models", "usefulness", "subgroups")
FEW = 100  # compared rows, below which most figures are chance


def silent(stage: str, part: float) -> None:
    """Show nothing."""


def evaluation(
    tables: Tables,
    *,
    limits: Sequence[Gate],
    noise: float = 0.0,
    seed: int = 0,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Measure a synthetic table against its source, and a holdout if there is one.

    Args:
        tables: as read.
        limits: the internal gates.
        noise: of a count, as the plan of the run announces it; see `gates.Gate.verdicts`.
        seed: of subsamples, splits and bootstraps; the same seed and tables give the same figures.
        progress: called with a stage and its fraction done.

    Returns:
        The document, in JSON types: measures by key, details of each part, notes, verdicts.

    Raises:
        InputError: the seed is no whole number from 0.
    """
    if isinstance(seed, bool) or seed < 0:
        raise InputError("the seed of an evaluation is a whole number from 0")
    measures: dict[str, Any] = {}
    details: dict[str, Any] = {}
    notes = [f"the synthetic table departs from the schema: {one}" for one in tables.departures]
    if tables.size < FEW:
        notes.append(f"only {tables.size} rows of each table are compared: most figures are chance")
    for name, part in _parts(tables, seed, progress):
        measures |= {measure.key: measure.to_dict() for measure in part.measures}
        alone = set(part.details) == {name}  # a part that is one list
        if part.details:
            details[name] = part.details[name] if alone else part.details
        notes += [note for note in part.notes if note not in notes]
    schema = tables.codec.published  # as the audit of the same table names it
    return {
        "format": FORMAT,
        "version": VERSION,
        "internal": True,
        "schema": {"name": schema.name, "title": schema.title, "sha256": schema.hash()},
        "tables": {
            "source": described(tables.source),
            "synthetic": {"rows": tables.synthetic.rows},
            "holdout": None if tables.holdout is None else described(tables.holdout),
        },
        "run": None,
        "seed": seed,
        "measures": measures,
        "parts": details,
        "notes": notes,
        "gates": judged(measures, limits, noise),
    }


def _parts(tables: Tables, seed: int, progress: Progress) -> Iterator[tuple[str, PartResult]]:
    """Measure part by part, each with a source of chance of its own."""
    sources = dict(zip(PARTS, np.random.default_rng(seed).spawn(len(PARTS)), strict=True))
    progress("fidelity", 0.0)
    yield "fidelity", fidelity(tables, sources["fidelity"])
    yield "rules", rules(tables, sources["rules"])
    yield "copies", copies(tables, sources["copies"])
    progress("models", 0.0)
    tried, notes = trials(tables, sources["models"])
    progress("usefulness", 0.0)
    useful = usefulness(tables, sources["usefulness"], tried=tried)
    yield "usefulness", replace(useful, notes=(*notes, *useful.notes))
    progress("subgroups", 0.0)
    yield "subgroups", subgroups(tables, sources["subgroups"], tried=tried)
