"""Figures of an evaluation in words: how many digits, which references, which signs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from dpsynth._util.formatting import counted as counted
from dpsynth._util.formatting import shown as shown
from dpsynth.schema.types import type_of

# What `reference` is of a measure whose key begins so; of all others it is the holdout.
_TRAINED = ("tstr", "calibration", "subgroup_worst_tstr")
SOURCE, SYNTHETIC, HOLDOUT = "source", "synthetic", "holdout"


def cut(text: object, maximum: int = 22) -> str:
    """Shorten a text for an axis; its end stays, as numbered names differ there.

    >>> cut("answer_to_question_17", 14)
    'answer_to…n_17'
    """
    whole = shown(text)
    tail = maximum // 3
    return whole if len(whole) <= maximum else whole[: maximum - tail - 1] + "…" + whole[-tail:]


def decimals(numbers: Iterable[float | None]) -> int:
    """Decimals for figures that are read together: two digits of the largest, at least three.

    >>> decimals([0.021, 0.018]), decimals([0.0041]), decimals([12.5]), decimals([5120.0])
    (3, 4, 1, 0)
    """
    top = max((abs(one) for one in numbers if one is not None), default=0.0)
    if top >= 10:
        return max(0, 2 - int(math.log10(top)))
    return 3 if top == 0 else min(6, max(3, 1 - math.floor(math.log10(top))))


def figure(number: float | None, places: int | None = None) -> str:
    """Write a number; a dash where there is none.

    >>> figure(0.02134), figure(48210), figure(None), figure(-0.5, 2)
    ('0.021', '48,210', '–', '−0.50')
    """
    if number is None:
        return "–"
    if isinstance(number, int):
        return f"{number:,}".replace("-", "−")
    places = decimals([number]) if places is None else places
    text = f"{number:,.{places}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("-")
    return text.replace("-", "−")


def percent(share: float | None) -> str:
    """Write a share as a percentage; what is tiny and not nothing says so.

    >>> percent(0.1234), percent(0.0021), percent(0.0), percent(0.00001), percent(None)
    ('12.3 %', '0.21 %', '0 %', '<0.01 %', '–')
    """
    if share is None:
        return "–"
    if 0 < share < 0.00005:
        return "<0.01 %"
    return "0 %" if share == 0 else f"{100 * share:.{1 if share >= 0.00995 else 2}f} %"


def estimate(entry: Mapping[str, Any] | None, places: int | None = None) -> str:
    """Write an estimate with its interval.

    >>> estimate({"value": 0.021, "low": 0.018, "high": 0.024})
    '0.021 (0.018–0.024)'
    """
    if entry is None or entry.get("value") is None:
        return "–"
    value, low, high = entry["value"], entry.get("low"), entry.get("high")
    places = decimals([value, low, high]) if places is None else places
    if low is None or high is None:
        return figure(float(value), places)
    dash = " to " if low < 0 else "–"
    ends = figure(float(low), places) + dash + figure(float(high), places)
    return f"{figure(float(value), places)} ({ends})"


def measure(key: str, entry: Mapping[str, Any]) -> tuple[str, str]:
    """Write a measure: the figure with its interval, and its references in brackets.

    >>> measure("tvd2", {"value": 0.021, "low": None, "high": None, "reference": 0.015,
    ...                  "chance": 0.013})
    ('0.021', '[holdout 0.015, by chance 0.013]')
    """
    reference, chance = entry.get("reference"), entry.get("chance")
    places = decimals(map(entry.get, ("value", "low", "high", "reference", "chance")))
    notes = []
    if reference is not None:
        notes.append(f"{reference_name(key)} {figure(float(reference), places)}")
    if chance is not None:
        notes.append(f"by chance {figure(float(chance), places)}")
    if not notes:
        notes.append(f"best {figure(float(entry['best']))}" if "best" in entry else "no reference")
    return estimate(entry, places), f"[{', '.join(notes)}]"


def reference_name(key: str) -> str:
    """Name what the reference of a measure is."""
    return "trained on source" if key.startswith(_TRAINED) else HOLDOUT


def family(key: str) -> str:
    """Give the key of a measure without the column or target that it is of."""
    return key.partition(":")[0]


def listed(names: Iterable[object], maximum: int = 3) -> str:
    """List some names, and say how many more there are.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    texts = [shown(name) for name in names]
    if len(texts) <= maximum:
        return ", ".join(texts)
    return f"{', '.join(texts[:maximum])} and {len(texts) - maximum} more"


def value_text(entry: Mapping[str, Any], value: float) -> str:
    """Write a value with four digits, or as a date.

    >>> value_text({"type": "number"}, 1182.37), value_text({"type": "number"}, 0.012345)
    ('1,182', '0.01235')
    >>> value_text({"type": "date"}, 19723.4), value_text({"type": "integer"}, 12)
    ('2024-01-01', '12')
    """
    kind = type_of(str(entry.get("type")))
    if kind.is_time and kind.write is not None:
        return kind.write(round(value)).replace("T", " ")[:16]
    if kind.is_spelled:
        step = kind.step or 1
        return kind.text(step * round(value / step))
    size = max(abs(value), 1e-12)
    places = max(0, 3 - math.floor(math.log10(size)))
    text = f"{value:,.{min(places, 8)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def with_unit(title: str, unit: str | None) -> str:
    """Write the unit behind a column's title, unless the title has it, as an interval's has.

    >>> with_unit("HbA1c", "%"), with_unit("left: days after admitted", "days")
    ('HbA1c (%)', 'left: days after admitted')
    """
    if not unit or f": {unit} after " in title:
        return shown(title)
    return f"{shown(title)} ({shown(unit)})"
