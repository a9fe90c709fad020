"""How precise a bundle is, for its page: what stands above its noise, and what was not measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from dpsynth._util import svg
from dpsynth._util.formatting import counted
from dpsynth.bundle.format.precision import (
    CELLS,
    COLUMN,
    FIT,
    GROUP,
    PAIR,
    TREND,
    Precision,
    PrecisionLine,
)

SHOWN = 10  # pairs and groups


@dataclass(frozen=True)
class PrecisionSection:
    """What the page says of precision.

    Attributes:
        error: standard error of a count of one column, in people.
        readable_from: number of people from which a count is known to within a tenth.
        fit: how well the model meets the counts; empty if the run does not say.
        columns: those whose typical code does not stand above its noise.
        pairs: the pairs that stand out most: both columns, and times their noise.
        unmeasured: what was not measured, a sentence; empty if all pairs were.
        small: declared groups that are too small to read.
        more_small: how many more of them there are.
        picture: how much stands above its noise.
    """

    error: float
    readable_from: int
    fit: str
    columns: tuple[str, ...]
    pairs: tuple[tuple[str, str, float], ...]
    unmeasured: str
    small: tuple[str, ...]
    more_small: int
    picture: Markup


def precision_section(precision: Precision) -> PrecisionSection:
    """Prepare the section.

    Args:
        precision: the lines of the file.
    """
    columns = sum(1 for _ in precision.of(COLUMN))
    first = next(precision.of(COLUMN))
    pairs = [line for line in precision.of(PAIR) if line.measured == CELLS]
    small = [line for line in precision.of(GROUP) if _is_small(line)]
    names = tuple(f"{line.column}: {line.group}" for line in small)
    return PrecisionSection(
        first.standard_error or 0.0,
        first.readable_from or 0,
        _fit(precision.of(FIT)),
        tuple(line.column for line in precision.of(COLUMN) if line.stands_out == "no"),
        tuple(
            (line.column, line.other, line.times_noise or 0.0)
            for line in pairs[:SHOWN]
            if line.stands_out == "yes"
        ),
        _unmeasured(precision, len(pairs), columns),
        names[:SHOWN],
        max(0, len(names) - SHOWN),
        _picture(precision, columns),
    )


def _is_small(line: PrecisionLine) -> bool:
    return (line.people or 0.0) < (line.readable_from or 0)


def _fit(lines: Iterable[PrecisionLine]) -> str:
    for line in lines:
        if line.cells:
            missed = counted(line.missed or 0, "measured cell")
            return f"The model misses {missed} of {line.cells:,} by more than 3 standard errors."
    return ""


def _all_pairs(columns: int) -> int:
    return columns * (columns - 1) // 2


def _unmeasured(precision: Precision, measured: int, columns: int) -> str:
    """Say of how many pairs the cells were not counted."""
    rest = _all_pairs(columns) - measured
    if not rest:
        return ""
    pairs = counted(rest, "pair")
    if any(line.measured == TREND for line in precision.of(PAIR)):
        return (
            f"Of {pairs} of columns, only trends were measured, and no cells: whether both rise "
            "together is known, and single combinations of values are not."
        )
    return (
        f"Nothing was measured of {pairs} of columns. The table shows their relation only as far "
        "as it follows from other pairs: draw no conclusion from it."
    )


def _picture(precision: Precision, columns: int) -> Markup:
    """Draw how many pairs and groups stand above their noise."""
    pairs = [line for line in precision.of(PAIR) if line.measured == CELLS]
    clear = sum(line.stands_out == "yes" for line in pairs)
    every = _all_pairs(columns)
    trend = any(line.measured == TREND for line in precision.of(PAIR))
    rest = "Pairs with a trend alone" if trend else "Pairs that were not measured"
    parts = [
        ("Pairs that stand above their noise", clear, every),
        ("Pairs within their noise", len(pairs) - clear, every),
        (rest, every - len(pairs), every),
    ]
    groups = list(precision.of(GROUP))
    small = sum(map(_is_small, groups))
    parts += [
        ("Groups that are large enough to read", len(groups) - small, len(groups)),
        ("Groups that are too small to read", small, len(groups)),
    ]
    rows = [
        (label, count / total, f"{count:,} of {total:,}") for label, count, total in parts if total
    ]
    title = "How many pairs of columns and groups stand above the noise"
    return svg.shares_of("precision-picture", title, rows)
