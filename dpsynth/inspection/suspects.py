"""The cells of one column that its codec does not take as they stand, and a way to try others.

A cause is claimed by trying: each text is rewritten as the cause would have it, and counts only if
the column's own codec then takes it. So a cause is never claimed for a cell that is valid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.column_codecs import Kind, coder_of
from dpsynth.inspection.findings import CLIPPED, UNKNOWN, UNREADABLE, Cause, Finding
from dpsynth.schema import Column

MAX_TEXTS = 10_000  # distinct ones of a column that are kept
MIN_SHARE = 0.02  # of a finding's cells; what explains fewer is not named
READ = (Kind.VALID, Kind.CLIPPED)


@dataclass
class Suspects:
    """Texts of one column that are unknown, unreadable or clipped; private.

    Attributes:
        column: its declaration.
        decimal: the declared decimal sign.
        of_kind: how often each distinct trimmed text occurs, by `Kind`.
        valid: some of the valid values of a numeric column, in its unit.
        sign_is_used: whether cells of the table, of any column, are read with the decimal sign.
    """

    column: Column
    decimal: str
    of_kind: dict[Kind, Counter[str]] = field(default_factory=dict)
    valid: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    sign_is_used: bool = False

    @property
    def has_decimals(self) -> bool:
        """Whether a valid value of a column of numbers is not whole, so that its sign was read."""
        if not self.column.kind.has_decimals or self.column.is_categorical:
            return False
        values = self.valid[np.isfinite(self.valid)]
        return bool((values != np.rint(values)).any())

    def add(self, kind: Kind, texts: Iterable[str], counts: Iterable[int]) -> None:
        """Count texts; distinct ones beyond `MAX_TEXTS` are not kept."""
        kept = self.of_kind.setdefault(kind, Counter())
        for text, count in zip(texts, counts, strict=True):
            if text in kept or len(kept) < MAX_TEXTS:
                kept[text] += count

    def kinds(
        self, texts: Sequence[str], *, decimal: str | None = None, **changes: Any
    ) -> npt.NDArray[np.uint8]:
        """Return the `Kind` of texts, with another decimal sign or declaration if one is given."""
        column = replace(self.column, **changes) if changes else self.column
        cells: pd.Series[Any] = pd.Series(list(texts), dtype=object)
        return coder_of(column, decimal or self.decimal).kinds(cells)


_KINDS = {UNREADABLE: Kind.BAD, UNKNOWN: Kind.UNKNOWN, CLIPPED: Kind.CLIPPED}


def texts_of_finding(suspects: Mapping[str, Suspects], finding: Finding) -> Counter[str] | None:
    """Return the cells of a finding, with how often each occurs; None if none are kept.

    None are kept of findings about rows, nor of cells that hold too many codes.
    """
    if finding.kind not in _KINDS:
        return None
    return suspects[finding.place].of_kind.get(_KINDS[finding.kind])


@dataclass(frozen=True)
class Explanation:
    """One thing that texts can be due to.

    Attributes:
        key: of the `Cause`.
        message: of the `Cause`.
        remedy: of the `Cause`.
        rewrite: gives what a text should be, or None if it is not of this cause.
        trusted: whether the codec need not take what `rewrite` gives; it is then no value.
        clipped: whether it is enough that the codec clips it.
    """

    key: str
    message: str
    remedy: str
    rewrite: Callable[[str], str | None]
    trusted: bool = False
    clipped: bool = True


def explained(
    suspects: Suspects, texts: Counter[str], explanations: Sequence[Explanation]
) -> tuple[Cause, ...]:
    """Give each text to the first explanation that fits it; return causes, the largest first."""
    rest, causes = dict(texts), []
    for one in explanations:
        meant = {text: new for text in rest if (new := one.rewrite(text)) is not None}
        if meant and not one.trusted:
            kinds = READ if one.clipped else (Kind.VALID,)
            fits = np.isin(suspects.kinds(list(meant.values())), kinds)
            meant = {text: new for (text, new), fit in zip(meant.items(), fits, strict=True) if fit}
        cells = sum(rest.pop(text) for text in meant)
        if cells and cells >= MIN_SHARE * texts.total():
            causes.append(Cause(one.key, cells, one.message, one.remedy, meant))
    return tuple(sorted(causes, key=lambda cause: -cause.cells))
