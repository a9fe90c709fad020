"""What the fields of a ledger's records may hold: plain values that a terminal can show."""

from __future__ import annotations

import getpass
import math
import unicodedata
from collections.abc import Callable
from datetime import datetime
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from dpsynth._util.environment import variable
from dpsynth._util.strict_json import as_object, number, text, texts, truth, whole
from dpsynth.errors import ArtifactError, BudgetError, InputError
from dpsynth.policy import Policy
from dpsynth.policy.limits import NAME
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


MAX_TEXT_LENGTH = 200
MAX_EPSILON = 1e6  # far beyond any protection; a plan stops at 1000
NOBODY = "unknown"


def check_request(
    dataset: str, purpose: str, tier: str | None, epsilon: float, delta: float
) -> None:
    """Refuse an entry that could not be counted.

    Raises:
        InputError: a name, a text or the budget is not acceptable.
    """
    for subject, name in (("a dataset's name", dataset), ("a tier's name", tier)):
        if name is not None and not NAME.fullmatch(name):
            raise InputError(
                f"{subject} has 1 to 64 letters, digits, dots, hyphens and underscores, and "
                "starts with a letter or digit"
            )
    check_text("a purpose", purpose)
    if not (math.isfinite(epsilon) and 0 < epsilon <= MAX_EPSILON):
        raise InputError(f"epsilon must be above 0 and at most {MAX_EPSILON:g}")
    if not 0 < delta < 1:
        raise InputError("delta must lie between 0 and 1")


def require_for(policy: Policy, ledger: str, place: str) -> None:
    """Refuse a policy that says it is for another ledger.

    Raises:
        BudgetError: with both ids.
    """
    if policy.ledger not in (None, ledger):
        raise BudgetError(
            f"the policy '{policy.name}' is for ledger {policy.ledger}, but {place} is ledger "
            f"{ledger}; set DPSYNTH_LEDGER to the right one"
        )


def check_cost(unit: Unit, epsilon: float, delta: float) -> None:
    """Refuse a budget that is none for whom the ledger counts.

    Raises:
        InputError: group privacy leaves nothing of it; it says what the cost would be.
    """
    cost, chance = unit.cost(epsilon, delta)
    if not (cost <= MAX_EPSILON and chance < 1):
        raise InputError(
            f"for a {unit.person} with {unit.max_units} units of the table, epsilon {epsilon:g} "
            f"and delta {delta:g} come to epsilon {cost:.6g} and delta {chance:.6g}, which "
            "guarantees nothing; use a smaller epsilon, or fit by a key column"
        )


def check_text(subject: str, text: str, *, needed: bool = False) -> None:
    """Refuse what is not one short line."""
    if len(text) > MAX_TEXT_LENGTH or not text.isprintable():
        raise InputError(f"{subject} must be one line of at most {MAX_TEXT_LENGTH} characters")
    if needed and not text.strip():
        raise InputError(f"{subject} is needed: write a few words for later readers of the ledger")


def user() -> str:
    """Name the user: ``DPSYNTH_USER``, else the login name, else ``unknown``.

    Raises:
        InputError: the variable is set and blank.
    """
    stated = variable("DPSYNTH_USER")
    try:
        name = getpass.getuser() if stated is None else stated
    except (KeyError, OSError, ImportError):
        name = NOBODY
    printable = "".join(letter for letter in name if letter.isprintable()).strip()
    return printable[:64] or NOBODY


def same_person(name: str, other: str) -> bool:
    """Whether two names are written alike: whatever their case, spaces and forms of letters."""
    return _plain(name) == _plain(other)


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKC", name).casefold()
    return "".join(letter for letter in letters if letter.isalnum())


def require_person(does: str) -> str:
    """Return the user's name; refuse nobody.

    Raises:
        InputError: the system does not say who it is.
    """
    who = user()
    if who == NOBODY:
        raise InputError(f"a named person {does}: set DPSYNTH_USER")
    return who


@cache
def installed_version() -> str:
    """Return the version of this dpsynth."""
    try:
        return version("dpsynth")
    except PackageNotFoundError:
        return NOBODY
