"""Cells of several codes to places of one code each.

**Sensitivity.** What a cell becomes is a function of its own text and of the schema. Its codes are
put in the order of the declared list (or kept as they stand, where the column is ordered), never
by how often a code occurs. A cell of more codes than ``most`` keeps some of them by a hash of the
cell itself (or the first ones), so no code is favoured and no other row is looked at. So a unit
changes its own coded rows and no others, each row enters each histogram of each place once, and
the sensitivity of every event of a plan is what it was.

Drawn places of codes as cells of several codes, and such cells of a synthetic table read again.

Gaps between places are closed, and where a code was drawn twice in a row, one of them is exchanged
with that of another drawn row, so that each place keeps its distribution. All this reads drawn rows
and fresh randomness only: post-processing (Dwork and Roth, The Algorithmic Foundations of
Differential Privacy, 2014, Proposition 2.1).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.column_codecs import REFUSED, CategoryCoder, Kind, Kinds
from dpsynth.schema import Column, place_names, single
from dpsynth.tables import distinct, missing_words, texts_of, trimmed

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CodeSet:
    """The codes of one cell.

    Attributes:
        codes: by their place among the levels of the column, each once, as they stand.
        unknown: parts that are not declared, without blanks around them.
        refused: whether the column refuses one of them.
        untidy: whether a code stands there twice, or a part is empty.
    """

    codes: tuple[int, ...]
    unknown: tuple[str, ...] = ()
    refused: bool = False
    untidy: bool = False


class SetCoder:
    """Reads cells of several codes; see `coder_of` for cells of one value.

    Attributes:
        column: as it is published.
        several: how its cells hold several codes.
    """

    def __init__(self, column: Column, decimal: str) -> None:
        """Take the declaration; nothing is fitted.

        Raises:
            ValueError: its cells hold one code.
        """
        if column.several is None:
            raise ValueError(f"cells of {column.name!r} hold one code")
        self.column, self.several = column, column.several
        self._one = CategoryCoder(single(column), decimal)
        self._levels = column.levels
        self._known_levels = len(self._one.column.levels)  # codes behind them mean none

    def sets(self, cells: pd.Series[Any]) -> tuple[Ints, list[CodeSet]]:
        """Return the distinct sets, the empty one last, and which of them each cell is."""
        of_text, texts = distinct(trimmed(texts_of(cells)))
        parts = {text: self._parts(text) for text in texts}
        words = list(dict.fromkeys(part for each in parts.values() for part in each))
        known = self._known(words)
        every = [self._set(parts[text], known) for text in texts]
        return np.where(of_text < 0, len(every), of_text), [*every, CodeSet(())]

    def places(self, cells: pd.Series[Any]) -> dict[str, pd.Series[Any]]:
        """Return the text of each place's code, None where there is none, by coded column.

        A cell with a code that the column refuses has that text in its first place, which refuses
        it in turn.
        """
        of_cell, every = self.sets(cells)
        texts = np.full((len(every), self.several.most), None, dtype=object)
        for row, one in enumerate(every):
            codes = self.kept(one.codes)
            texts[row, : len(codes)] = [self._levels[code] for code in codes]
            if one.refused:
                texts[row, 0] = one.unknown[0]
        return {
            name: pd.Series(texts[of_cell, place], name=self.column.name, dtype=object)
            for place, name in enumerate(place_names(self.column))
        }

    def bounded(self, cells: pd.Series[Any]) -> pd.Series[Any]:
        """Return each cell as the synthetic table would hold it, None where it has no code."""
        of_cell, every = self.sets(cells)
        texts = [self._text(self.kept(one.codes)) for one in every]
        if self.column.required:  # a cell without codes is what the first place makes of it
            first = CategoryCoder(self.column, self._one.decimal).encode(pd.Series([None]))[0]
            texts = [self._levels[max(first, 0)] if text is None else text for text in texts]
        return pd.Series(np.array([*texts, None], dtype=object)[of_cell])

    def kinds(self, cells: pd.Series[Any], units: object = None) -> Kinds:
        """Return the `Kind` of each cell: unknown with such a code, clipped with too many."""
        of_cell, every = self.sets(cells)
        return np.array([self._kind(one) for one in every], dtype=np.uint8)[of_cell]

    def kept(self, codes: Sequence[int]) -> list[int]:
        """Return at most ``most`` codes of a cell, in the order in which they are coded."""
        if self.several.ordered:
            return list(codes[: self.several.most])
        order = sorted(codes)
        if len(order) > self.several.most:
            salt = ",".join(map(str, order))
            order = sorted(order, key=lambda code: _lot(code, salt))[: self.several.most]
        return sorted(order)

    def _parts(self, text: str) -> list[str]:
        if text == "" or text in self._tokens:
            return []
        return [part.strip() for part in text.split(self.several.separator)]

    def _known(self, words: list[str]) -> dict[str, tuple[int, Kind]]:
        """Return code and kind of each distinct part."""
        cells = pd.Series(words, dtype=object)
        pairs = zip(self._one.encode(cells).tolist(), self._one.kinds(cells).tolist(), strict=True)
        return {word: (code, Kind(kind)) for word, (code, kind) in zip(words, pairs, strict=True)}

    def _set(self, parts: list[str], known: Mapping[str, tuple[int, Kind]]) -> CodeSet:
        found = [known[part] for part in parts]
        codes = [code for code, _ in found if 0 <= code < self._known_levels]
        once = tuple(dict.fromkeys(codes))
        wrong = zip(parts, found, strict=True)
        return CodeSet(
            codes=once,
            unknown=tuple(part for part, (_, kind) in wrong if kind is Kind.UNKNOWN),
            refused=any(code == REFUSED for code, _ in found),
            untidy=len(once) < len(codes) or "" in parts,
        )

    def _kind(self, one: CodeSet) -> Kind:
        if one.unknown:
            return Kind.UNKNOWN
        if not one.codes:
            return Kind.MISSING
        return Kind.CLIPPED if len(one.codes) > self.several.most else Kind.VALID

    def _text(self, codes: list[int]) -> str | None:
        return self.several.join(self._levels[code] for code in codes) if codes else None

    @cached_property
    def _tokens(self) -> frozenset[str]:
        return missing_words(self.column)


def _lot(code: int, salt: str) -> bytes:
    """Return what decides whether a code is kept: of this code in this cell, and of nothing else.

    A cell of more codes than are kept must not lose always the same ones.
    """
    return hashlib.blake2b(f"{code}|{salt}".encode(), digest_size=8).digest()


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
