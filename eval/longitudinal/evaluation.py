"""An evaluation of histories: all parts on one set of cohorts, as one document.

Internal from end to end, but for `HistoryEvaluation.synthetic`, which no real row has a part in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import json_text
from dpsynth.encoding import Histories, HistoryCodec
from dpsynth.errors import InputError
from dpsynth.eval.core import Measure, PartResult
from dpsynth.eval.gates import Gate, judged
from dpsynth.eval.longitudinal.cohort import Compared
from dpsynth.eval.longitudinal.facts_of_patients import patient_facts
from dpsynth.eval.longitudinal.facts_of_rows import row_facts
from dpsynth.eval.longitudinal.persons import group_means, persons
from dpsynth.eval.longitudinal.pictures import band, shown_courses, synthetic_pictures
from dpsynth.eval.longitudinal.prediction import prediction, told_apart
from dpsynth.eval.longitudinal.rows import broken, courses, row_values
from dpsynth.eval.longitudinal.survival import survival
from dpsynth.eval.longitudinal.timing import timing
from dpsynth.eval.longitudinal.uses import HistoryUse, summary, uses

FORMAT, VERSION = "dpsynth-history-evaluation", 1
PARTS = (
    *("timing", "rows", "courses", "persons", "groups", "events", "broken", "prediction"),
    "told_apart",
)
FEW = 100

Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False, repr=False)
class HistoryEvaluation:
    """What an evaluation of histories found. Internal: it holds statistics of real patients.

    Attributes:
        schema: name, title and hash of the schema.
        patients: how many there are of each cohort, and how many were compared.
        seed: of samples, groups and models.
        measures: figures, each with an interval over patients and its references.
        parts: what tables and pictures show, by part.
        uses: what synthetic histories are fit for.
        notes: what was left out, and why.
        gates: verdicts of the internal gates of histories.
        synthetic: pictures of synthetic histories alone, which may be shown to anybody.
    """

    schema: dict[str, str]
    patients: dict[str, int | None]
    seed: int
    measures: tuple[Measure, ...]
    parts: dict[str, Any]
    uses: tuple[HistoryUse, ...]
    notes: tuple[str, ...]
    gates: tuple[dict[str, Any], ...]
    synthetic: dict[str, Any]

    def __repr__(self) -> str:
        """Show no figure: they are about real patients."""
        return short_repr(self, f"schema {self.schema['name']}", "internal")

    @property
    def summary(self) -> list[str]:
        """What a patient's history keeps and what it loses, in a few sentences."""
        return summary(self.uses)

    def measure(self, key: str) -> Measure:
        """Return a measure by its key.

        Raises:
            InputError: there is none of that key.
        """
        for one in self.measures:
            if one.key == key:
                return one
        raise InputError(f"the evaluation has no measure {key!r}; its notes say what was left out")

    def to_dict(self) -> dict[str, Any]:
        """Give the document in JSON types."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "internal": True,
            "schema": self.schema,
            "patients": self.patients,
            "seed": self.seed,
            "measures": {one.key: one.to_dict() for one in self.measures},
            "parts": self.parts,
            "uses": [one.to_dict() for one in self.uses],
            "summary": self.summary,
            "notes": list(self.notes),
            "gates": list(self.gates),
            "synthetic": self.synthetic,
        }

    def to_json(self) -> str:
        """Give the document as JSON text."""
        return json_text(self.to_dict(), indent=1)


def silent(stage: str, part: float) -> None:
    """Show nothing."""


def evaluate_histories(
    codec: HistoryCodec,
    synthetic: Histories,
    train: Histories,
    holdout: Histories | None = None,
    *,
    limits: Sequence[Gate] = (),
    seed: int = 0,
    progress: Progress | None = None,
) -> HistoryEvaluation:
    """Measure synthetic histories against those they were learned from, and held-out ones.

    Each figure stands beside the same figure of a bootstrap of train's patients and of held-out
    patients, of equally many patients. Intervals are over patients: by a delete-a-group jackknife,
    or by a bootstrap of test patients.

    >>> found = evaluate_histories(codec, drawn, train, holdout)  # doctest: +SKIP
    >>> found.measure("transitions").estimate.value, found.summary  # doctest: +SKIP

    Args:
        codec: of the schema of all of them.
        synthetic: drawn from a run.
        train: the patients whom the generator saw. Private.
        holdout: other real patients. Private.
        limits: internal gates; those of one table are left out.
        seed: the same seed and histories give the same document.
        progress: called with a stage and its fraction done.

    Raises:
        InputError: histories do not fit the schema or have no patient, or the seed is no whole
            number from 0.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError("the seed of an evaluation is a whole number from 0")
    tell = progress or silent
    sources = np.random.default_rng(seed).spawn(1 + len(PARTS))
    tell("histories: cohorts", 0.0)
    compared = Compared.of(codec, synthetic, train, holdout, sources[0])
    measures: list[Measure] = []
    parts: dict[str, Any] = {}
    notes: list[str] = []
    if compared.n < FEW:
        notes.append(
            f"only {compared.n} patients of each cohort are compared: most figures are chance"
        )
    tell("histories: facts", 0.0)
    parts["facts"] = []
    for found in (*row_facts(compared), *patient_facts(compared)):
        measures += found.measures
        notes += found.notes
        if found.details:
            parts["facts"].append(found.details)
    makers = _parts(compared, dict(zip(PARTS, sources[1:], strict=True)))
    for place, (name, make) in enumerate(makers):
        tell(f"histories: {name.replace('_', ' ')}", place / len(PARTS))
        found = make()
        measures += found.measures
        notes += [note for note in found.notes if note not in notes]
        if found.details:
            parts[name] = found.details
    parts["bands"] = _bands(compared)
    tell("histories: pictures", 1.0)
    facts = compared.facts
    known = {one.key: one.to_dict() for one in measures}
    return HistoryEvaluation(
        schema={"name": facts.name, "title": facts.title, "sha256": facts.sha256},
        patients={
            "source": len(train),
            "synthetic": len(synthetic),
            "holdout": None if holdout is None else len(holdout),
            "compared": compared.n,
        },
        seed=seed,
        measures=tuple(measures),
        parts=parts,
        uses=uses(known),
        notes=tuple(notes),
        gates=tuple(judged(known, [one for one in limits if one.of_histories])),
        synthetic=synthetic_pictures(codec, synthetic, seed),
    )


def _parts(
    compared: Compared, rngs: dict[str, np.random.Generator]
) -> Iterator[tuple[str, Callable[[], PartResult]]]:
    """Yield each part with what measures it; each has a source of chance of its own."""
    yield "timing", lambda: timing(compared)
    yield "rows", lambda: row_values(compared, rngs["rows"])
    yield "courses", lambda: courses(compared)
    yield "persons", lambda: persons(compared, rngs["persons"])
    yield "groups", lambda: group_means(compared)
    yield "events", lambda: survival(compared)
    yield "broken", lambda: broken(compared)
    yield "prediction", lambda: prediction(compared, rngs["prediction"])
    yield "told_apart", lambda: told_apart(compared, rngs["told_apart"])


def _bands(compared: Compared) -> list[dict[str, Any]]:
    """Return how values of real patients spread over time: quantiles, and never a patient."""
    return [
        {
            "series": compared.facts.series[number].name,
            "column": compared.facts.series[number].fields[place].name,
            "source": band(compared.train, number, place),
        }
        for number, place in shown_courses(compared.facts.series)
    ]
