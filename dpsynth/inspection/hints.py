"""The lines that a check proposes for a schema, with placeholders in the place of cells."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

VALUES = 'add to the column: dpsynth: {values: {"CELL": "CATEGORY"}}'
CASE = "add to the column: dpsynth: {case: false}"
MISSING = (
    'add the word to the column: missingValues: ["", "WORD"], or with its meaning: dpsynth: '
    '{missing: {REASON: ["WORD"]}}'
)
CODE = (
    'add the code to the column, if its coding manual says so: missingValues: ["", "CODE"], or '
    'with its meaning: dpsynth: {missing: {REASON: ["CODE"]}}'
)
UNIT = (
    "convert them in the source: no key of a schema guesses a unit from the size of a value; or, "
    "if another column names the unit: dpsynth: {unit_from: "
    '{column: UNIT_COLUMN, "UNIT": FACTOR}}'
)
FRACTION = "set in the column, with the step of the source: {type: number, dpsynth: {step: STEP}}"
REST = "to keep the rest as a category of its own: dpsynth: {on_unknown: other}"
LOW = 'add to the column, from the protocol of the assay: dpsynth: {censored: {low: "<LIMIT"}}'
HIGH = 'add to the column, from the protocol of the assay: dpsynth: {censored: {high: ">LIMIT"}}'
_BOUNDS = "write its minimum and maximum in this format, too, or like 2015-12-31"
MAX_LABELS = 12  # more make a line that nobody reads
SHOW = "--show-values FILE lists them"


def decimal(sign: str) -> str:
    """Propose another decimal sign."""
    return f'set at the end of the schema: dpsynth: {{dialect: {{decimal: "{sign}"}}}}'


def one_decimal(sign: str) -> str:
    """Say that a table has one decimal sign, where other cells are read with the declared one."""
    return f"let the source write them with {sign!r}: other cells of the table have it"


def thousands(marks: Iterable[str], decimal: str) -> str:
    """Propose to declare a separator of thousands, if there is one and it is not the decimal sign.

    >>> thousands([","], ".")
    'add to the column: groupChar: ","; or let the source write numbers without it: 5000, not 5,000'
    """
    source = "let the source write numbers without it: 5000, not 5,000"
    signs = sorted(marks)
    if len(signs) != 1 or signs[0] == decimal:
        return source
    return f"add to the column: groupChar: {_quoted(signs[0])}; or {source}"


def encoding(name: str) -> str:
    """Propose another encoding."""
    return f"set at the end of the schema: dpsynth: {{dialect: {{encoding: {name}}}}}"


def date_format(pattern: str, declared: str | None, *, only: bool) -> str:
    """Propose a format of dates, for all cells or beside the declared one; None for ISO 8601."""
    if only:
        bounds = f"; {_BOUNDS}" if declared else ""
        return f'set in the column: format: "{pattern}"{bounds}'
    line = f'dpsynth: {{formats: ["{declared or "default"}", "{pattern}"]}}'
    instead = ", in place of its own" if declared else ""
    return f"declare both formats in the column{instead}: {line}"


def labels(of_category: Mapping[str, str], *, case: bool) -> str:
    """Propose the value map from labels to their categories; all are declared, so public.

    >>> labels({"F": "female", "M": "male"}, case=True)
    'add to the column: dpsynth: {values: {"female": "F", "male": "M"}}'
    """
    pairs = {label: category for category, label in of_category.items()}
    ignored = "" if case else "case: false, "
    if len(pairs) > MAX_LABELS:
        return f"{VALUES}, for each label; {SHOW}"
    return f"add to the column: {values_line(pairs).replace('{values', '{' + ignored + 'values')}"


def values_line(texts: Mapping[str, str]) -> str:
    """Write the value map itself; private.

    >>> values_line({"Ja": "ja"})
    'dpsynth: {values: {"Ja": "ja"}}'
    """
    pairs = (f"{_quoted(cell)}: {_quoted(category)}" for cell, category in texts.items())
    return f"dpsynth: {{values: {{{', '.join(pairs)}}}}}"


def missing_line(texts: Mapping[str, str]) -> str:
    """Write the list of missing words itself; private.

    >>> missing_line({"k.A.": ""})
    'missingValues: ["", "k.A."]'
    """
    return f"missingValues: [{', '.join(map(_quoted, ['', *texts]))}]"


def censored_line(texts: Mapping[str, str], side: str) -> str:
    """Write the limits of detection themselves; private.

    >>> censored_line({"<5": ""}, "low"), censored_line({"<5": "", "<10": ""}, "low")
    ('dpsynth: {censored: {low: "<5"}}', 'dpsynth: {censored: {low: ["<5", "<10"]}}')
    """
    limits = [_quoted(text) for text in texts]
    every = limits[0] if len(limits) == 1 else f"[{', '.join(limits)}]"
    return f"dpsynth: {{censored: {{{side}: {every}}}}}"


def truth_line(texts: Mapping[str, str]) -> str:
    """Write the words for true and false themselves; private.

    >>> truth_line({"Ja": "true", "nein": "false"})
    'trueValues: ["Ja"], falseValues: ["nein"]'
    """
    parts = []
    for name, truth in (("trueValues", "true"), ("falseValues", "false")):
        words = [_quoted(cell) for cell, meant in texts.items() if meant == truth]
        if words:
            parts.append(f"{name}: [{', '.join(words)}]")
    return ", ".join(parts)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
