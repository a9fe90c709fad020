"""Rules: what must hold within one row, such as ``sbp > dbp``.

A rule is a comparison between columns and values, or of a column with a list (``in (...)``), or
several of them joined by ``and``, ``or``, ``not`` and ``implies`` (grammar in `rule_parser`).
Missing values follow Kleene's strong three-valued logic (Introduction to Metamathematics, 1952,
section 64): a comparison with a missing operand is unknown, unknown parts propagate, and an unknown
rule is not broken. So ``A implies B`` holds where A cannot be decided.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from dpsynth._util.clock import clock_seconds, read_clock
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth.errors import InputError
from dpsynth.schema.bounds import canonical_number
from dpsynth.schema.rule_parser import Comparison, Literal, Name, Tree, parse
from dpsynth.schema.types import ColumnType, Family

if TYPE_CHECKING:
    import pandas as pd

DATE, CLOCK = Family.TIME.value, Family.CLOCK.value
Truth = npt.NDArray[np.bool_]

_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class Ruled(Protocol):
    """What a rule needs to know of a column."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def roles(self) -> frozenset[str]:
        """Its roles."""

    @property
    def kind(self) -> ColumnType:
        """Its type."""

    @property
    def modelled(self) -> bool:
        """Whether it is in the synthetic table."""

    @property
    def levels(self) -> tuple[str, ...]:
        """Its categories."""

    @property
    def several(self) -> object:
        """How a cell holds several codes; None where it holds one value."""

    @property
    def discovers(self) -> bool:
        """Whether a fit finds out which codes occur."""


@dataclass(frozen=True)
class Rule:
    """One condition on a row, kept as its text and its tree.

    Attributes:
        text: as it is written.
        tree: what it says.
        order: whether it is kept by construction: the later column is modelled as a gap.
        longest: largest such gap, in the unit of the later column; None for what bounds allow.
    """

    text: str
    tree: Tree = field(compare=False, repr=False)
    order: bool = False
    longest: float | None = None

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Read a rule; nothing in it is evaluated.

        >>> Rule.parse("age >= 18 implies `weight (kg)` > 30").columns
        ('age', 'weight (kg)')

        Raises:
            InputError: it is not a rule; says at which character and why.
        """
        return cls(text.strip(), parse(text))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the rule names, each once, in order."""
        names = (
            operand.text
            for comparison in _comparisons(self.tree)
            for operand in (comparison.left, comparison.right)
            if isinstance(operand, Name)
        )
        return tuple(dict.fromkeys(names))

    def holds(self, frame: pd.DataFrame, *, missing: bool = True) -> Truth:
        """Tell for each row of decoded values whether the rule holds.

        Args:
            frame: numbers, strings, booleans, dates and times, as the codec decodes them.
            missing: the answer for a row whose missing values leave the rule undecided. True suits
                a rule ("not broken"), False a filter ("certainly satisfied").

        Returns:
            A boolean array with one entry a row.

        Raises:
            InputError: a column is absent, or two operands cannot be compared.
        """
        absent = [name for name in self.columns if name not in frame.columns]
        if absent:
            raise InputError(f"rule {self.text!r} needs columns that are absent: {listed(absent)}")
        true, false = _decide(self.tree, frame, self.text)
        return ~false if missing else true

    def problems(self, columns: Iterable[Ruled]) -> list[str]:
        """List what is wrong with the rule for a table of these columns; empty if nothing is."""
        known = {column.name: column for column in columns}
        texts = (text for link in _comparisons(self.tree) for text in _problems(link, known))
        return list(dict.fromkeys(texts))  # each once: a list of values repeats its column


def _comparisons(tree: Tree) -> Iterator[Comparison]:
    if isinstance(tree, Comparison):
        yield tree
    else:
        for part in tree.parts:
            yield from _comparisons(part)


def _decide(tree: Tree, frame: pd.DataFrame, text: str) -> tuple[Truth, Truth]:
    """Return where the tree is certainly true and where it is certainly false."""
    if isinstance(tree, Comparison):
        return _compare(tree, frame, text)
    parts = [_decide(part, frame, text) for part in tree.parts]
    if tree.word == "not":
        return parts[0][1], parts[0][0]
    if tree.word == "implies":  # the same as: not the first, or the second
        parts[0] = (parts[0][1], parts[0][0])
    trues, falses = [part[0] for part in parts], [part[1] for part in parts]
    if tree.word == "and":
        return np.logical_and.reduce(trues), np.logical_or.reduce(falses)
    return np.logical_or.reduce(trues), np.logical_and.reduce(falses)


def _compare(link: Comparison, frame: pd.DataFrame, text: str) -> tuple[Truth, Truth]:
    kinds, values = [], []
    absent = np.zeros(len(frame), dtype=bool)
    for operand in (link.left, link.right):
        if isinstance(operand, Name):
            kind, value, gaps = values_of(frame[operand.text])
            absent |= gaps
        else:
            kind, value = _literal_kind(operand.value), operand.value
        kinds.append(kind)
        values.append(value)
    if "empty" in kinds:
        return absent & False, absent & False
    wrong = _mismatch(link, kinds[0], kinds[1])
    if not wrong and "date" in kinds:
        values = [_as_date(value) for value in values]
    if not wrong and CLOCK in kinds:
        values = [_as_clock(value) for value in values]
    if wrong or any(value is None for value in values):
        raise InputError(f"rule {text!r} {wrong or _NO_TIME[CLOCK if CLOCK in kinds else DATE]}")
    true = np.broadcast_to(_SIGNS[link.sign](*values), absent.shape).astype(bool)
    return true & ~absent, ~true & ~absent


def values_of(series: pd.Series[Any]) -> tuple[str, Any, Truth]:
    """Return the kind of a column's values, the values as an array, and where they are missing."""
    import pandas as pd

    if series.dtype == object and pd.api.types.infer_dtype(series, skipna=False) == "string":
        return "text", series.to_numpy(), np.zeros(len(series), dtype=bool)  # the usual, quickly
    gaps = series.isna().to_numpy(dtype=bool)
    if gaps.all():
        return "empty", None, gaps
    kind = pd.api.types.infer_dtype(series, skipna=True)
    if kind == "categorical":
        series = series.astype(object)
        kind = pd.api.types.infer_dtype(series, skipna=True)
    if kind == "boolean":
        return "boolean", series.fillna(False).to_numpy(dtype=bool), gaps
    if kind in ("integer", "floating", "mixed-integer-float"):
        return "number", series.astype("Float64").to_numpy(dtype=float, na_value=np.nan), gaps
    if isinstance(series.dtype, np.dtype) and series.dtype.kind == "M":  # without objects, quickly
        return "date", series.to_numpy().astype("datetime64[us]"), gaps
    values = series.to_numpy(dtype=object)
    if kind in ("date", "datetime", "datetime64"):
        if kind == "datetime64":
            return "date", series.to_numpy(dtype="datetime64[us]"), gaps
        return "date", np.where(gaps, np.datetime64("NaT"), values).astype("datetime64[us]"), gaps
    if kind == "time":
        seconds = [np.nan if gap else clock_seconds(v) for v, gap in zip(values, gaps, strict=True)]
        return CLOCK, np.array(seconds), gaps
    return "text", np.where(gaps, "", values), gaps


def _literal_kind(value: float | str | bool) -> str:
    if isinstance(value, str):
        return "text"
    return "boolean" if isinstance(value, bool) else "number"


def _as_date(value: Any) -> Any:
    """Turn a text literal into a date, None if it is not one; a column of dates is left alone."""
    if isinstance(value, np.ndarray):
        return value
    try:
        return np.datetime64(datetime.fromisoformat(value).replace(tzinfo=None), "us")
    except ValueError:
        return None


def _as_clock(value: Any) -> Any:
    """Turn a text literal into seconds since midnight, None if it is no time of day."""
    if isinstance(value, np.ndarray):
        return value
    seconds = read_clock(value)
    return seconds if seconds == seconds else None


_NO_TIME: Mapping[str, str] = {
    DATE: "compares a date with a text that is not a date; write dates like '2015-12-31'",
    CLOCK: "compares a time of day with a text that is none; write times like '08:30'",
}


def _mismatch(link: Comparison, left: str, right: str) -> str | None:
    """Say why two kinds cannot be compared, if so."""
    literal = any(isinstance(side, Literal) for side in (link.left, link.right))
    if left != right and not (literal and {left, right} in ({"text", DATE}, {"text", CLOCK})):
        quotes = literal and {left, right} == {"text", "number"}
        hint = "text is written in quotes, numbers without" if quotes else "use one kind"
        return f"compares {left} with {right}; {hint}"
    if left == right and left in ("text", "boolean") and link.sign not in ("==", "!="):
        return f"orders {left}, which has no order; use == or !="
    return None


def _problems(link: Comparison, known: dict[str, Ruled]) -> list[str]:
    """Check one comparison against the declared columns."""
    kinds = []
    for side in (link.left, link.right):
        if isinstance(side, Literal):
            kinds.append(_literal_kind(side.value))
        elif side.text not in known:
            return [
                f"there is no column {shown(side.text)}{did_you_mean(side.text, known)}; "
                "a value of text is written in quotes"
            ]
        elif not known[side.text].modelled:
            roles = listed(sorted(known[side.text].roles))
            return [f"column {side.text!r} has role {roles} and is not in the synthetic table"]
        elif known[side.text].several is not None:
            return [f"column {side.text!r} holds several codes; rules compare single values"]
        else:
            kinds.append(known[side.text].kind.family)
    wrong = _mismatch(link, kinds[0], kinds[1])
    if wrong:
        return [f"it {wrong}"]
    problems = []
    for side, other in ((link.left, link.right), (link.right, link.left)):
        if isinstance(side, Literal) and isinstance(other, Name):
            column = known[other.text]
            timed = {DATE: _as_date, CLOCK: _as_clock}
            if family := next((kind for kind in kinds if kind in timed), None):
                problems += [f"it {_NO_TIME[family]}"] if timed[family](side.value) is None else []
            elif "boolean" not in kinds and column.levels and link.sign in ("==", "!="):
                text = side.value if isinstance(side.value, str) else canonical_number(side.value)
                if text not in column.levels:
                    meant = did_you_mean(text, column.levels)
                    if column.discovers:
                        meant += "; a code that no fit has found stands as its group or as other"
                    problems.append(f"column {other.text!r} has no category {shown(text)}{meant}")
    return problems
