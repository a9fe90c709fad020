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
    entries = audit.get("measures") or {}
    group = [_show(key, one) for key, one in entries.items()]
    return [("Attacks", group)] if group else []


def _show(key: str, entry: Mapping[str, Any]) -> Shown:
    reference = entry.get("reference")
    places = formatting.decimals(map(entry.get, ("value", "low", "high", "reference")))
    note = f"[best {figure(float(entry['best']))}]" if "best" in entry else ""
    if reference is not None:
        name = next((n for stem, n in _REFERENCES.items() if key.startswith(stem)), "without leak")
        note = f"[{name} {figure(float(reference), places)}]"
    value = formatting.estimate(entry, places)
    return Shown(key, entry["title"], value, note, "", Markup(""), entry.get("n"), entry["meaning"])


def settings(audit: Audit) -> Section | None:
    """Return the settings, and how long each part took."""
    blocks: list[Block] = []
    if lines := list(_flat(audit.get("settings") or {})):
        rows = tuple(Row((name, value)) for name, value in lines)
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
    finding = f"{counted(len(lines), 'setting')}{whole}"
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
    lines = [sentence(note) for note in audit.get("notes") or []]
    parts = audit.get("parts") or {}
    missing = [name for name in _LEFT_OUT if not parts.get(name)]
    if audit.get("tables") is None:
        missing = [name for name in missing if name not in _OF_TABLES]
        lines.append("No table was attacked: this is an audit of a training alone.")
    lines += [f"Not attacked: {_LEFT_OUT[name]}." for name in missing]
    lines += [f"{origin(plugin)}." for plugin in plugins(audit)]
    if not audit.get("controls"):
        text = "No control was played, so that nothing shows that the attacks can see a leak."
        lines.append(text)
    return lines
