"""Controls on the tables at hand: leaks that an audit must find, and tables that leak nothing.

An attack's silence counts only if, on the same people and at the same size, it finds what is there
(`dpsynth.eval.attacks.sight`), and an audit only if nothing is found that is not:

- ``copied``: one synthetic row in ten is a source row; memorisation must find it.
- ``repeated``: every row is a source row, of a member first; linking and singling out must find
  it, and so must guessing of sensitive columns, where there are any;
- ``jittered``: every row is a source row, moved so far that it lies no nearer to the source than a
  row of the holdout does; the usual test of distances passes it, the density ratio must not (Yao et
  al., The DCR Delusion, arXiv 2505.01524).
- ``fresh``: people who are in none of the sets that are attacked; nothing may be found.
- ``stranger``: a generator that learned from such people alone; nothing may be found.

Two tables that leak nothing, with about fifteen findings each, make thirty tests. So that the
controls accuse such tables with probability `ALARM` at most, all of them together, each finding on
them is judged at its part of it.

The record of an attack names the leaks that it must find (`TableAttack.controls`). Controls that
need a fit are in `dpsynth.assessment.fitted_controls`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.attack_stats import Attack, People, PositiveControl, TableAttack
from dpsynth.eval.attack_stats.result import ALARM
from dpsynth.eval.attack_stats.table_attack import LEAKING
from dpsynth.eval.core import Tables, TableView
from dpsynth.eval.distances import Metric, nearest

Floats = npt.NDArray[np.float64]

COPIED = 0.1  # of the rows
ROWS = 20_000  # of a control's table, at most
FURTHER = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0)  # than the usual test asks for, try by try
LOW = 0.05  # the quantile of distances that usual tests compare
UNTOUCHED = 2  # tables of which nothing may be found
CONTROLS = {  # by key; those of `LEAKING` leak
    "copied": "One row in ten copied",
    "repeated": "Every row a source row",
    "jittered": "Every row a source row, moved",
    "fresh": "Other people's rows",
    "stranger": "A generator that saw other people only",
}


@dataclass(frozen=True)
class Control:
    """What became of one control.

    Attributes:
        key: its name.
        title: what it is, in a few words.
        kind: ``positive``, if it must be found, or ``negative``.
        attack: key of the finding that decides; for a negative control, of the attack that was
            tried, such as ``membership``.
        passed: whether what was expected happened.
        sentence: what was seen.
        cached: whether it was played earlier, with the same version.
    """

    key: str
    title: str
    kind: str
    attack: str
    passed: bool
    sentence: str
    cached: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Give it in JSON types."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class ControlTable:
    """A table whose answer is known.

    Attributes:
        key: its name.
        title: what it is, in a few words.
        tables: the tables of the audit, with this one in the place of the synthetic table.
        leaks: whether attacks whose record names it must succeed; else none may.
        passes: for ``jittered``: whether the usual test of distances passes it.
    """

    key: str
    title: str
    tables: Tables
    leaks: bool
    passes: bool | None = None

    def play(
        self, attacks: Sequence[TableAttack], people: People, rng: np.random.Generator
    ) -> list[Control]:
        """Say whether attacks find what they must, or nothing where nothing leaks."""
        if not self.leaks:
            played = {one.key: one.play(self.tables, people, rng) for one in attacks}
            tests = UNTOUCHED * sum(len(attack.findings) for attack in played.values())
            return [
                silent(self.key, self.title, key, attack, tests)
                for key, attack in played.items()
                if attack.findings
            ]
        pairs = [(one, must) for one in attacks for must in one.controls if must.table == self.key]
        pairs.sort(key=lambda pair: pair[1].finding is None)  # findings that are named come first
        judged = [self._judged(one, must, people, rng) for one, must in pairs]
        return [control for control in judged if control is not None]

    def _judged(
        self, attack: TableAttack, must: PositiveControl, people: People, rng: np.random.Generator
    ) -> Control | None:
        outcome = attack.play(self.tables, people, rng)
        if not outcome.findings:
            return None  # it cannot be made on such columns: nothing rests on this control
        key = must.finding
        if key is None:  # the finding that is seen most plainly
            best = max(outcome.findings, key=lambda one: one.found)
            if not best.found and all(power.least is None for power in outcome.powers):
                return None  # it would have been found in anybody's table
            key = best.key
        if outcome.finding(key) is None:
            sentence = "the attack could make no such test here, so it could not find the leak"
            return Control(self.key, self.title, "positive", key, False, sentence)
        control = caught(self.key, self.title, key, outcome)
        if self.passes is None:
            return control
        words = "passes it"
        if not self.passes:
            words = "does not pass it, so that this control shows nothing"
        sentence = f"{control.sentence}; the usual test of distances {words}"
        return replace(control, passed=control.passed and self.passes, sentence=sentence)


def control_table(
    key: str, tables: Tables, people: People, rng: np.random.Generator
) -> ControlTable:
    """Make a table whose answer is known.

    Args:
        key: its name, one of `CONTROLS`.
        tables: as attacked; the synthetic table says how many rows a control's has, and fills up
            ``copied``.
        people: as attacked.
        rng: of all draws.
    """
    rows = min(ROWS, tables.synthetic.rows)
    passes = None
    if key == "copied":
        view = with_copies(tables, rows, rng)
    elif key == "repeated":
        view = members_first(tables, people, rows, rng)
    elif key == "jittered":
        view, passes = jittered(tables, people, Metric.of(tables.codec), rows, rng)
    elif key == "fresh":
        view = people.fresh.sample(rows, rng)
    else:
        view = learned(people.fresh, tables, rows, rng)
    leaks = key in LEAKING
    return ControlTable(key, CONTROLS[key], replace(tables, synthetic=view), leaks, passes)


def caught(key: str, title: str, finding: str, attack: Attack) -> Control:
    """Say whether an attack found what it must find."""
    result = attack.finding(finding)
    if result is None:
        raise ValueError(f"the attack has no finding {finding}")
    return Control(key, title, "positive", finding, result.found, result.sentence)


def silent(key: str, title: str, name: str, attack: Attack, tests: int) -> Control:
    """Say whether an attack found nothing.

    Args:
        key: of the control.
        title: of the control.
        name: of the attack.
        attack: what it found.
        tests: findings of all negative controls, which share the chance of a false alarm.
    """
    findings = [finding for finding in attack.findings if finding.found_at(ALARM / tests)]
    sentences = [one.sentence for one in findings[:3]] + ["and more"] * (len(findings) > 3)
    quiet = "nothing was found, as it must be"
    if any(finding.found for finding in attack.findings):
        quiet = f"no more was found than chance explains in {tests} tests"
    sentence = "; ".join(sentences) or quiet
    return Control(key, title, "negative", name, not findings, sentence)


def with_copies(tables: Tables, rows: int, rng: np.random.Generator) -> TableView:
    """Return synthetic rows of which one in ten gives way to a source row."""
    share = max(1, round(COPIED * rows))
    return joined([tables.synthetic.sample(rows - share, rng), tables.source.sample(share, rng)])


def members_first(tables: Tables, people: People, rows: int, rng: np.random.Generator) -> TableView:
    """Return source rows: all of the members', and as many others as there is room for."""
    inside = np.flatnonzero(np.isin(tables.source.units, people.members.units))
    others = np.setdiff1d(np.arange(tables.source.rows), inside)
    picked = np.concatenate([inside, rng.permutation(others)[: max(0, rows - len(inside))]])
    return replace(tables.source.take(picked), units=np.arange(len(picked)))


def jittered(
    tables: Tables, people: People, metric: Metric, rows: int, rng: np.random.Generator
) -> tuple[TableView, bool]:
    """Return source rows, each moved by as little as the usual test of distances lets pass.

    The usual test compares a low quantile of the distances to the source with that of the holdout.
    A row takes cells of another row of the source, the most alike first, until it has moved as far
    as that quantile; if it then lies nearer to some row, it tries another one, a little further.
    All members are among the rows, as they are in a table that was made of all of the source.

    Returns:
        The rows, and whether the test passes them.
    """
    base = members_first(tables, people, rows, rng)
    source = metric.points(tables.source)
    non_members = nearest(metric, metric.points(people.others), source).squared[:, 0]
    usual = float(np.quantile(non_members, LOW))
    moved, near = base, np.arange(base.rows)
    for further in FURTHER:
        donor = base.take(rng.permutation(base.rows)[: len(near)])
        apart = further**2 * max(usual, 1e-12)
        tried = shifted(metric, base.take(near), donor, apart)
        place = np.arange(base.rows)
        place[near] = base.rows + np.arange(len(near))
        moved = replace(joined([moved, tried]).take(place), units=np.arange(base.rows))
        distances = nearest(metric, metric.points(moved), source).squared[:, 0]
        if np.quantile(distances, LOW) >= usual:
            return moved, True
        near = np.flatnonzero(distances < usual)
    return moved, False


def shifted(metric: Metric, base: TableView, donor: TableView, apart: float) -> TableView:
    """Take a donor's cells, the most alike first, until rows lie ``apart`` (squared) or further."""
    parts = by_cell(metric, base, donor)
    order = np.argsort(parts, axis=1)
    sorted_parts = np.take_along_axis(parts, order, axis=1)
    before = np.cumsum(sorted_parts, axis=1) - sorted_parts
    swapped = np.zeros(order.shape, dtype=bool)
    np.put_along_axis(swapped, order, before < apart, axis=1)
    return crossed(base, donor, swapped)


def by_cell(metric: Metric, first: TableView, second: TableView) -> Floats:
    """Return the parts of the squared distances of rows side by side, ``[rows, columns]``."""
    a, b = metric.points(first), metric.points(second)
    parts = np.zeros(first.codes.shape)
    numbers = ((a.numbers - b.numbers) * metric.step) ** 2
    unlike = np.isnan(numbers)
    numbers[unlike] = (np.isnan(a.numbers) != np.isnan(b.numbers))[unlike]
    parts[:, list(metric.numeric)] = numbers
    parts[:, list(metric.categorical)] = a.codes != b.codes
    return parts


def learned(fresh: TableView, tables: Tables, rows: int, rng: np.random.Generator) -> TableView:
    """Return rows of a generator that knows ``fresh`` people only: two of them, crossed."""
    first, second = (fresh.take(rng.integers(0, fresh.rows, rows)) for _ in range(2))
    return crossed(first, second, rng.random(first.codes.shape) < 0.5)


def crossed(first: TableView, second: TableView, swapped: npt.NDArray[np.bool_]) -> TableView:
    """Take cells from the second table where it says so, ``[rows, columns]``; units are rows."""
    frame = first.frame.copy()
    for place, name in enumerate(frame.columns):
        here = swapped[:, place]
        frame[name] = frame[name].where(~here, second.frame[name])
    codes = np.where(swapped, second.codes, first.codes)
    return TableView(frame, codes, np.arange(len(codes)))


def joined(views: Sequence[TableView]) -> TableView:
    """Put rows of several tables into one; units are rows."""
    import pandas as pd

    frame = pd.concat([view.frame for view in views], ignore_index=True)
    codes = np.concatenate([view.codes for view in views])
    return TableView(frame, codes, np.arange(len(codes)))
