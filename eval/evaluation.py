"""An evaluation: all parts on one set of tables, as one document. Internal from end to end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpsynth.errors import InputError
from dpsynth.eval.core import Tables, described
from dpsynth.eval.evaluation_pieces import Progress, measured, silent
from dpsynth.eval.gates import Gate, judged

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
        limits: the internal gates.
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
        "gates": judged(measures, limits, noise),
    }
