"""What the fields of a ledger's records may hold: plain values that a terminal can show."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from dpsynth._util.strict_json import as_object, number, text, texts, truth, whole
from dpsynth.errors import ArtifactError
from dpsynth.privacy import Unit

YEARS = range(2000, 2201)  # of a record
_MAX_DEPTH = 10  # levels of a plan's document; a plan has 3


def line(value: Any, place: str) -> str:
    """Check that a value is a text that a terminal can show as one line."""
    if not text(value, place).isprintable():
        raise ArtifactError(f"{place}: one line of printable text is expected")
    return str(value)


def line_or_none(value: Any, place: str) -> str | None:
    """Check a line that may be absent."""
    return None if value is None else line(value, place)


def lines(value: Any, place: str) -> list[str]:
    """Check a list of lines."""
    return [line(item, place) for item in texts(value, place)]


def delta_of(value: Any, place: str) -> float:
    """Check a number above 0 and below 1."""
    if not (delta := number(value, place, above=0)) < 1:
        raise ArtifactError(f"{place}: a number below 1 is expected")
    return delta


def plan_of(value: Any, place: str) -> dict[str, Any]:
    """Check that a plan's document nests no deeper than a plan does, in printable text."""
    if not _is_plain(as_object(value, place), _MAX_DEPTH):
        raise ArtifactError(f"{place}: it nests too deeply, or has text that cannot be shown")
    return dict(value)


def _is_plain(value: Any, levels: int) -> bool:
    """Whether JSON nests at most so deeply, and all its texts are printable."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        return levels > 0 and all(_is_plain(item, levels - 1) for item in value)
    return not isinstance(value, str) or value.isprintable()


def check_time(value: str, place: str) -> None:
    """Refuse what is no ISO 8601 time with a zone, or one out of all reason."""
    try:
        time = datetime.fromisoformat(line(value, place))
    except ValueError:
        time = datetime.min
    if time.utcoffset() is None or time.year not in YEARS:
        raise ArtifactError(f"{place}: a time with its zone, from 2000 to 2200, is expected")


RESERVATION: dict[str, Callable[[Any, str], Any]] = {  # of a reservation
    **dict.fromkeys(("dataset", "purpose", "model", "schema_hash", "version", "host"), line),
    **dict.fromkeys(("tier", "policy"), line_or_none),
    **dict.fromkeys(("population", "process", "sign_off"), partial(whole, minimum=0)),
    "gates": lines,
    "epsilon": partial(number, above=0),
    "delta": delta_of,
    "plan": plan_of,
    "unit": Unit.from_dict,
    "allow_refuse": truth,
}
