"""Cells of several codes to places of one code each.

**Sensitivity.** What a cell becomes is a function of its own text and of the schema. Its codes are
put in the order of the declared list (or kept as they stand, where the column is ordered), never
by how often a code occurs. A cell of more codes than ``most`` keeps some of them by a hash of the
cell itself (or the first ones), so no code is favoured and no other row is looked at. So a unit
changes its own coded rows and no others, each row enters each histogram of each place once, and
the sensitivity of every event of a plan is what it was.
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
