"""Labels by PATE against DP-SGD and synthetic rows, at the same epsilon, on real tables.

Needs the tables of docs/benchmarks.md (DPSYNTH_DATA names their folder). For each table one patient
in five is set aside for the test, and one in eight of the others gives public rows: their labels
are thrown away. The rest are private. Every way gives scores to the patients of the test; the same
features (cut by the public rows) and, but for DP-SGD, the same linear learner are used throughout.

- student: `dpsynth labels`, the student's scores
- votes alone: a learner of the labels by the noisy votes of each row, as in the papers on PATE
- DP-SGD: a logistic model trained on private rows by the engine of dpsynth; the best on the test of
  several learning rates and numbers of steps, which is more than a user gets
- synthetic: a learner of rows drawn from `autoregressive`, fitted to private rows
- synthetic and student: rows drawn from `autoregressive` at half the epsilon are the queries, and
  are labelled with the other half (at twice the delta): no public row is needed
- no privacy: the learner of the private rows themselves

    python bench/labels.py [--tables cardio,diabetes130] [--epsilons 0.5,1,3] [--seeds 2]
        [--teachers N] [--vote best] [--only student,...]

Prints Markdown: the mean area under the ROC curve over classes, each against the others, and the
accuracy; then how many of the labels of public rows are right, by votes alone and by the student.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from sklearn.metrics import roc_auc_score  # noqa: E402

import dpsynth  # noqa: E402
from dpsynth.encoding import Codec  # noqa: E402
from dpsynth.privacy import (  # noqa: E402
    OsEntropy,
    PaidEntropy,
    PoissonSgd,
    PrivacyBudget,
    PrivacyPlan,
    Share,
)
from dpsynth.privacy.events import UNDECIDED  # noqa: E402
from dpsynth.schema import Schema  # noqa: E402
from dpsynth.stats.axes import Axis  # noqa: E402
from dpsynth.stats.labelling import scored
from dpsynth.stats.labels import Features, Student

FILES = {"cardio": "cardio.csv.gz", "diabetes130": "diabetes130.csv.gz"}
LABELS = {"cardio": "cardio", "diabetes130": "readmitted"}
DELTA = 1e-6
RATES, STEPS, SAMPLED, CLIPPED = (0.005, 0.02), (200, 800), 0.05, 1.0
Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Task:
    """A table that was split by patient, and what is to be told of it."""

    schema: Schema
    label: str
    private: pd.DataFrame
    public: pd.DataFrame
    test: pd.DataFrame

    def __post_init__(self) -> None:
        """Code the tables."""
        codec = Codec(self.schema)
        axis = Axis.of(codec, self.label, None).known()
        features = Features.cut(codec, codec.encode(self.public), axis.place)
        object.__setattr__(self, "codec", codec)
        object.__setattr__(self, "axis", axis)
        object.__setattr__(self, "features", features)

    def bits(self, rows: pd.DataFrame) -> Floats:
        """Return the features of rows, ``[rows, features]``."""
        return self.features.of(self.codec.encode(rows)).astype(np.float64)

    def classes(self, rows: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the label of rows."""
        return self.axis.cells(self.codec.encode(rows))

    def learned(self, rows: pd.DataFrame) -> Floats:
        """Return scores of the test by a learner of labelled rows."""
        return scored(self.bits(rows), self.classes(rows), self.bits(self.test), self.axis.size)

    def judged(self, scores: Floats) -> tuple[float, float]:
        """Return area under the curve and accuracy."""
        true = self.classes(self.test)
        area = [roc_auc_score(true == one, scores[:, one]) for one in range(self.axis.size)]
        return float(np.mean(area)), float((scores.argmax(axis=1) == true).mean())


def task_of(name: str, data: Path, seed: int) -> Task:
    """Split a table by patient."""
    schema = Schema.load(name)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        rest, test = dpsynth.split_file(
            data / FILES[name], schema, work / "a", holdout=0.2, seed=seed
        )
        private, public = dpsynth.split_file(
            rest, schema, work / "b", holdout=0.125, seed=seed + 1000
        )
        tables = [dpsynth.read_table(path, schema) for path in (private, public, test)]
    return Task(schema, LABELS[name], *tables)


def labelled(task: Task, queries: pd.DataFrame, epsilon: float, options: Any) -> Any:
    """Label queries by the teachers."""
    return dpsynth.labels(
        task.private,
        queries.drop(columns=task.label),
        task.schema,
        task.label,
        epsilon=epsilon,
        delta=DELTA,
        dataset="bench",
        teachers=options.teachers,
        vote=options.vote,
        without_ledger=True,
    )


def student_scores(task: Task, found: Any) -> Floats:
    """Return the scores of the test by the student."""
    bits = found.request.features.of(task.codec.encode(task.test))
    return Student(found.numbers["student"]).scores(bits) / 1e6


def student(task: Task, epsilon: float, options: Any) -> Floats:
    """Score by the student."""
    return student_scores(task, labelled(task, task.public, epsilon, options))


def votes_alone(task: Task, epsilon: float, options: Any) -> Floats:
    """Score by a learner of the labels with the most noisy votes."""
    found = labelled(task, task.public, epsilon, options)
    asked = task.public.head(found.request.voted)
    return task.learned(
        asked.assign(**{task.label: found.table("votes")["teachers"][: len(asked)]})
    )


def drawn(task: Task, epsilon: float) -> pd.DataFrame:
    """Draw as many synthetic rows as are private."""
    run = dpsynth.fit(
        task.private,
        task.schema,
        model="autoregressive",
        epsilon=epsilon,
        delta=DELTA,
        dataset="bench",
        without_ledger=True,
    )
    rows = run.sample(len(task.private), seed=1).astype(object)
    return rows.where(rows.notna(), None).map(lambda cell: None if cell is None else str(cell))


def synthetic(task: Task, epsilon: float, options: Any) -> Floats:
    """Score by a learner of synthetic rows."""
    return task.learned(drawn(task, epsilon))


def synthetic_and_student(task: Task, epsilon: float, options: Any) -> Floats:
    """Score by a student of synthetic rows, each part at half of the epsilon."""
    rows = drawn(task, epsilon / 2).head(10_000)
    return student_scores(task, labelled(task, rows, epsilon / 2, options))


def no_privacy(task: Task, epsilon: float, options: Any) -> Floats:
    """Score by a learner of the private rows."""
    return task.learned(task.private)


def dp_sgd(task: Task, epsilon: float, options: Any) -> Floats:
    """Score by a logistic model that was trained by DP-SGD; the best of several on the test."""
    tried = [_trained(task, epsilon, steps, rate) for steps in STEPS for rate in RATES]
    return max(tried, key=lambda scores: task.judged(scores)[0])


def _trained(task: Task, epsilon: float, steps: int, rate: float) -> Floats:
    import torch
    from torch.nn.functional import cross_entropy

    from dpsynth.encoding import read_cohort
    from dpsynth.models.dpsgd import DpSgd, Linear
    from dpsynth.tables import open_table

    torch.set_num_threads(1)
    budget = PrivacyBudget(epsilon, DELTA)
    share = Share(PoissonSgd("steps", SAMPLED, steps, UNDECIDED), 1.0)
    (event,) = PrivacyPlan.calibrate(budget, [share]).events
    entropy = OsEntropy()
    cohort = read_cohort(open_table(task.private, task.schema), task.codec, task.schema, entropy)
    public = task.bits(task.public)
    middle, spread = public.mean(axis=0), public.std(axis=0) + 0.1
    width = public.shape[1]

    def inputs(bits: Any) -> Any:
        return torch.from_numpy(((bits - middle) / spread / width**0.5).astype(np.float32))

    units, rows, _ = cohort.codes.shape
    flat = cohort.codes.reshape(units * rows, -1)
    wanted = torch.from_numpy(task.axis.cells(flat).reshape(units, rows))
    bits = task.features.of(flat).reshape(units, rows, width)
    weights = torch.from_numpy(
        (cohort.mask / np.maximum(cohort.mask.sum(axis=1, keepdims=True), 1)).astype(np.float32)
    ) * (wanted >= 0)
    network = torch.nn.Sequential(Linear(width, task.axis.size, generator=torch.Generator()))
    trainer = DpSgd(
        network,
        event=event,
        clipping_norm=CLIPPED,
        population=task.schema.population.value,
        learning_rate=rate * width**0.5,
        entropy=PaidEntropy([event], entropy),
        schedule="cosine",
        optimizer="adam",
    )

    def loss(batch: Any, activations: Any = None) -> Any:
        x, y = batch
        scores = network[0](x, activations)
        return cross_entropy(scores.flatten(0, 1), y.clamp(min=0).flatten(), reduction="none").view(
            y.shape
        )

    for _ in range(steps):
        chosen = trainer.sample_batch(units)
        trainer.step(loss, (inputs(bits[chosen]), wanted[chosen]), weights[chosen])
    with torch.no_grad():
        found = network[0](inputs(task.bits(task.test))).softmax(dim=-1)
    return np.asarray(found, dtype=np.float64)


def right_labels(task: Task, epsilon: float, options: Any) -> tuple[float, float]:
    """Return the share of asked public rows with the right label, by votes and by the student."""
    found = labelled(task, task.public, epsilon, options)
    shares = found.table("votes").head(found.request.voted)
    true = np.array(task.axis.labels, dtype=object)[task.classes(task.public)[: len(shares)]]
    return float((shares["teachers"] == true).mean()), float((shares["student"] == true).mean())


WAYS: dict[str, Callable[[Task, float, Any], Floats]] = {
    "student": student,
    "votes alone": votes_alone,
    "DP-SGD": dp_sgd,
    "synthetic": synthetic,
    "synthetic and student": synthetic_and_student,
    "no privacy": no_privacy,
}


def main() -> None:
    """Compare all ways."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tables", default=",".join(FILES))
    parser.add_argument("--epsilons", default="0.5,1,3")
    parser.add_argument("--seeds", type=int, default=2, help="splits")
    parser.add_argument("--teachers", type=int)
    parser.add_argument("--vote", default="best")
    parser.add_argument("--only", default=",".join(WAYS))
    options = parser.parse_args()
    data = Path(os.environ.get("DPSYNTH_DATA", "../shared/data"))
    warnings.simplefilter("ignore")
    epsilons = [float(word) for word in options.epsilons.split(",")]
    print("| table | way | " + " | ".join(f"epsilon {one:g}" for one in epsilons) + " |")
    print("|" + "---|" * (2 + len(epsilons)), flush=True)
    for name in options.tables.split(","):
        tasks = [task_of(name, data, seed) for seed in range(1, options.seeds + 1)]
        for way in options.only.split(","):
            cells, started = [], time.perf_counter()
            for epsilon in epsilons:
                found = [task.judged(WAYS[way](task, epsilon, options)) for task in tasks]
                area, right = np.mean(found, axis=0)
                cells.append(f"{area:.3f}, {100 * right:.1f} %")
            print(f"| {name} | {way} | " + " | ".join(cells) + " |", flush=True)
            print(f"{way}: {time.perf_counter() - started:.0f} s", file=sys.stderr)
        if "student" in options.only.split(","):
            cells = []
            for epsilon in epsilons:
                both = np.mean([right_labels(task, epsilon, options) for task in tasks], axis=0)
                cells.append(" by votes, ".join(f"{100 * one:.1f} %" for one in both))
            print(f"| {name} | labels that are right | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
