"""Drawn places of codes as cells of several codes, and such cells of a synthetic table read again.

Gaps between places are closed, and where a code was drawn twice in a row, one of them is exchanged
with that of another drawn row, so that each place keeps its distribution. All this reads drawn rows
and fresh randomness only: post-processing (Dwork and Roth, The Algorithmic Foundations of
Differential Privacy, 2014, Proposition 2.1).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.schema import Column, place_names
from dpsynth.tables import distinct, texts_of

Ints = npt.NDArray[np.int64]

ROUNDS = 5
"""How often codes that were drawn twice are exchanged; after three, almost no row has one."""
NO_CODE = -1


def joined(
    cells: Mapping[Any, pd.Series[Any]], column: Column, rng: np.random.Generator
) -> pd.Series[Any]:
    """Return one cell for the drawn places of each row, in which no code stands twice.

    Args:
        cells: decoded, by coded column.
        column: as it is published.
        rng: of the rows with which a code that was drawn twice is exchanged.
    """
    several = column.several
    assert several is not None
    levels = column.levels
    place_of = _places(column)
    drawn = np.column_stack(
        [
            [place_of.get(text, NO_CODE) for text in cells[name].to_numpy(dtype=object)]
            for name in place_names(column)
        ]
    ).astype(np.int64)
    codes = without_repeats(drawn.reshape(-1, several.most), rng)
    if not several.ordered:
        codes = np.sort(np.where(codes == NO_CODE, len(levels), codes), axis=1)
        codes[codes == len(levels)] = NO_CODE
    held = [[levels[code] for code in row if code != NO_CODE] for row in codes.tolist()]
    return pd.Series([several.join(each) if each else None for each in held], dtype=object)


def _places(column: Column) -> dict[str, int]:
    """Return the place of each level of a column among them."""
    return {level: place for place, level in enumerate(column.levels)}


def without_repeats(codes: Ints, rng: np.random.Generator) -> Ints:
    """Return places in which no row has a code twice.

    A repeated code changes places with the code that another row, drawn at random, has in the same
    place, if neither row has a repeat then. What is left after `ROUNDS` is taken out.

    Args:
        codes: of each place, ``[rows, places]``, `NO_CODE` for none.
        rng: of the other rows.
    """
    codes = codes.copy()
    for _ in range(ROUNDS):
        repeats = _repeats(codes)
        if not repeats.any():
            return codes
        bad = np.logical_or.reduce(repeats, axis=1)
        for place in range(1, codes.shape[1]):
            rows = np.flatnonzero(repeats[:, place])
            other = rng.integers(0, len(codes), len(rows))
            mine, theirs = codes[rows, place], codes[other, place]
            new_here = (codes[rows] != theirs[:, None]).all(axis=1)
            new_there = (codes[other] != mine[:, None]).all(axis=1)
            fits = ~bad[other] & (theirs != NO_CODE) & new_here & new_there
            once = np.zeros(len(rows), dtype=bool)
            once[np.unique(other, return_index=True)[1]] = True  # a row gives one code a time
            fits &= once
            codes[rows[fits], place], codes[other[fits], place] = theirs[fits], mine[fits]
    codes[_repeats(codes)] = NO_CODE
    return codes


def _repeats(codes: Ints) -> npt.NDArray[np.bool_]:
    """Say which codes stand in an earlier place of their row, ``[rows, places]``."""
    again = np.zeros(codes.shape, dtype=bool)
    for place in range(1, codes.shape[1]):
        earlier = np.any(codes[:, :place] == codes[:, place : place + 1], axis=1)
        again[:, place] = earlier & (codes[:, place] != NO_CODE)
    return again


def set_values(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return a number for each cell of several codes, by its text: equal for equal cells only.

    It is 48 bits of a hash, and stands for a cell where cells are compared, such as in a digest.
    """
    return np.array(
        [int.from_bytes(hashlib.blake2b(t.encode(), digest_size=6).digest(), "big") for t in texts],
        dtype=np.float64,
    )


def set_faults(texts: Sequence[str], column: Column) -> dict[str, npt.NDArray[np.bool_]]:
    """Say which texts break what a synthetic column of several codes promises, by rule."""
    several = column.several
    assert several is not None
    place_of = _places(column)
    every = [text.split(several.separator) for text in texts]
    places = [[place_of.get(part, NO_CODE) for part in parts] for parts in every]
    unknown = f"a code that is none of the {len(column.levels)} categories"
    rules = {
        unknown: [NO_CODE in each for each in places],
        f"more than {several.most} codes": [len(p) > several.most for p in places],
        "a code twice": [len(set(parts)) < len(parts) for parts in every],
    }
    if not several.ordered:
        rules["codes that are not in the order of the list"] = [p != sorted(p) for p in places]
    return {rule: np.array(broken, dtype=bool) for rule, broken in rules.items()}


def exploded(cells: pd.Series[Any], column: Column) -> tuple[Ints, Ints]:
    """Return the place of each code of each cell among the levels, `NO_CODE` for none, and its row.

    A missing cell has no code.
    """
    several = column.several
    assert several is not None
    place_of = _places(column)
    of_text, texts = distinct(texts_of(cells))
    codes = [[place_of.get(part, NO_CODE) for part in several.split(text)] for text in texts]
    codes.append([])
    numbers = np.array([len(each) for each in codes])
    ends = np.cumsum(numbers)
    flat = np.array([code for each in codes for code in each], dtype=np.int64)
    of_cell = np.where(of_text < 0, len(texts), of_text)
    rows = np.repeat(np.arange(len(of_cell)), numbers[of_cell])
    begins = np.cumsum(numbers[of_cell]) - numbers[of_cell]
    within = np.arange(len(rows)) - np.repeat(begins, numbers[of_cell])
    return flat[np.repeat((ends - numbers)[of_cell], numbers[of_cell]) + within], rows
