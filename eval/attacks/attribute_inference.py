"""Attribute inference: does the table tell what somebody who knows a person does not know yet?

The third risk of the Article 29 Working Party (Opinion 05/2014 on Anonymisation Techniques, section
2.2). The attacker knows some columns of a person, has the synthetic table, and guesses a sensitive
column: by the nearest synthetic row (Giomi et al., A Unified Framework for Quantifying Privacy Risk
in Synthetic Data (Anonymeter), arXiv 2211.10459), or by a model that learned from the table
(Stadler et al., Synthetic Data - Anonymisation Groundhog Day, arXiv 2011.07018). A guess that is
right as often for people who were never in the data is inference about the population, which is
what a table is for; only success beyond that is a leak.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Codec
from dpsynth.eval.attack_stats import (
    Attack,
    AttackSuccess,
    CombinedAttacks,
    Finding,
    People,
    Power,
    TableAttack,
    Targets,
    described,
)
from dpsynth.eval.core import Measure, PartResult, Rate, Tables, TableView, numbers, ordinal
from dpsynth.eval.distances import Metric, nearest
from dpsynth.schema import Schema

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

TOLERANCE = 0.05  # of the declared range: a number so near is guessed
CELLS = 10  # of a number, each as wide as what one guess covers
TARGETS = 2_000  # people on each side, at most
SEARCHES = 4_000  # people on each side, summed over sensitive columns, about
MIN_TARGETS = 400
TRAINED = 20_000  # synthetic rows that a model learns from, at most
TREES = 60  # of a model, about
CLASSES = 10  # that a model tells apart: the commonest
KNOWN = {
    "quasi": "knowing the quasi-identifiers",
    "all": "knowing all other columns",
}
MEANING = (
    "Share of people in the data of whom this column is guessed from the others by help of the "
    "table, beyond the share of other people; by the attack that chance explains least. A high "
    "value means that the table gives away what was written about the people in the data."
)


@dataclass(frozen=True, eq=False)
class Secret:
    """A column that is to be guessed.

    Attributes:
        name: of the column.
        place: among the modelled columns.
        codec: the schema's codes.
    """

    name: str
    place: int
    codec: Codec

    @property
    def is_number(self) -> bool:
        """Whether a guess may be near the truth, rather than the truth."""
        return self.codec.cells[self.place] > 0

    def values(self, view: TableView) -> Floats:
        """Return codes of categories; numbers as shares of the declared range, NaN if missing."""
        lattice = self.codec.lattice(self.name)
        if lattice is None:
            return view.codes[:, self.place].astype(float)
        values = numbers(view, self.codec.schema.modelled[self.place])
        here = ~np.isnan(values)
        values[here] = lattice.positions(values[here]) / max(1, lattice.points - 1)
        return values

    def guessed(self, guesses: Floats, truth: Floats) -> Bools:
        """Tell which guesses are right; that a value is missing is one to be guessed."""
        apart = TOLERANCE + 1e-9 if self.is_number else 0.0
        gaps = np.isnan(guesses) & np.isnan(truth)
        return np.asarray(gaps | (np.abs(guesses - truth) <= apart))

    def classes(self, values: Floats) -> Ints:
        """Return what a model tells apart: codes, or the cell of a number's range."""
        if not self.is_number:
            return values.astype(np.int64)
        cells = np.clip(np.nan_to_num(values) * CELLS, 0, CELLS - 1).astype(np.int64)
        return np.where(np.isnan(values), CELLS, cells)

    def guesses(self, classes: Ints) -> Floats:
        """Return the value that stands for a class: the middle of a cell."""
        if not self.is_number:
            return classes.astype(float)
        return np.where(classes == CELLS, np.nan, (classes + 0.5) / CELLS)


def attribute(tables: Tables, people: People, rng: np.random.Generator) -> Attack:
    """Guess each sensitive column of people in the data and of others.

    Where no column is declared sensitive, the targets are guessed. One attacker knows the declared
    quasi-identifiers, if there are two, and another all other columns; each asks the nearest row
    and a model. Each person plays with one random row.
    """
    secrets, notes = _secrets(tables)
    if not secrets:
        return Attack(PartResult(notes=notes))
    maximum = min(TARGETS, max(MIN_TARGETS, SEARCHES // len(secrets)))
    targets = Targets.of(people, maximum, rng)
    seeker = _Seeker(tables, targets.view, tables.synthetic.sample(TRAINED, rng), {})
    columns: list[dict[str, Any]] = []
    measures: list[Measure] = []
    findings: list[Finding] = []
    powers: list[Power] = []
    for secret in secrets:
        truth = secret.values(targets.view)
        baseline = secret.guessed(np.full(len(truth), _commonest(secret, tables.synthetic)), truth)
        rate = described(Rate(int(baseline.sum()), len(baseline)))
        successes = []
        for guess in seeker.guesses(secret, rng):
            success = targets.success(secret.guessed(guess.values, truth))
            successes.append(AttackSuccess(guess.title, success))
            about = {"column": secret.name, "known": list(guess.known), "attack": guess.attack}
            columns.append(
                about | {"title": guess.title, "success": success.to_dict(), "baseline": rate}
            )
        together = CombinedAttacks(tuple(successes))
        key, title = f"attribute:{secret.name}", f"Guessing {secret.name}"
        measures.append(Measure(key, title, together.excess, 0.0, MEANING))
        findings.append(together.finding(key, title, f"{secret.name} was guessed"))
        powers.append(together.power(key))
    part = PartResult(tuple(measures), {"columns": columns}, notes)
    return Attack(part, tuple(findings), tuple(powers))


@dataclass(frozen=True, eq=False)
class _Guess:
    """What one attack says of a secret, for each person."""

    attack: str
    known: tuple[str, ...]
    title: str
    values: Floats


@dataclass(frozen=True, eq=False)
class _Seeker:
    """Guesses secrets of the same people; searches by the same columns are made once."""

    tables: Tables
    asked: TableView
    taught: TableView
    found: dict[tuple[str, ...], Ints]

    def guesses(self, secret: Secret, rng: np.random.Generator) -> Iterator[_Guess]:
        """Guess by each attack."""
        for kind, known in _known(self.tables.schema, secret.name).items():
            near = self._nearest(known)
            values = secret.values(self.tables.synthetic)[near]
            yield _Guess("nearest", known, f"the nearest row, {KNOWN[kind]}", values)
            values = _by_model(secret, known, self.asked, self.taught, rng)
            yield _Guess("model", known, f"a model, {KNOWN[kind]}", values)

    def _nearest(self, known: tuple[str, ...]) -> Ints:
        """Return the synthetic row nearest to each person in the known columns."""
        if known not in self.found:
            codec = self.tables.codec
            metric = Metric.of(codec, skip=set(codec.names) - set(known))
            points = metric.points(self.asked), metric.points(self.tables.synthetic)
            self.found[known] = nearest(metric, *points).rows[:, 0]
        return self.found[known]


def _secrets(tables: Tables) -> tuple[list[Secret], tuple[str, ...]]:
    """Return the columns to be guessed, and what a reader has to know about the choice."""
    modelled, codec = tables.schema.modelled, tables.codec
    if len(modelled) < 2:
        return [], ("guessing a column needs another one to guess it from: left out",)
    for role, note in (
        ("sensitive", ()),
        ("target", ("no column is declared sensitive: the target columns were guessed instead",)),
    ):
        secrets = [
            Secret(column.name, place, codec)
            for place, column in enumerate(modelled)
            if role in column.roles
        ]
        if secrets:
            return secrets, note
    return [], ("no column is declared sensitive, nor a target: no column was guessed",)


def _known(schema: Schema, secret: str) -> dict[str, tuple[str, ...]]:
    """Return what each attacker knows, by keys of `KNOWN`."""
    rest = [column for column in schema.modelled if column.name != secret]
    every = tuple(column.name for column in rest)
    quasi = tuple(column.name for column in rest if "quasi_identifier" in column.roles)
    return {"quasi": quasi, "all": every} if 2 <= len(quasi) < len(every) else {"all": every}


def _commonest(secret: Secret, synthetic: TableView) -> float:
    """Return what somebody would guess who knows nothing of the person."""
    classes = secret.classes(secret.values(synthetic))
    return float(secret.guesses(np.array([np.bincount(classes).argmax()]))[0])


def _by_model(
    secret: Secret,
    known: Sequence[str],
    view: TableView,
    taught: TableView,
    rng: np.random.Generator,
) -> Floats:
    """Guess by gradient boosting that learned from synthetic rows, of which class a row is."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    classes = secret.classes(secret.values(taught))
    kinds, counts = np.unique(classes, return_counts=True)
    common = kinds[np.argsort(-counts, kind="stable")[:CLASSES]]
    if len(common) == 1:
        return np.full(view.rows, secret.guesses(common)[0])
    rows = np.flatnonzero(np.isin(classes, common))
    skip = set(secret.codec.names) - set(known)
    matrix, categorical = ordinal(taught.take(rows), secret.codec, skip)
    features, _ = ordinal(view, secret.codec, skip)
    empty = np.isnan(matrix).all(axis=0)
    matrix[:, empty], features[:, empty] = 0.0, 0.0  # boosting refuses empty columns
    model = HistGradientBoostingClassifier(
        max_iter=TREES if len(common) == 2 else max(6, TREES // len(common)),
        learning_rate=0.2,
        max_leaf_nodes=15,
        categorical_features=categorical,
        early_stopping=False,
        random_state=int(rng.integers(2**31)),
    )
    model.fit(matrix, classes[rows])
    return secret.guesses(np.asarray(model.predict(features), dtype=np.int64))


ATTACK = TableAttack("attribute", "Attribute inference", "guesses of sensitive columns", attribute)
