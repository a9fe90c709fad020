"""What an audit was: all its measures, its settings and run times, and what it left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from dpsynth.eval.attack_stats.table_attack import AFTER, BEFORE
from dpsynth.eval.attacks.registry import ATTACKS
from dpsynth.eval.report import (
    Block,
    ReportTable,
    Row,
    Section,
    Shown,
    counted,
    figure,
    formatting,
    listed,
    sentence,
)
from dpsynth.eval.report.audit_formatting import family_name, origin, plugins

Audit = Mapping[str, Any]

# What the reference of a measure is whose key begins so; of all others it is a table without leak.
_REFERENCES = {
    "distance_ratio": "other people",
    "training_epsilon": "claimed",
    "tpr": "by guessing",
}
_LEFT_OUT = {
    **{one.key: one.omitted_as for one in ATTACKS if one.section == BEFORE},
    "training": "the training itself, by canaries",
    **{one.key: one.omitted_as for one in ATTACKS if one.section == AFTER},
    "shadows": "shadow models, which train the generator many times and take long",
}
_OF_TABLES = [one.key for one in ATTACKS]


def measures(audit: Audit) -> list[tuple[str, list[Shown]]]:
    """Return all measures of an audit, with their references and meanings."""
    them = audit.get("measures") or {}
    made = [_show(key, one) for key, one in them.items()]
    return [("Attacks", made)] if made else []


def _show(key: str, one: Mapping[str, Any]) -> Shown:
    reference = one.get("reference")
    places = formatting.decimals([one.get("value"), one.get("low"), one.get("high"), reference])
    held = f"[best {figure(float(one['best']))}]" if "best" in one else ""
    if reference is not None:
        name = next((n for stem, n in _REFERENCES.items() if key.startswith(stem)), "without leak")
        held = f"[{name} {figure(float(reference), places)}]"
    value = formatting.estimate(one, places)
    return Shown(key, one["title"], value, held, "", Markup(""), one.get("n"), one["meaning"])


def settings(audit: Audit) -> Section | None:
    """Return the settings, and how long each part took."""
    blocks: list[Block] = []
    if them := list(_flat(audit.get("settings") or {})):
        rows = tuple(Row((name, value)) for name, value in them)
        blocks.append(ReportTable("Settings", ("Setting", "Value"), rows))
    times = audit.get("seconds") or {}
    if times:
        times = {name: float(value) for name, value in times.items()}
        rows = tuple(
            Row((family_name(audit, n).replace("_", " "), _time(s))) for n, s in times.items()
        )
        blocks.append(ReportTable.of("Run times", ("Part", "Time"), rows))
    if not blocks:
        return None
    whole = f"; {_time(sum(times.values()))} in all" if times else ""
    finding = f"{counted(len(them), 'setting')}{whole}"
    return Section("settings", "Settings and run times of the audit", finding, tuple(blocks))


def _flat(settings: Mapping[str, Any], stem: str = "") -> Iterator[tuple[str, str]]:
    """Yield each setting under its whole name."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{stem}{name}.")
        elif isinstance(value, Sequence) and not isinstance(value, str):
            yield f"{stem}{name}", listed(value, 12) or "none"
        elif isinstance(value, bool) or value is None:
            yield f"{stem}{name}", {True: "yes", False: "no", None: "none"}[value]
        else:
            yield f"{stem}{name}", f"{value:g}" if isinstance(value, float) else str(value)


def _time(seconds: float) -> str:
    """Write a time.

    >>> _time(3.21), _time(75), _time(7300)
    ('3.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def notes(audit: Audit) -> list[str]:
    """Return the notes of an audit, and a line for each attack that was not made."""
    said = [sentence(note) for note in audit.get("notes") or []]
    parts = audit.get("parts") or {}
    left = [name for name in _LEFT_OUT if not parts.get(name)]
    if audit.get("tables") is None:
        left = [name for name in left if name not in _OF_TABLES]
        said.append("No table was attacked: this is an audit of a training alone.")
    said += [f"Not attacked: {_LEFT_OUT[name]}." for name in left]
    said += [f"{origin(one)}." for one in plugins(audit)]
    if not audit.get("controls"):
        said.append("No control was played, so that nothing shows that the attacks can see a leak.")
    return said
