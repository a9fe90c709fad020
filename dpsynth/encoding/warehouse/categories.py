"""The codes of texts, numbers and truth values that stand for categories, in SQL.

The codec itself is asked for the code of each declared text; all others share the code of an
undeclared one. So nothing of the codec is written twice.
"""

from __future__ import annotations

from collections.abc import Iterable

import ibis
import pandas as pd

from dpsynth.encoding.column_codecs import CategoryCoder, Coder, level_values
from dpsynth.encoding.warehouse.values import Expression, close_to, is_bad, whole
from dpsynth.tables import missing_words
from dpsynth.tables.warehouse import Stored

UNDECLARED = "\x01 is no text of a schema"


def code_of_text(text: Expression, coder: CategoryCoder) -> Expression:
    """Return the code of a trimmed text."""
    column = coder.column
    texts = {*missing_words(column), *column.levels, *column.forms.reason_texts}
    texts |= {word for word, _ in column.forms.values}
    if column.kind.is_truth:
        texts |= {*column.true_values, *column.false_values}
    listed = sorted({word.strip() for word in texts})
    by_code: dict[int, list[str]] = {}
    unknown = _code(coder, UNDECLARED)
    for word, code in zip(listed, _codes(coder, listed), strict=True):
        if code != unknown:
            by_code.setdefault(code, []).append(word)
    branches = [(text.isin(words), whole(code)) for code, words in sorted(by_code.items())]
    branches = [(text.isnull(), whole(_code(coder, None))), *branches]
    return ibis.cases(*branches, else_=whole(unknown))


def code_of_number(value: Expression, coder: CategoryCoder, stored: Stored) -> Expression:
    """Return the code of a cell that is a number or a truth value.

    Args:
        value: as `values.value_of` gives it: NULL if missing, infinite if bad.
        coder: of the column.
        stored: how its warehouse stores it.
    """
    missing, bad = fixed_codes(coder)
    branches = [(value.isnull(), whole(missing)), (is_bad(value), whole(bad))]
    if coder.column.kind.is_truth:
        words = ("false", "true") if stored is Stored.TRUTH else ("0", "1")
        options = list(zip((0.0, 1.0), _codes(coder, words), strict=True))
        others = bad
    else:
        levels = level_values(coder.column).tolist()
        options = [(level, place) for place, level in enumerate(levels)]
        others = _undeclared_number(coder, levels)
    branches += [(close_to(value, option, category=True), whole(code)) for option, code in options]
    return ibis.cases(*branches, else_=whole(others))


def _undeclared_number(coder: CategoryCoder, levels: list[float]) -> int:
    """Return the code of a number that is neither a category nor a token of a missing cell."""
    taken = {*levels, *(value for value in _numbers(missing_words(coder.column)))}
    free = next(value for value in range(1, len(taken) + 2) if float(value) not in taken)
    return _code(coder, str(free))


def _numbers(texts: Iterable[str]) -> Iterable[float]:
    for text in texts:
        try:
            yield float(text.replace(",", "."))
        except ValueError:
            continue


def fixed_codes(coder: Coder) -> tuple[int, int]:
    """Return the codes of a missing cell and of one that cannot be read."""
    missing, bad = _codes(coder, (None, UNDECLARED))
    return missing, bad


def _code(coder: Coder, text: str | None) -> int:
    return _codes(coder, (text,))[0]


def _codes(coder: Coder, texts: Iterable[str | None]) -> list[int]:
    return [int(code) for code in coder.encode(pd.Series([*texts], dtype=object))]
