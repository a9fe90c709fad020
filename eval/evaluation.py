"""An evaluation: all parts on one set of tables, as one document. Internal from end to end.

The parts of an evaluation, as pieces of work that several processes can share.

Pieces share no figure and no source of chance, so that their results are the same wherever they are
made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpsynth._util.engines import each_once, local_engine
from dpsynth.errors import InputError
from dpsynth.eval.core import PartResult, Tables, described
from dpsynth.eval.fidelity import (
    clinical_edits,
    copies,
    distributions,
    rows_told_apart,
    rules,
    sdmetrics_reports,
    together,
)
from dpsynth.eval.gates import Gate, judged
from dpsynth.eval.utility import trials, usefulness
from dpsynth.eval.utility.subgroups import subgroups

Progress = Callable[[str, float], None]
Parts = Mapping[str, PartResult]
Piece = Callable[[Tables, np.random.Generator], Parts]


def silent(stage: str, part: float) -> None:
    """Show nothing."""


def uses(tables: Tables, rng: np.random.Generator) -> Parts:
    """Train models, and use them for usefulness and subgroups."""
    of_models, of_usefulness, of_subgroups = rng.spawn(3)
    tried, notes = trials(tables, of_models)
    useful = usefulness(tables, of_usefulness, tried=tried)
    return {
        "usefulness": replace(useful, notes=(*notes, *useful.notes)),
        "subgroups": subgroups(tables, of_subgroups, tried=tried),
    }


def broken_and_copied(tables: Tables, rng: np.random.Generator) -> Parts:
    """Look for rows that break rules, and for copies of real rows."""
    of_rules, of_copies, of_edits = rng.spawn(3)
    return {
        "rules": rules(tables, of_rules),
        "copies": copies(tables, of_copies),
        "clinical_edits": clinical_edits(tables, of_edits),
    }


def fidelity_by(part: Callable[[Tables, np.random.Generator], PartResult]) -> Piece:
    """Return a piece that is one of several of the part "fidelity"."""
    return lambda tables, rng: {"fidelity": part(tables, rng)}


PIECES: dict[str, Piece] = {  # the longest ones first
    "usefulness": uses,
    "distributions": fidelity_by(distributions),
    "sdmetrics": fidelity_by(sdmetrics_reports),
    "rows told apart": fidelity_by(rows_told_apart),
    "rules and copies": broken_and_copied,
}
ORDER = ("distributions", "rows told apart", "sdmetrics", "rules and copies", "usefulness")


@dataclass(frozen=True, repr=False)
class _Pieces:
    """The work: each piece of an evaluation by its number in `PIECES`."""

    tables: Tables
    seed: int
    progress: Progress | None

    def warm(self) -> None:
        """Nothing: the tables bring what they need."""

    def __call__(self, number: int) -> Parts:
        """Measure a piece, with its own source of chance."""
        name = list(PIECES)[number]
        if self.progress is not None:
            self.progress(name, 0.0)
        source = np.random.default_rng(self.seed).spawn(len(PIECES))[number]
        return PIECES[name](self.tables, source)


def measured(
    tables: Tables, seed: int, *, workers: int = 1, progress: Progress = silent
) -> dict[str, PartResult]:
    """Measure all parts of an evaluation.

    Args:
        tables: as read.
        seed: of all draws.
        workers: processes that share the pieces; each gets a copy of the tables.
        progress: called with a stage and its fraction done.

    Returns:
        Parts by name, in the order of the document. They are the same with any number of workers.
    """
    alone = workers == 1
    found: dict[str, Parts] = {}

    def take(number: int, parts: Parts) -> None:
        found[list(PIECES)[number]] = parts
        if not alone:
            progress("evaluation", len(found) / len(PIECES))

    work = _Pieces(tables, seed, progress if alone else None)
    each_once(local_engine(workers), work, len(PIECES), take)
    every: dict[str, list[PartResult]] = {}
    for name in ORDER:
        for part, result in found[name].items():
            every.setdefault(part, []).append(result)
    return {part: together(results) for part, results in every.items()}


FORMAT, VERSION = "dpsynth-evaluation", 1

FEW = 100  # compared rows, below which most figures are chance


def evaluation(
    tables: Tables,
    *,
    limits: Sequence[Gate],
    noise: float = 0.0,
    seed: int = 0,
    workers: int = 1,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Measure a synthetic table against its source, and a holdout if there is one.

    Args:
        tables: as read.
        limits: the internal gates; those of histories are left out.
        noise: of a count, as the plan of the run announces it; see `gates.Gate.verdicts`.
        seed: of subsamples, splits and bootstraps; the same seed and tables give the same figures.
        workers: processes that share the work; the figures are the same with any number.
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
    notes = [f"the synthetic table: {one}" for one in tables.notes]
    notes += [f"the synthetic table departs from the schema: {one}" for one in tables.departures]
    if tables.size < FEW:
        notes.append(f"only {tables.size} rows of each table are compared: most figures are chance")
    for name, part in measured(tables, seed, workers=workers, progress=progress).items():
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
        "gates": judged(measures, [one for one in limits if not one.of_histories], noise),
    }
