"""Columns of a table for analysis: as matrices for classifiers and regressions, and as levels.

A level of a group is a category, or a band of a number, by which figures are told apart.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding import Codec
from dpsynth.eval.core.tables import TableView
from dpsynth.schema import Column, in_units
from dpsynth.tables import typed_values

Floats = npt.NDArray[np.float64]

MAX_CATEGORIES = 255  # that scikit-learn's histogram boosting takes as such


def numbers(view: TableView, column: Column) -> Floats:
    """Return a numeric column in its unit (days or seconds for times), NaN where missing."""
    return typed_numbers(view.frame[column.name], column)


def published_numbers(view: TableView, column: Column) -> Floats:
    """Return a numeric column of the published table, as `numbers` does."""
    return typed_numbers(view.cells[column.name], column)


def typed_numbers(cells: pd.Series[Any], column: Column) -> Floats:
    """Return typed cells of a numeric column in its unit, NaN where missing."""
    return typed_values(cells, column.kind)


def ordinal(view: TableView, codec: Codec, skip: Collection[str] = ()) -> tuple[Floats, list[bool]]:
    """Return a matrix for trees, and which of its columns are categorical.

    Numbers stand as they are, a category by its code, what is missing is NaN. ``skip`` names
    columns to leave out.
    """
    columns, categorical = [], []
    for place, column in enumerate(codec.schema.modelled):
        if column.name in skip:
            continue
        if column.is_categorical:
            codes = view.codes[:, place].astype(float)
            codes[codes >= len(column.levels)] = np.nan
            columns.append(codes)
            categorical.append(len(column.levels) <= MAX_CATEGORIES)
        else:
            columns.append(numbers(view, column))
            categorical.append(False)
    return np.stack(columns, axis=1), categorical


@dataclass(frozen=True, eq=False)
class DesignMatrix:
    """How a table becomes a matrix for a linear model; made from one table, applied to others.

    A number is standardised by the mean and deviation of the reference, with an indicator where it
    may be missing; a category has an indicator each, but for the commonest of the reference.

    Attributes:
        codec: the schema's codes.
        skip: columns that are left out.
        scales: (mean, deviation) by numeric column.
        base: code of the category without an indicator, by categorical column.
        terms: the name of each column of the matrix, such as ``age`` or ``sex = F``.
    """

    codec: Codec
    skip: frozenset[str]
    scales: dict[str, tuple[float, float]]
    base: dict[str, int]
    terms: tuple[str, ...]

    @classmethod
    def of(cls, reference: TableView, codec: Codec, skip: Collection[str] = ()) -> DesignMatrix:
        """Take scales and base categories from a reference table."""
        scales, base, terms = {}, {}, []
        for place, column in enumerate(codec.schema.modelled):
            if column.name in skip:
                continue
            if not column.is_categorical:
                values = numbers(reference, column)
                values = values[~np.isnan(values)]
                deviation = float(values.std()) if len(values) else 0.0
                scales[column.name] = (float(values.mean()) if len(values) else 0.0, deviation or 1)
                terms.append(column.name)
                terms += [f"{column.name} missing"] if column.nullable else []
                continue
            counts = np.bincount(reference.codes[:, place], minlength=codec.sizes[place])
            base[column.name] = int(counts.argmax())
            terms += [
                f"{column.name} = {name}"
                for code, name in enumerate(_names(column))
                if code != base[column.name]
            ]
        return cls(codec, frozenset(skip), scales, base, tuple(terms))

    def matrix(self, view: TableView) -> Floats:
        """Return the matrix ``[rows, terms]`` of a table."""
        blocks: list[Floats] = []
        for place, column in enumerate(self.codec.schema.modelled):
            if column.name in self.skip:
                continue
            if not column.is_categorical:
                mean, deviation = self.scales[column.name]
                values = (numbers(view, column) - mean) / deviation
                missing = np.isnan(values)
                blocks.append(np.where(missing, 0.0, values)[:, None])
                if column.nullable:
                    blocks.append(missing[:, None].astype(float))
                continue
            levels = [c for c in range(self.codec.sizes[place]) if c != self.base[column.name]]
            blocks.append((view.codes[:, place, None] == np.array(levels)).astype(float))
        return np.hstack(blocks) if blocks else np.zeros((view.rows, 0))


def _names(column: Column) -> list[str]:
    """Name the codes of a categorical column."""
    names = [str(column.labels.get(level, level)) for level in column.levels]
    return names + (["missing"] if column.nullable else [])


Ints = npt.NDArray[np.int64]

BANDS = 5  # of equal width between the declared bounds


@dataclass(frozen=True, eq=False)
class Levels:
    """How a column divides rows: made from the schema alone.

    Attributes:
        column: the group.
        place: where its codes stand.
        names: what each level is called: a declared label, or a band such as ``18 to 34``.
        cuts: where bands end, in the unit of `features.numbers`; empty for categories.
    """

    column: Column
    place: int
    names: tuple[str, ...]
    cuts: Floats

    @classmethod
    def of(cls, column: Column, codec: Codec) -> Levels:
        """Take categories, or cut what lies between the declared bounds into equal bands.

        Bands of whole numbers and times are named by their first and last value, of others by
        where they begin and what they end before.
        """
        place = codec.names.index(column.name)
        if column.is_categorical:
            labels = tuple(str(column.labels.get(level, level)) for level in column.levels)
            return cls(column, place, labels, np.zeros(0))
        assert column.minimum is not None and column.maximum is not None  # or no codec
        ends = column.minimum, column.maximum
        low, high = (float(in_units(end, column.kind)) for end in ends)
        if column.kind.has_decimals:
            edges = np.linspace(low, high, BANDS + 1)
            texts = [f"{edge:.6g}" for edge in edges]
            names = [f"{a} to under {b}" for a, b in pairwise(texts[:-1])]
            return cls(column, place, (*names, f"{texts[-2]} to {texts[-1]}"), edges[1:-1])
        shares = np.arange(BANDS + 1) / BANDS
        edges = np.unique(low + np.ceil(shares * (high - low + 1)))
        first, last = _band_names(edges[:-1], column), _band_names(edges[1:] - 1, column)
        names = [a if a == b else f"{a} to {b}" for a, b in zip(first, last, strict=True)]
        return cls(column, place, tuple(names), edges[1:-1])

    @property
    def title(self) -> str:
        """The group's name for people."""
        return self.column.title or self.column.name

    def of_rows(self, view: TableView) -> Ints:
        """Return the level of each row, -1 where the column is missing."""
        if self.column.is_categorical:
            codes = view.codes[:, self.place].astype(np.int64)
            return np.where(codes < len(self.names), codes, -1)
        values = numbers(view, self.column)
        return np.where(np.isnan(values), -1, np.searchsorted(self.cuts, values, side="right"))


def levels_of(codec: Codec, *roles: str) -> list[Levels]:
    """Return the levels of every modelled column that has one of the roles."""
    columns = [column for column in codec.schema.modelled if column.roles & set(roles)]
    return [Levels.of(column, codec) for column in columns]


def _band_names(edges: Floats, column: Column) -> list[str]:
    """Write whole numbers and days as people read them."""
    kind = column.kind
    if kind.is_time and kind.write is not None:
        return [kind.write(edge)[:10] for edge in edges.tolist()]
    if kind.is_spelled:
        return [kind.text(edge) for edge in edges.tolist()]
    return [f"{edge:.0f}" for edge in edges]


OTHERS, MISSING = "all others", "missing"
