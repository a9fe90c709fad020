"""Attacks of other packages: entry points of the group ``dpsynth.attacks``, loaded and checked.

An entry point names a `TableAttack`; its own name is the attack's key. Such an attack gets what the
attacks of dpsynth get: the tables, the people, and a source of randomness. Its code runs with the
rights of whoever runs the audit, like that of any installed package. What it prints is discarded
and the text of its errors is withheld, because either may quote a cell.
"""

from __future__ import annotations

import json
import math
import os
import re
import threading
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NoReturn

import numpy as np

from dpsynth.errors import InputError
from dpsynth.eval.attack_stats import Attack, Finding, People, Power, TableAttack
from dpsynth.eval.attack_stats.table_attack import KEY, RESERVED, Claim
from dpsynth.eval.attacks.registry import ATTACKS
from dpsynth.eval.core import Measure, PartResult, Tables

GROUP = "dpsynth.attacks"
SECONDS = 30.0  # that the import of one package may take
UNITS = ("auc", "share")  # of a power
DPSYNTH = frozenset(one.key for one in ATTACKS)
LEAVE_OUT = "or leave attacks of other packages out (--no-plugins)"
_PRINTABLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,99}")


@dataclass(frozen=True)
class Plugin:
    """An attack of another package.

    Attributes:
        attack: its record; ``run`` checks what the package's function returns.
        package: name of the distribution.
        version: of the distribution.
    """

    attack: TableAttack
    package: str
    version: str

    def to_dict(self) -> dict[str, Any]:
        """Return what an audit records of it, in JSON types."""
        return {
            "key": self.attack.key,
            "title": self.attack.title,
            "package": self.package,
            "version": self.version,
        }


def load_plugins(names: Collection[str] | None = None, *, seconds: float = SECONDS) -> list[Plugin]:
    """Load the attacks that installed packages offer, in the order of their names.

    Args:
        names: keys of the attacks to load; None for all that are installed. No other package is
            imported.
        seconds: that the import of one package may take.

    Raises:
        InputError: a name is not installed, or a package is broken, takes too long, or offers
            something that is not an attack.

    Example:
        >>> load_plugins(())
        []
    """
    entries = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    chosen = [entry for entry in entries if names is None or entry.name in names]
    if missing := sorted(set(names or ()) - {entry.name for entry in entries}):
        installed = ", ".join(entry.name for entry in entries) or "none"
        raise InputError(
            f"no installed package offers the attack {missing[0]!r}; installed attacks: {installed}"
        )
    for name, count in Counter(entry.name for entry in chosen).items():
        if count > 1:
            packages = ", ".join(_origin(one)[0] for one in chosen if one.name == name)
            raise InputError(
                f"several packages offer an attack {name!r} ({packages}); remove all but one, "
                f"{LEAVE_OUT}"
            )
    return [_load(entry, seconds) for entry in chosen]


def _load(entry: EntryPoint, seconds: float) -> Plugin:
    """Import what an entry point names, and check that it is an attack of that name."""
    package, version = _origin(entry)
    whole = f"the attack {entry.name!r} of the package {package} {version}"
    result: dict[str, Any] = {}

    def work() -> None:
        try:
            result["attack"] = entry.load()
        except BaseException as error:  # also SystemExit: an import must not end the audit
            result["error"] = type(error).__name__

    if not KEY.fullmatch(entry.name) or entry.name in RESERVED | DPSYNTH:
        _refuse(whole, "has a name that is taken or that is not of a-z, 0-9 and _")
    with _silence():
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(seconds)
    if thread.is_alive():
        _refuse(whole, f"was not loaded within {seconds:g} seconds")
    if "error" in result:
        _refuse(whole, f"could not be loaded ({result['error']})")
    attack = result["attack"]
    if not isinstance(attack, TableAttack):
        _refuse(whole, "is not a TableAttack")
    if attack.key != entry.name:
        _refuse(whole, "has another key than its entry point")
    return Plugin(replace(attack, run=_Guarded(attack, whole)), package, version)


def _origin(entry: EntryPoint) -> tuple[str, str]:
    """Return the name and the version of the package of an entry point."""
    try:
        texts = (str(entry.dist.name), str(entry.dist.version)) if entry.dist else ("", "")
    except Exception:
        texts = ("", "")
    package, version = (text if _PRINTABLE.fullmatch(text) else "unknown" for text in texts)
    return package, version


@dataclass(frozen=True)
class _Guarded:
    """The function of a package: its errors are replaced, and its results checked.

    Attributes:
        attack: the record as the package offers it.
        whole: the attack and its package, in words.
    """

    attack: TableAttack
    whole: str

    def __call__(
        self, tables: Tables, people: People, rng: np.random.Generator, **claim: Claim | None
    ) -> Attack:
        """Attack a table.

        Raises:
            InputError: the function failed, or returned something that no report can show.
        """
        error, result = "", None
        with _silence():
            try:
                result = self.attack.run(tables, people, rng, **claim)
                wrong = _mistake(self.attack, result)
            except (Exception, SystemExit) as caught:
                error = type(caught).__name__
        if error:
            _refuse(self.whole, f"failed ({error})")
        if wrong or not isinstance(result, Attack):
            _refuse(self.whole, f"returned a result that cannot be used: {wrong}")
        return result


def _mistake(attack: TableAttack, result: object) -> str:
    """Say what is wrong with a result; nothing if it can be recorded and shown."""
    if not isinstance(result, Attack) or not isinstance(result.part, PartResult):
        return "it is not an Attack"
    groups: tuple[tuple[tuple[Any, ...], type[Any]], ...] = (
        (result.findings, Finding),
        (result.powers, Power),
        (result.part.measures, Measure),
    )
    for items, kind in groups:
        if any(type(item) is not kind or not attack.owns(str(item.key)) for item in items):
            return f"every {kind.__name__} needs a key that begins with {attack.key}"
        if len({item.key for item in items}) < len(items):
            return f"a key of a {kind.__name__} occurs twice"
    if {item.key for item in result.findings} != {item.key for item in result.powers}:
        return "each Finding needs a Power of the same key"
    for must in attack.controls:
        if must.finding is not None and result.finding(must.finding) is None:
            return f"it lacks the Finding {must.finding}, which decides a control"
    if any(item.found is not True and item.found is not False for item in result.findings):
        return "found is not True or False"
    if any(item.unit not in UNITS for item in result.powers):
        return f"the unit of a Power is not one of {', '.join(UNITS)}"
    if any(item.least is not None and not math.isfinite(item.least) for item in result.powers):
        return "a Power is not a number"
    texts = [text for item in result.findings for text in (item.title, item.sentence)]
    texts += [item.sentence for item in result.powers] + list(result.part.notes)
    texts += [text for item in result.part.measures for text in (item.title, item.meaning)]
    if any(not isinstance(text, str) or not text.strip() for text in texts):
        return "a text is missing"
    document = [item.to_dict() for items, _ in groups for item in items]
    try:
        json.dumps([document, result.part.details], allow_nan=False)
    except (TypeError, ValueError):
        return "it holds something other than JSON types and finite numbers"
    return ""


@contextmanager
def _silence() -> Iterator[None]:
    """Discard what a package prints."""
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield


def _refuse(whole: str, fault: str) -> NoReturn:
    raise InputError(f"{whole} {fault}; repair or remove the package, {LEAVE_OUT}")
