"""Whole records: told apart by a classifier, mapped, copied, and against the declared rules.

**Classifier two-sample test.** Lopez-Paz and Oquab, Revisiting Classifier Two-Sample Tests, ICLR
2017 (arXiv 1610.06545). The figure is the area under the ROC curve (AUC) of gradient boosting in
5-fold cross-validation: 0.5 if rows cannot be told apart, 1 if each can.

**Copies** are a first look for a table of unknown origin, and no more: distance and equality do not
bound what a table gives away. A generator that knows nothing of single people also hits some of
them by chance, more often the fewer and the coarser the columns. So the same share for a holdout
stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.draft import clinical_rules
from dpsynth.encoding import Codec
from dpsynth.eval.core import (
    DesignMatrix,
    Estimate,
    Measure,
    PartResult,
    Rate,
    Tables,
    TableView,
    about,
    groups,
    ordinal,
    plain,
)
from dpsynth.eval.core.estimate import LEVEL
from dpsynth.eval.core.scores import placements
from dpsynth.schema import Comparison, Joined, Literal, Name, Rule, Schema, Tree, canonical_number

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FOLDS = 5
SHARED = math.sqrt(1 + FOLDS / (FOLDS - 1))  # sqrt((1/J + n_test/n_train) / (1/J)), J = 5 folds
MAX_ROWS = 10_000  # of each side
MIN_ROWS = 50
MAX_TELLING = 10
TELLING_ROWS = 1000  # of each fold, for the importance of columns
SETTINGS = {"max_iter": 60, "learning_rate": 0.15, "early_stopping": False, "random_state": 0}
C2ST_MEANING = (
    "How well a classifier tells synthetic from real rows, as the area under its ROC curve on rows "
    "that it was not trained on: 0.5 is chance, 1 is always. A high value means that rows look "
    "artificial; one column is enough for it."
)


@dataclass(frozen=True)
class ClassifierTest:
    """What a classifier reached on rows that it did not see.

    Attributes:
        auc: mean over folds of the area under the ROC curve, weighted by rows.
        error: its standard error over units, for models that were trained on other rows, too.
        importance: by column, how much the area shrinks when the column is shuffled.
    """

    auc: float
    error: float
    importance: dict[str, float]


def c2st(tables: Tables, rng: np.random.Generator) -> PartResult:
    """Let a classifier tell synthetic rows from the holdout's, or the source's if there is none.

    Both sides have equally many rows, at most 10 000. The interval is that of DeLong (Biometrics
    44, 1988) with rows of a unit taken together (Obuchowski, Biometrics 53, 1997), widened as
    Nadeau and Bengio propose (Machine Learning 52, 2003), because the folds share most of the rows
    that their models learned from. Reference: source against holdout. Chance, where there is no
    holdout: two halves of the source.
    """
    real = tables.holdout or tables.source
    rows = min(MAX_ROWS, real.rows, tables.synthetic.rows)
    if rows < MIN_ROWS or len(np.unique(real.units)) < FOLDS:
        return PartResult(notes=(f"c2st needs {MIN_ROWS} rows of each table: left out",))
    verdict = told_apart(
        tables.synthetic.sample(rows, rng), real.sample(rows, rng), tables.codec, rng, telling=True
    )
    estimate = about(verdict.auc, verdict.error, 2 * rows, minimum=0.0, maximum=1.0)
    other = _between_real(tables, rows, rng)
    name = "chance" if tables.holdout is None else "reference"
    estimate = Estimate(**{**vars(estimate), name: other})
    ranked = sorted(verdict.importance.items(), key=lambda item: -item[1])
    details: dict[str, Any] = {
        "auc": estimate.to_dict(),
        "telling": [
            {"column": column, "importance": plain(importance)}
            for column, importance in ranked[:MAX_TELLING]
            if importance > 0
        ],
    }
    against = "the source" if tables.holdout is None else "the holdout"
    note = f"c2st: {rows} rows of the synthetic table against {rows} of {against}"
    measure = Measure("c2st", "Classifier telling synthetic from real", estimate, 0.5, C2ST_MEANING)
    return PartResult((measure,), {"c2st": details}, (note,))


def told_apart(
    first: TableView,
    second: TableView,
    codec: Codec,
    rng: np.random.Generator,
    *,
    telling: bool = False,
) -> ClassifierTest:
    """Train on four fifths of both tables' units, score the rest, five times."""
    tables = [ordinal(view, codec) for view in (first, second)]
    matrix = np.concatenate([table[0] for table in tables])
    truth = np.repeat([1, 0], [first.rows, second.rows])
    units = np.concatenate([np.unique(v.units, return_inverse=True)[1] for v in (first, second)])
    fold = np.concatenate([groups(view.units, FOLDS, rng) for view in (first, second)])
    drops = np.zeros(matrix.shape[1])

    def tell(model: Any, test: Ints) -> None:
        some = test if len(test) <= TELLING_ROWS else rng.choice(test, TELLING_ROWS, False)
        drops[:] += permutation_drops(model, matrix[some], truth[some], rng) / FOLDS

    auc, error = cross_validated(
        matrix, tables[0][1], truth, units, fold, tell if telling else None
    )
    names = dict(zip(codec.names, drops.tolist(), strict=True)) if telling else {}
    return ClassifierTest(auc, error, names)


def cross_validated(
    matrix: Floats,
    categorical: list[bool],
    truth: Ints,
    units: Ints,
    fold: Ints,
    tell: Callable[[Any, Ints], None] | None = None,
) -> tuple[float, float]:
    """Return the area under the ROC curve of boosting in cross-validation, and its standard error.

    Args:
        matrix: features ``[rows, columns]``; columns without a value in training become 0 in it.
        categorical: which columns are codes without an order.
        truth: 1 for the first table, else 0.
        units: numbers of the units, within their table.
        fold: of each row, from 0 to `FOLDS` - 1.
        tell: is given each fold's model, and the rows that it did not see.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    scores = np.empty(len(truth))
    for k in range(FOLDS):
        test = np.flatnonzero(fold == k)
        matrix[:, np.isnan(matrix[fold != k]).all(axis=0)] = 0.0  # boosting refuses empty columns
        model = HistGradientBoostingClassifier(categorical_features=categorical, **SETTINGS)
        model.fit(matrix[fold != k], truth[fold != k])
        scores[test] = model.decision_function(matrix[test])
        if tell is not None:
            tell(model, test)
    auc, error = auc_by_folds(scores, truth, fold, units)
    return auc, error * SHARED


def auc_by_folds(scores: Floats, truth: Ints, fold: Ints, units: Ints) -> tuple[float, float]:
    """Return the area under the ROC curve within folds, and its standard error over units.

    Args:
        scores: high for the first table ``[rows]``.
        truth: 1 for the first table, else 0.
        fold: scores are compared within one only; each holds rows of both tables.
        units: numbers of the units, within their table.
    """
    placed = np.empty(len(scores))
    for k in np.unique(fold):
        ones, zeros = (np.flatnonzero((fold == k) & (truth == t)) for t in (1, 0))
        placed[ones] = placements(scores[ones], scores[zeros])
        placed[zeros] = 1 - placements(scores[zeros], scores[ones])
    value, variance = float(placed[truth == 1].mean()), 0.0
    for side in (1, 0):
        rows = truth == side
        sums = np.bincount(units[rows], weights=placed[rows] - placed[rows].mean())
        count = len(np.unique(units[rows]))
        if count > 1:
            variance += count / (count - 1) * float((sums**2).sum()) / int(rows.sum()) ** 2
    return value, math.sqrt(variance)


def permutation_drops(model: Any, matrix: Floats, truth: Ints, rng: np.random.Generator) -> Floats:
    """Return by how much the area shrinks when each column is shuffled on its own."""

    def area(matrix: Floats) -> float:
        scores = model.decision_function(matrix)
        return float(placements(scores[truth == 1], scores[truth == 0]).mean())

    whole = area(matrix)
    drops = np.empty(matrix.shape[1])
    for j in range(matrix.shape[1]):
        shuffled = matrix.copy()
        shuffled[:, j] = rng.permutation(shuffled[:, j])
        drops[j] = whole - area(shuffled)
    return drops


def _between_real(tables: Tables, rows: int, rng: np.random.Generator) -> float | None:
    """Return the area between source and holdout, or between two halves of the source."""
    source, holdout = tables.source, tables.holdout
    if holdout is None:
        half = groups(source.units, 2, rng)
        holdout = source.take(np.flatnonzero(half == 1))
        source = source.take(np.flatnonzero(half == 0))
    size = min(rows, source.rows, holdout.rows)
    enough = min(len(np.unique(view.units)) for view in (source, holdout)) >= FOLDS
    if size < MIN_ROWS or not enough:
        return None
    return told_apart(source.sample(size, rng), holdout.sample(size, rng), tables.codec, rng).auc


SQUARES = 40  # along each axis
MAX_MAP_ROWS = 20_000
MAX_CELLS = 10_000_000  # of one matrix
MAP_EDGE = (
    0.001  # share of the source beyond the map at each side; drawn into its outermost squares
)


def embedding(tables: Tables, rng: np.random.Generator) -> PartResult:
    """Project both tables on the first two principal components of the source.

    Rows are those of a `DesignMatrix` of the source; those beyond the map are in its outermost
    squares. Shares are listed by square along y, then along x, as a heat map takes them.
    """
    design = DesignMatrix.of(tables.source, tables.codec)
    nothing = {"embedding": None}
    if len(design.terms) < 2 or tables.source.rows < 3:
        return PartResult((), nothing, ("the table is too small for an embedding",))
    rows = max(1000, min(MAX_MAP_ROWS, MAX_CELLS // len(design.terms)))
    real = design.matrix(tables.source.sample(rows, rng))
    centre = real.mean(axis=0)
    real = real - centre
    axes, explained = _components(real)
    if len(explained) < 2 or explained[1] <= 0:
        return PartResult((), nothing, ("the source has no two directions for an embedding",))
    synthetic = design.matrix(tables.synthetic.sample(rows, rng)) - centre
    at = {"source": real @ axes, "synthetic": synthetic @ axes}
    edges = [_map_edges(at["source"][:, k]) for k in (0, 1)]
    details = {"x": plain(edges[0]), "y": plain(edges[1])}
    for name, places in at.items():
        inside = [np.clip(places[:, k], edges[k][0], edges[k][-1]) for k in (0, 1)]
        counts = np.histogram2d(inside[0], inside[1], bins=edges)[0]
        details[name] = plain(counts.T / len(places))
    details["explained"] = plain(explained)
    return PartResult((), {"embedding": details})


def _components(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the first two principal axes ``[terms, 2]`` and their shares of the variance."""
    from sklearn.utils.extmath import randomized_svd

    total = float((matrix**2).sum())
    if total <= 0:
        return np.zeros((matrix.shape[1], 0)), np.zeros(0)
    _, sizes, axes = randomized_svd(matrix, 2, n_iter=5, random_state=0)
    shares = sizes**2 / total
    return np.asarray(axes.T), np.where(shares > 1e-9, shares, 0.0)


def _map_edges(places: Floats) -> Floats:
    """Return the edges of the squares along one axis."""
    low, high = np.quantile(places, (MAP_EDGE, 1 - MAP_EDGE))
    if high <= low:
        low, high = places.min(), places.max()
    return np.linspace(low, max(high, low + 1e-9), SQUARES + 1)


def copies(tables: Tables, rng: np.random.Generator) -> PartResult:
    """Count the synthetic rows that occur in the source, beside the holdout's rows that do.

    Equality is that of all codes, missing included. The interval is the exact one of Clopper and
    Pearson for rows of the synthetic table.
    """
    source = set(_row_keys(tables.source))
    hits, rows = _hits(tables.synthetic, source), tables.synthetic.rows
    low, high = Rate(hits, rows).bounds((1 - LEVEL) / 2)
    holdout = tables.holdout
    reference = None if holdout is None else _hits(holdout, source) / holdout.rows
    measure = Measure(
        "copies",
        "Rows that occur in the source",
        Estimate(hits / rows, low, high, rows, reference=reference),
        0.0,
        "Share of synthetic rows that equal a real row in every column, beside the share of the "
        "holdout's rows that do; far above it, rows were copied. A low share proves no privacy.",
    )
    note = "copies were looked for as equal rows only; that is no test of privacy"
    return PartResult((measure,), {}, (note,))


def _hits(view: TableView, source: set[bytes]) -> int:
    return sum(key in source for key in _row_keys(view))


def _row_keys(view: TableView) -> list[bytes]:
    """Return each row's codes as bytes."""
    codes: npt.NDArray[np.uint16] = np.ascontiguousarray(view.codes)
    whole = codes.tobytes()
    width = codes.shape[1] * codes.itemsize
    return [whole[start : start + width] for start in range(0, len(whole), width)]


Bools = npt.NDArray[np.bool_]

EDITS_MEANING = (
    "Share of synthetic rows that break a rule of public lists of clinical edits, such as a code "
    "of pregnancy in a man: a clinician sees them at once. Nobody declared these rules."
)
RULES_MEANING = (
    "Share of rows that break at least one rule of the schema: impossible records. The reference "
    "shows how many real rows do."
)


def rules(tables: Tables, rng: np.random.Generator) -> PartResult:
    """Count broken rules in all rows of each table.

    A row whose missing values leave a rule undecided does not break it. The interval is the exact
    one of Clopper and Pearson for rows of the synthetic table; `chance` is the share of a bootstrap
    of the source's rows. Each entry of the details has the rule's ``text`` (also as ``rule``), in
    ``plain`` words what is true of a row that breaks it, and the share of such rows by table.
    """
    declared = tables.schema.rules
    if not declared:
        return PartResult((), {"rules": []}, ("the schema declares no rules",))
    details = [_rule_detail(rule, tables) for rule in declared]
    estimate = _broken(tables, declared, rng)
    measure = Measure("rules", "Impossible records", estimate, 0.0, RULES_MEANING)
    return PartResult((measure,), {"rules": details})


def clinical_edits(tables: Tables, rng: np.random.Generator) -> PartResult:
    """Count rows that break a rule of public lists of clinical edits, in all rows of each table.

    The rules are `dpsynth.draft.clinical_rules`: they follow from the schema. Nobody declared
    them, and each list has exceptions, so the share among held-out real rows stands beside it.
    """
    proposed = tuple(Rule.parse(one.text) for one in clinical_rules(tables.schema))
    if not proposed:
        return PartResult((), {"clinical_edits": []})
    details = [_rule_detail(rule, tables) for rule in proposed]
    measure = Measure(
        "edits", "Rows against clinical edits", _broken(tables, proposed, rng), 0.0, EDITS_MEANING
    )
    return PartResult((measure,), {"clinical_edits": details})


def _broken(tables: Tables, declared: tuple[Rule, ...], rng: np.random.Generator) -> Estimate:
    """Estimate the share of rows that break at least one of some rules."""
    broken = breaks(tables.synthetic, declared)
    hits, rows = int(broken.sum()), len(broken)
    low, high = Rate(hits, rows).bounds((1 - LEVEL) / 2)
    real = breaks(tables.source, declared)
    return Estimate(
        hits / rows,
        low,
        high,
        rows,
        reference=None if tables.holdout is None else _share_of_breaks(tables.holdout, declared),
        chance=float(rng.choice(real, size=min(rows, len(real))).mean()),
    )


def breaks(view: TableView, declared: tuple[Rule, ...]) -> Bools:
    """Tell which rows break at least one of the rules."""
    broken = np.zeros(view.rows, dtype=bool)
    for rule in declared:
        broken |= ~rule.holds(view.frame if view.published is None else view.published)
    return broken


def _share_of_breaks(view: TableView, declared: tuple[Rule, ...]) -> float:
    return float(breaks(view, declared).mean())


def _rule_detail(rule: Rule, tables: Tables) -> dict[str, Any]:
    holdout = tables.holdout
    return {
        "rule": rule.text,
        "text": rule.text,
        "plain": broken(rule, tables.codec.published),
        "source": plain(_share_of_breaks(tables.source, (rule,))),
        "synthetic": plain(_share_of_breaks(tables.synthetic, (rule,))),
        "holdout": None if holdout is None else plain(_share_of_breaks(holdout, (rule,))),
        "n": tables.synthetic.rows,
    }


OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
WORDS = {"<": "below ", "<=": "at most ", ">": "above ", ">=": "at least ", "==": "", "!=": "not "}
TIMES = {**WORDS, "<": "before ", "<=": "not after ", ">": "after ", ">=": "not before "}


def broken(rule: Rule, schema: Schema) -> str:
    """Say in words what is true of a row that breaks the rule.

    Columns are called by their titles, categories by their labels.
    """
    return _words(rule.tree, schema, negated=True)


def _words(tree: Tree, schema: Schema, *, negated: bool) -> str:
    if isinstance(tree, Comparison):
        return _comparison(tree, schema, negated)
    if tree.word == "not":
        return _words(tree.parts[0], schema, negated=not negated)
    if tree.word == "implies":
        first = _words(tree.parts[0], schema, negated=not negated)
        second = _words(tree.parts[1], schema, negated=negated)
        return f"{_bracketed(tree.parts[0], first)}, {'but' if negated else 'or'} {second}"
    parts = [_bracketed(part, _words(part, schema, negated=negated)) for part in tree.parts]
    both = (tree.word == "and") != negated
    return (" and " if both else " or ").join(parts)


def _bracketed(tree: Tree, text: str) -> str:
    """Put brackets around what has parts of its own."""
    joined = isinstance(tree, Joined) and tree.word != "not"
    return f"({text})" if joined else text


def _comparison(link: Comparison, schema: Schema, negated: bool) -> str:
    left, sign, right = link.left, link.sign, link.right
    if isinstance(left, Literal):
        left, sign, right = right, MIRROR[sign], left
    assert isinstance(left, Name)  # the parser refuses two literals
    sign = OPPOSITE[sign] if negated else sign
    column = schema.column(left.text)
    words = TIMES if column.kind.is_point else WORDS
    if isinstance(right, Name):
        verb = "the same as " if sign == "==" else "not the same as " if sign == "!=" else ""
        return f"{_operand(schema, left)} is {verb or words[sign]}{_operand(schema, right)}"
    value = right.value
    if isinstance(value, bool):
        sign, value = "==", "true" if value == (sign == "==") else "false"
    elif isinstance(value, float):
        value = canonical_number(value)
    return f"{_operand(schema, left)} is {words[sign]}{column.labels.get(value, value)}"


def _operand(schema: Schema, operand: Name) -> str:
    return schema.column(operand.text).title or operand.text
