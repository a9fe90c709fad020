"""The categories of a column: declared ones, or numbers cut at public places; a public fact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import figure
from dpsynth.encoding import Codec, code_ends, coder_of
from dpsynth.errors import InputError

MISSING = "(missing)"


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of one column.

    Attributes:
        column: its name.
        labels: of the categories, in order; missing is the last one, where a cell may be missing.
        place_of: the place of the category of each code, ``[codes]``.
    """

    column: str
    labels: tuple[str, ...]
    place_of: npt.NDArray[np.int64]

    @classmethod
    def of(cls, codec: Codec, name: str, cuts: Sequence[float] | None) -> Self:
        """Sort a column's codes into categories.

        Args:
            codec: of a schema.
            name: of a coded column.
            cuts: numbers at which a number is cut, rising; None for a column with categories.

        Raises:
            InputError: the column has no categories, or cannot be cut so.

        Example:
            >>> from dpsynth.schema import Schema
            >>> Categories.of(Codec(Schema.load("cardio")), "height", [150, 170]).labels
            ('below 150', '150 to below 170', '170 or more')
        """
        place = codec.names.index(name)
        column, ordered, size = codec.schema.modelled[place], codec.cells[place], codec.sizes[place]
        decimal = codec.schema.dialect.decimal
        if cuts is None:
            if ordered:
                raise InputError(
                    f"column '{name}' has no list of categories; a number can be cut: --cuts "
                    f"{name}=10,20"
                )
            codes = np.arange(size)
            texts = coder_of(column, decimal).decode(codes, np.random.default_rng(0))
            labels = [MISSING if pd.isna(text) else str(text) for text in texts]
            return cls(name, _distinct(name, labels), codes)
        if not ordered or not column.kind.is_number:
            raise InputError(f"column '{name}' has no numbers to cut; name it without cuts")
        starts = code_ends(column, decimal)[0].to_numpy(np.float64, na_value=np.nan)[:ordered]
        edges = np.asarray(cuts, dtype=np.float64)
        rising = len(edges) and np.isfinite(edges).all() and (np.diff(edges) > 0).all()
        if not rising or edges[0] <= starts[0] or edges[-1] > starts[-1]:
            raise InputError(
                f"the cuts of column '{name}' must be rising numbers above {figure(starts[0])} and "
                f"up to {figure(starts[-1])}: they say where a category begins"
            )
        nearest = np.abs(starts[:, None] - edges).argmin(axis=0)
        split = ~np.isclose(starts[nearest], edges, rtol=1e-9, atol=0)
        if split.any():
            first = int(split.argmax())
            raise InputError(
                f"{figure(edges[first])} is no place to cut column '{name}', whose numbers are "
                f"read in steps; the nearest place is {starts[nearest[first]]:g}"
            )
        words = [figure(edge) for edge in edges]
        middle = [f"{low} to below {high}" for low, high in pairwise(words)]
        labels = [f"below {words[0]}", *middle, f"{words[-1]} or more"]
        places = np.searchsorted(nearest, np.arange(ordered), side="right").astype(np.int64)
        others = size - ordered
        every = np.append(places, np.full(others, len(labels)))
        return cls(name, _distinct(name, [*labels, *[MISSING][:others]]), every)


def _distinct(name: str, labels: list[str]) -> tuple[str, ...]:
    if len(set(labels)) < len(labels):
        raise InputError(f"two categories of column '{name}' are written alike; rename one")
    return tuple(labels)
