"""Typed tables as matrices for classifiers and regressions: one way for all of an evaluation."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding import Codec
from dpsynth.eval.core.tables import TableView
from dpsynth.schema import Column
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
